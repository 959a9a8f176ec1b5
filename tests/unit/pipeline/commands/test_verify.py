"""`verify`: whether published versions are what was pushed."""

import hashlib
from pathlib import Path

import pytest

from slipway.pipeline.commands.verify import Verified, verified_text, verify, verify_all
from slipway.pipeline.commands.versions import rollback
from slipway.pipeline.config import WorkloadChoice
from slipway.pipeline.config.push import SignConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring.pushed_versions import trust_in


def test_rollback_signs_anew_where_versions_are_signed(config, output, base, pushed, key_files):
    private, public = key_files()
    pushed("a", "b")
    push = config.push.model_copy(update={"verify_key": str(public)})
    with pytest.raises(UsageError, match=r"without push\.sign has no signature"):
        rollback(config.model_copy(update={"push": push}), output, to=None)
    push = push.model_copy(update={"sign": SignConfig(key=str(private))})
    with pytest.raises(UsageError, match="is not used: it is not signed"):
        rollback(config.model_copy(update={"push": push}), output, to=None)
    push = push.model_copy(update={"verify_key": None})
    done = rollback(config.model_copy(update={"push": push}), output, to=None)
    [found] = verify(done.published.address, trust_in(str(public)))
    assert (found.problem, found.is_trusted) == ("", True)
    [unasked] = verify(done.published.address)
    assert unasked.signed_by == found.signed_by == hashlib.sha256(public.read_bytes()).hexdigest()
    assert unasked.line().endswith(
        f"signed with the key {found.signed_by[:16]}, not verified: no --verify-key"
    )
    assert unasked.to_json()["signature_verified"] is False


def test_verify_takes_a_version_or_all_of_a_base(base, pushed):
    first, second = pushed("a", "b")
    assert list(verify(str(base))) == [Verified(f"{base}/{first}", ""), Verified(f"{base}/{second}", "")]
    (base / str(first) / "saved_model.pb").write_text("A", encoding="utf-8")
    [found] = verify(f"{base}/{first}/")
    assert found.address == f"{base}/{first}"
    assert found.problem == "saved_model.pb does not match its manifest.json"
    assert "\nhint: run pushes the newest version anew" in verified_text([found])
    assert "hint" not in verified_text(list(verify(f"{base}/{second}")))


def test_verify_of_a_relative_path_works_from_inside_the_base(base, pushed, monkeypatch):
    (version,) = pushed("a")
    monkeypatch.chdir(base)
    assert [each.problem for each in verify(str(version))] == [""]
    assert [each.problem for each in verify(".")] == [""]


def test_verify_of_a_name_that_is_nothing_says_what_it_may_be(output, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        verify_all("nope", WorkloadChoice(Path("taxi")), output)
    assert refused.value.message == (
        f"verify nope: there is no workload of that name, and no folder {tmp_path / 'nope'}."
    )


def test_verify_where_no_version_is_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="has no version"):
        list(verify(str(tmp_path)))

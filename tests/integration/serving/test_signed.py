"""From a signed push to a refused change: what uses a model holds it to its key."""

import json
import shutil

import pytest
from small_workload import small_workload

from slipway.components.pusher import version_store
from slipway.components.pusher.signing_keys import SigningSettings, read_signing_key
from slipway.components.pusher.version_files import Extras
from slipway.components.pusher.version_store import version_store_at
from slipway.components.serving.live_model import LiveModel
from slipway.pipeline.commands.compare_versions import compare
from slipway.pipeline.commands.predict import predict
from slipway.pipeline.commands.serve import serve
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring.pushed_versions import trusted_versions

pytestmark = pytest.mark.slow


@pytest.fixture
def config(key_files):
    """The workload, which takes versions of its key only."""
    return small_workload(push={"verify_key": str(key_files()[1])})


@pytest.fixture
def signed(config, pushed, tmp_path):
    """Pushes the model with that factor, signed."""
    key = read_signing_key(SigningSettings(str(tmp_path / "signing.pem")))
    return lambda factor, **more: pushed(factor, extras=Extras(key), **more)


@pytest.fixture
def swap(signed, monkeypatch):
    """Signs two versions; the manifest and signature of one stand in the other before or after its check."""
    others = signed(2, classes=["yes", "no"]).path
    version = signed(3, classes=["no", "yes"]).path
    own = version.parent / "own"

    def put(folder):
        for name in ("manifest.json", "model.sig"):
            shutil.copy(folder / name, version / name)

    def call(*, before):
        shutil.copytree(version, own)
        name = "_early_problem" if before else "_problem"
        check = getattr(version_store, name)

        def check_and_swap(there, trust):
            if before:
                put(own)
            found = check(there, trust)
            if not before:
                put(others)
            return found

        monkeypatch.setattr(version_store, name, check_and_swap)
        if before:
            put(others)
        return version

    return call


@pytest.fixture
def answers(answered):
    """Predicts one row of a fare of 2."""
    return lambda **options: answered(**options)["prediction"]


@pytest.fixture
def answered(config, tmp_path):
    """Predicts one row of a fare of 2; returns the whole line."""

    def call(**options):
        source = tmp_path / "in.csv"
        source.write_text("fare,company\n2,a\n", encoding="utf-8")
        defaults = {"to": None, "version": None, "file_format": None, "beam_args": []}
        done = predict(config, tmp_path / "output", source=str(source), **{**defaults, **options})
        [file] = done.folder.glob("predictions-*")
        return json.loads(file.read_text(encoding="utf-8"))

    return call


def test_signed_version_predicts_until_it_is_changed_and_another_key_is_refused(
    signed, answers, key_files, local_runner, tmp_path
):
    version = signed(3)
    assert answers() == [6.0]
    public = str(tmp_path / "signing.pub")
    verified = local_runner("verify", str(version.path), "--verify-key", public)
    assert verified.returncode == 0
    assert "is what its manifest says; signed with the key " in verified.stdout
    assert "not verified" not in verified.stdout
    with pytest.raises(UsageError, match="is not used: it is signed with the key") as refused:
        answers(verify_key=key_files("other")[1])
    assert refused.value.exit_code == 2
    (version.path / "variables/variables.index").write_bytes(b"evil")
    with pytest.raises(UsageError, match=r"is not used: variables/variables\.index does not match"):
        answers()
    assert len(list((tmp_path / "output/predictions/toy").iterdir())) == 1
    assert local_runner("verify", str(version.path), "--verify-key", public).returncode == 1


def test_server_takes_the_newest_signed_version_and_none_where_none_is(
    config, signed, pushed, tmp_path, capsys, monkeypatch
):
    from slipway.components.serving.server import ModelServer

    unsigned = pushed(5).version
    with pytest.raises(UsageError, match="has no version that can be served") as refused:
        serve(config, tmp_path / "output", host="127.0.0.1", port=0)
    assert refused.value.hint.startswith("push again with push.sign")
    assert f"Not serving version {unsigned}, will retry: " in capsys.readouterr().err
    version = signed(3).version
    pushed(7)
    served = []
    monkeypatch.setattr(
        ModelServer, "serve_forever", lambda self, **_: served.append(self.live.served.version)
    )
    serve(config, tmp_path / "output", host="127.0.0.1", port=0)
    assert served == [version]


def test_missing_key_is_wrong_usage_before_anything_is_loaded(config, signed, answers, tmp_path):
    signed(3)
    with pytest.raises(UsageError, match=r"The public key .*nope\.pub cannot be read: No such file"):
        answers(verify_key=tmp_path / "nope.pub")


def test_served_class_names_are_those_that_were_checked_with_the_model(swap, config):
    base = str(swap(before=False).parent)
    live = LiveModel(version_store_at(base, trusted_versions(config)), tell=lambda line: None)
    live.close()
    assert live.served.classes == {"": ("no", "yes")}


def test_predicted_class_is_named_as_was_checked_with_the_model(swap, answered):
    swap(before=True)
    assert answered()["class"] == "yes"


def test_unsigned_version_answers_no_logged_requests(config, signed, pushed, key_files, tmp_path):
    versions = {"champion": signed(1).version, "challenger": pushed(5).version}
    (tmp_path / "requests-1.jsonl").write_text('{"fare": 1.0, "company": "a"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=f"Version {versions['challenger']} .* is not signed"):
        compare(config, tmp_path / "output", on=tmp_path, **versions)
    with pytest.raises(UsageError, match=f"Version {versions['champion']} .* is signed with the key"):
        compare(config, tmp_path / "output", on=tmp_path, verify_key=key_files("other")[1], **versions)

"""The signature over a version: what it covers, and which it does not trust."""

import base64
import hashlib
import json
import os
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import Manifest
from slipway.components.pusher.publish_to_folder import publish
from slipway.components.pusher.signature import Trust, _bundle, claimed_key
from slipway.components.pusher.signing_keys import SigningSettings, read_signing_key, read_verify_key
from slipway.components.pusher.version_files import Extras
from slipway.components.pusher.version_store import UntrustedError, version_store_at

_REFERENCE = Path(__file__).parent / "model_signing_1_1_1"


@pytest.fixture
def key(key_files):
    return read_signing_key(SigningSettings(str(key_files()[0])))


@pytest.fixture
def other_key(key_files):
    return read_signing_key(SigningSettings(str(key_files("other")[0])))


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables/variables.index").write_bytes(b"index")
    return folder


@pytest.fixture
def base(tmp_path):
    return tmp_path / "base"


@pytest.fixture
def push(model, base):
    def call(*, key=None, workload="taxi"):
        return publish(model, base=base, provenance={"workload": workload}, extras=Extras(key))

    return call


@pytest.fixture
def problem(base, key):
    def call(version, *, workload="taxi"):
        return version_store_at(str(base), Trust(key.public, workload)).problem(version)

    return call


def test_signed_version_is_trusted_and_still_is_what_its_manifest_says(push, key, base, problem):
    version = push(key=key).version
    assert (
        problem(version)
        == problem(version, workload="")
        == version_store_at(str(base)).problem(version)
        == ""
    )
    assert "model.sig" not in version_store_at(str(base)).manifest(version).files


def test_signature_lists_every_file_in_the_open_format(push, key):
    folder = push(key=key).path
    bundle = json.loads((folder / "model.sig").read_bytes())
    assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert bundle["verificationMaterial"]["publicKey"] == {"hint": key.public.fingerprint}
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    assert statement["subject"][0]["name"] == "taxi"
    assert [each["name"] for each in statement["predicate"]["resources"]] == [
        "MODEL_CARD.md",
        "manifest.json",
        "saved_model.pb",
        "variables/variables.index",
    ]


def test_signature_of_the_reference_implementation_holds():
    signature, manifest = ((_REFERENCE / name).read_bytes() for name in ("model.sig", "manifest.json"))
    trust = Trust(read_verify_key(str(_REFERENCE / "signing.pub")), "taxi")
    assert trust.problem(signature, manifest) == ""
    assert trust.problem(signature, manifest + b" ") == "it has no readable manifest.json"


def test_unsigned_version_is_used_where_nobody_asks_and_else_refused(push, problem, base, key):
    version = push().version
    with version_store_at(str(base)).fetched(version) as folder:
        assert folder == base / str(version)
    assert problem(version) == "it is not signed: it has no model.sig"
    store = version_store_at(str(base), Trust(key.public))
    assert store.manifest(version) is None
    with pytest.raises(
        UntrustedError, match=f"Version {version} in .* is not used: it is not signed"
    ) as refused:
        store.fetched(version).__enter__()
    assert refused.value.hint == (
        "push again with push.sign, or choose a version that is signed; if another key is the right "
        "one, name it: --verify-key FILE"
    )


def test_signature_of_another_key_is_reported_by_both_fingerprints(push, problem, key, other_key):
    version = push(key=other_key).version
    assert problem(version) == (
        f"it is signed with the key {other_key.public.fingerprint[:16]}, and trusted is "
        f"{key.public.fingerprint[:16]}"
    )


def test_claim_to_be_the_trusted_key_is_not_trusted(push, problem, key, other_key):
    published = push(key=other_key)
    file = published.path / "model.sig"
    file.write_bytes(
        file.read_bytes().replace(other_key.public.fingerprint.encode(), key.public.fingerprint.encode())
    )
    assert "was not made with the key" in problem(published.version)


def test_version_of_another_workload_is_not_taken_for_this_one(push, problem, key):
    version = push(key=key, workload="fares").version
    assert problem(version) == "it was signed for the workload 'fares', not for 'taxi'"
    assert problem(version, workload="") == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "saved_model.pb").write_bytes(b"grapH"), "saved_model.pb does not match"),
        (lambda folder: (folder / "more.pb").touch(), "more.pb is not in its manifest"),
        (lambda folder: (folder / "MODEL_CARD.md").unlink(), "MODEL_CARD.md is missing"),
        (lambda folder: (folder / "model.sig").unlink(), "it is not signed"),
        (lambda folder: (folder / "manifest.json").unlink(), "no readable manifest.json"),
    ],
)
def test_changed_added_and_removed_files_are_noticed_and_not_used(push, problem, base, key, change, words):
    published = push(key=key)
    change(published.path)
    assert words in problem(published.version)
    with pytest.raises(UntrustedError, match=words):
        version_store_at(str(base), Trust(key.public)).fetched(published.version).__enter__()


def test_manifest_made_anew_around_another_model_is_noticed(push, problem, model, key):
    signed = push(key=key)
    (model / "saved_model.pb").write_bytes(b"evil!")
    forged = push()
    (forged.path / "model.sig").write_bytes((signed.path / "model.sig").read_bytes())
    assert problem(forged.version) == "MODEL_CARD.md is not what was signed"


def test_flipped_bit_in_any_byte_of_the_signature_is_never_more_than_a_blemish(push, problem, key, other_key):
    published = push(key=key)
    file = published.path / "model.sig"
    content = file.read_bytes()
    manifest = (published.path / "manifest.json").read_bytes()
    payload = json.loads(content)["dsseEnvelope"]["payload"]
    for position in range(len(content)):
        changed = content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        if not Trust(key.public).problem(changed, manifest):
            # What is neither signed nor part of the signature: the key's hint, its id, blanks.
            assert json.loads(changed)["dsseEnvelope"]["payload"] == payload
        assert Trust(other_key.public).problem(changed, manifest)


@pytest.mark.parametrize(
    "signature", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"dsseEnvelope": {"signatures": 3}}']
)
def test_signature_that_is_none_is_refused_in_words(push, key, signature):
    manifest = (push(key=key).path / "manifest.json").read_bytes()
    assert (
        Trust(key.public).problem(signature, manifest)
        == "its model.sig cannot be read as a signature with a key"
    )
    assert claimed_key(signature) == ""


@pytest.mark.parametrize(
    "statement",
    [
        b"{}",
        b'{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1",'
        b' "predicate": {}}',
    ],
)
def test_what_else_was_signed_with_the_key_is_no_signature_of_a_model(push, key, statement):
    manifest = (push().path / "manifest.json").read_bytes()
    assert "does not list SHA-256 digests" in Trust(key.public).problem(_bundle(statement, key), manifest)


def test_same_model_is_pushed_again_only_for_another_key(push, key, other_key):
    first = push()
    signed = push(key=key)
    assert (signed.was_there, signed.version > first.version) == (False, True)
    assert push(key=key) == type(signed)(signed.version, signed.base, was_there=True)
    assert push().was_there  # who does not sign is content with a signed one
    assert not push(key=other_key).was_there


def test_trusted_version_is_used_as_a_copy_that_nobody_else_can_change(push, base, key):
    published = push(key=key)
    with version_store_at(str(base), Trust(key.public)).fetched(published.version) as folder:
        assert not folder.is_relative_to(base)
        assert folder.parent.stat().st_mode & 0o077 == 0
        (published.path / "saved_model.pb").write_bytes(b"evil!")
        assert (folder / "saved_model.pb").read_bytes() == b"graph"
    assert not folder.exists()


def test_link_in_a_version_is_not_followed(push, base, key, tmp_path):
    published = push(key=key)
    (published.path / "saved_model.pb").unlink()
    (published.path / "saved_model.pb").symlink_to(tmp_path / "model/saved_model.pb")
    with pytest.raises(UntrustedError, match="is a link"):
        version_store_at(str(base), Trust(key.public)).fetched(published.version).__enter__()


def test_nothing_is_copied_of_a_version_that_is_not_what_was_signed(push, base, key, monkeypatch):
    published = push(key=key)
    with (published.path / "more.bin").open("wb") as file:
        file.truncate(2**40)
    monkeypatch.setattr("shutil.copytree", lambda *_, **__: pytest.fail("copied"))
    with pytest.raises(UntrustedError, match=r"more\.bin is not in its manifest"):
        version_store_at(str(base), Trust(key.public)).fetched(published.version).__enter__()


def test_pipe_in_the_place_of_a_signature_is_none_at_once(push, problem, key):
    published = push(key=key)
    (published.path / "model.sig").unlink()
    os.mkfifo(published.path / "model.sig")
    assert "it is not signed" in problem(published.version)


def test_no_room_for_the_copy_is_reported_as_that_and_not_as_a_lack_of_trust(push, base, key, monkeypatch):
    version = push(key=key).version

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copytree", fails)
    with pytest.raises(ComponentError, match=r"cannot be copied to .*No space left on device") as refused:
        version_store_at(str(base), Trust(key.public)).fetched(version).__enter__()
    assert not isinstance(refused.value, UntrustedError)
    assert "TMPDIR" in refused.value.hint


def test_push_that_cannot_sign_publishes_nothing(push, base, key, monkeypatch):
    def fails(self, content):
        raise ComponentError("no")

    monkeypatch.setattr(type(key), "sign", fails)
    with pytest.raises(ComponentError):
        push(key=key)
    assert version_store_at(str(base)).numbers() == []
    assert not list(base.glob(".staging-*"))


def test_signing_does_not_change_the_manifest(push, key):
    manifest = (push(key=key).path / "manifest.json").read_bytes()
    assert Manifest.from_bytes(manifest) is not None
    assert b"model.sig" not in manifest
    assert key.public.fingerprint.encode() not in manifest


def test_list_of_the_software_is_covered_by_manifest_and_signature(model, base, key):
    sbom = b'{"bomFormat": "CycloneDX"}'
    first = publish(model, base=base, provenance={"workload": "taxi"})
    second = publish(model, base=base, provenance={"workload": "taxi"}, extras=Extras(key, sbom))
    digest = hashlib.sha256(sbom).hexdigest()
    found, before = (version_store_at(str(base)).manifest(each.version) for each in (second, first))
    assert found.provenance["sbom"] == {"file": "sbom.cdx.json", "sha256": digest}
    assert found.files["sbom.cdx.json"].sha256 == digest
    assert found.model_digest == before.model_digest
    assert "| packages of the training | sbom.cdx.json |" in (second.path / "MODEL_CARD.md").read_text()
    again = publish(second.path, base=base, provenance={"workload": "taxi"})
    assert again.was_there  # the file is no part of the model
    (second.path / "sbom.cdx.json").write_bytes(b"{}")
    trust = Trust(key.public)
    assert (
        version_store_at(str(base), trust).problem(second.version)
        == "sbom.cdx.json does not match its manifest.json"
    )

"""Keys from files: which are taken, and that nothing of a private one is told."""

import hashlib
import traceback

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519

from slipway.components.errors import ComponentError
from slipway.components.pusher.signing_keys import (
    SigningSettings,
    read_signing_key,
    read_verify_key,
    readable_by_others,
)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()])
def test_pair_signs_and_verifies_and_its_fingerprint_is_that_of_the_public_file(key_files, curve):
    private, public = key_files(key=ec.generate_private_key(curve))
    key, known = read_signing_key(SigningSettings(str(private))), read_verify_key(str(public))
    assert known.fingerprint == key.public.fingerprint == hashlib.sha256(public.read_bytes()).hexdigest()
    signature = key.sign(b"content")
    assert known.holds(signature, b"content")
    assert not known.holds(signature, b"contents")
    assert not known.holds(b"", b"content")


WORD = "WORD"


def test_path_may_come_from_the_environment_and_so_may_the_password(key_files):
    private, _ = key_files(password=WORD)
    found = SigningSettings(key_env="KEY", password_env=WORD)
    assert read_signing_key(found, {"KEY": str(private), "WORD": WORD})
    with pytest.raises(
        ComponentError, match=r"^push\.sign\.key_env: the environment variable KEY is not set"
    ):
        read_signing_key(found, {"WORD": WORD})
    with pytest.raises(ComponentError, match="WORD is not set"):
        read_signing_key(found, {"KEY": str(private)})
    with pytest.raises(ComponentError, match="or the password is wrong"):
        read_signing_key(found, {"KEY": str(private), "WORD": "shut"})
    with pytest.raises(ComponentError, match=r"has a password, and push\.sign\.password_env names none"):
        read_signing_key(SigningSettings(key_env="KEY"), {"KEY": str(private)})


def test_password_for_a_key_that_has_none_is_refused(key_files):
    private, _ = key_files()
    with pytest.raises(ComponentError, match=r"has no password, and push\.sign\.password_env gives one"):
        read_signing_key(SigningSettings(str(private), password_env=WORD), {"WORD": WORD})


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (rsa.generate_private_key(65537, 2048), "RSA"),
        (ed25519.Ed25519PrivateKey.generate(), "Ed25519"),
        (ec.generate_private_key(ec.SECP256K1()), "secp256k1"),
    ],
)
def test_keys_of_other_kinds_are_refused_by_their_kind(key_files, key, kind):
    private, public = key_files(key=key)
    with pytest.raises(ComponentError, match=rf"of another kind \({kind}\); a key of the curve P-256"):
        read_signing_key(SigningSettings(str(private)))
    with pytest.raises(ComponentError, match=rf"of another kind \({kind}\)"):
        read_verify_key(str(public))


def test_key_that_cannot_sign_is_refused(key_files):
    private, _ = key_files(key=x25519.X25519PrivateKey.generate())
    with pytest.raises(ComponentError, match="holds a key that cannot sign"):
        read_signing_key(SigningSettings(str(private)))


def test_public_and_private_key_are_not_taken_for_each_other(key_files):
    private, public = key_files()
    with pytest.raises(ComponentError, match="holds a public key; to sign, the private one is needed"):
        read_signing_key(SigningSettings(str(public)))
    with pytest.raises(ComponentError, match="holds a private key; the public one is needed") as refused:
        read_verify_key(str(private))
    assert refused.value.hint.startswith(f"openssl ec -in {private} -pubout")


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n", b"\xff\x00"]
)
def test_files_that_hold_no_key_are_refused_without_their_content(tmp_path, content):
    file = tmp_path / "key.pem"
    file.write_bytes(content)
    with pytest.raises(ComponentError, match="holds no private key") as refused:
        read_signing_key(SigningSettings(str(file)))
    assert refused.value.__cause__ is None
    assert "c2VjcmV0" not in str(refused.value)
    file.write_bytes(content.replace(b"PRIVATE", b"PUBLIC"))
    with pytest.raises(ComponentError, match="holds no public key"):
        read_verify_key(str(file))


def test_missing_file_is_reported_with_how_to_make_one(tmp_path):
    with pytest.raises(
        ComponentError, match=r"^The private key .*nope\.pem cannot be read: No such"
    ) as refused:
        read_signing_key(SigningSettings(str(tmp_path / "nope.pem")))
    assert "openssl ecparam -genkey" in refused.value.hint
    with pytest.raises(ComponentError, match=r"^The public key .* cannot be read: Is a directory"):
        read_verify_key(str(tmp_path))


PEM = "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("settings", "content"),
    [
        (SigningSettings(key_env="SIGNING_KEY"), PEM),
        (SigningSettings(key_env="SIGNING_KEY"), "c2VjcmV0" * 50),
        (SigningSettings(key_env="SIGNING_KEY"), "~c2VjcmV0"),
        (SigningSettings(key_env="SIGNING_KEY"), "c2VjcmV0\0"),
        (SigningSettings(key=PEM), ""),
    ],
)
def test_key_in_place_of_the_path_of_its_file_is_not_repeated(settings, content):
    environment = {"SIGNING_KEY": content}
    assert readable_by_others(settings, environment) == ""
    with pytest.raises(ComponentError, match="cannot be read") as raised:
        read_signing_key(settings, environment)
    told = "".join(traceback.format_exception(raised.value))
    assert "c2VjcmV0" not in f"{raised.value.message} {raised.value.hint} {told}"
    assert "the path of the file, not the key itself" in raised.value.hint


def test_private_key_that_others_may_read_is_warned_of(key_files):
    private, _ = key_files()
    assert readable_by_others(SigningSettings(str(private))) == ""
    private.chmod(0o640)
    assert readable_by_others(SigningSettings(str(private))) == (
        f"{private}, the key that signs models, is open to other users (0640): chmod 600 {private}"
    )
    named = SigningSettings(key_env="KEY")
    assert "chmod 600" in readable_by_others(named, {"KEY": str(private)})
    assert readable_by_others(named, {}) == ""

"""Reads the keys that sign and verify versions from files, and refuses unsuitable ones.

Only elliptic curves, as the format of the signatures requires. No message contains a private key's content.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.components.errors import ComponentError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_RULE = "a key of the curve P-256, P-384 or P-521 in PEM is needed"
_MAKE = (
    "make a pair: openssl ecparam -genkey -name prime256v1 -noout -out signing.pem && chmod 600 signing.pem "
    "&& openssl ec -in signing.pem -pubout -out signing.pub"
)
_BEGIN = "-----BEGIN"
_LARGEST_BYTES = 2**16
_NO_FILE = (OSError, ValueError, RuntimeError)  # the last for `~somebody` without a home


@dataclass(frozen=True)
class SigningSettings:
    """The location of the private key.

    Attributes:
        key: its file; empty: see `key_env`.
        key_env: the environment variable that holds the path of the file.
        password_env: the environment variable that holds the password of the file; empty: it has none.
    """

    key: str = ""
    key_env: str = ""
    password_env: str = ""


@dataclass(frozen=True)
class VerifyKey:
    """A public key.

    Attributes:
        fingerprint: SHA-256 of its PEM, 64 hexadecimal digits; `sha256sum` of the file that OpenSSL writes.
    """

    key: "EllipticCurvePublicKey"
    fingerprint: str

    def holds(self, signature: bytes, signed: bytes) -> bool:
        """Return True if the signature over these bytes was made with the private key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

        try:
            self.key.verify(signature, signed, ECDSA(_hash_for(self.key)))
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class SigningKey:
    """A private key with its public key."""

    key: "EllipticCurvePrivateKey"
    public: VerifyKey

    def sign(self, content: bytes) -> bytes:
        """Return the signature over these bytes, DER."""
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

        return self.key.sign(content, ECDSA(_hash_for(self.public.key)))


def short(fingerprint: str) -> str:
    """Return enough of a fingerprint to tell two keys apart."""
    return fingerprint[:16]


def read_verify_key(path: str) -> VerifyKey:
    """Read a public key.

    Raises:
        ComponentError: the file does not exist, or holds no suitable public key.
    """
    _, serialization = _library()
    content = _read(path, "public")
    if b"PRIVATE KEY" in content:
        raise ComponentError(
            f"{path} holds a private key; the public one is needed.",
            hint=f"openssl ec -in {path} -pubout -out signing.pub",
        )
    try:
        key = serialization.load_pem_public_key(content)
    except (
        Exception
    ) as error:  # the library has several types for unreadable keys, one of them for old formats
        raise ComponentError(f"{path} holds no public key; {_RULE}.", hint=_MAKE) from error
    return _checked(key, path)


def read_signing_key(settings: SigningSettings, environment: Mapping[str, str] = os.environ) -> SigningKey:
    """Read a private key.

    Raises:
        ComponentError: a variable is not set, the file does not exist or holds no suitable private key, or
            the password is wrong.
    """
    _, serialization = _library()
    path = settings.key or _variable("key_env", settings.key_env, environment)
    named = settings.password_env
    password = _variable("password_env", named, environment) if named else None
    content = _read(path, "private", source=_source(settings))
    if b"PUBLIC KEY" in content:
        raise ComponentError(f"{path} holds a public key; to sign, the private one is needed.", hint=_MAKE)
    try:
        key = serialization.load_pem_private_key(content, password.encode() if password else None)
    except TypeError as error:  # a password for a key without one, or none for a key with one
        raise ComponentError(
            f"{path}: the key has no password, and push.sign.password_env gives one."
            if password
            else f"{path}: the key has a password, and push.sign.password_env names none.",
            hint="name the environment variable that holds the key's password, or leave the setting out",
        ) from error
    except Exception:  # not chained: no part of a private key's content may reach a log
        what = "no private key, or the password is wrong" if password else "no private key"
        raise ComponentError(f"{path} holds {what}; {_RULE}.", hint=_MAKE) from None
    if not hasattr(key, "sign") or not hasattr(key, "public_key"):
        raise ComponentError(f"{path} holds a key that cannot sign; {_RULE}.", hint=_MAKE)
    return SigningKey(key, _checked(key.public_key(), path))


def readable_by_others(settings: SigningSettings, environment: Mapping[str, str] = os.environ) -> str:
    """Return a warning if other users may read the private key; empty if they may not, or there is none."""
    path = settings.key or environment.get(settings.key_env, "")
    if not path:
        return ""
    try:
        mode = Path(path).expanduser().stat().st_mode
    except _NO_FILE:
        return ""
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return ""
    return f"{path}, the key that signs models, is open to other users ({mode & 0o777:04o}): chmod 600 {path}"


def _checked(key: Any, path: str) -> VerifyKey:
    ec, serialization = _library()
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in _CURVES:
        kind = key.curve.name if isinstance(key, ec.EllipticCurvePublicKey) else _kind_of(key)
        raise ComponentError(f"{path} holds a key of another kind ({kind}); {_RULE}.", hint=_MAKE)
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.public_bytes(serialization.Encoding.PEM, public)
    return VerifyKey(key, hashlib.sha256(pem).hexdigest())


def _kind_of(key: object) -> str:
    return type(key).__name__.removesuffix("PublicKey").lstrip("_")


def _hash_for(key: "EllipticCurvePublicKey") -> "HashAlgorithm":
    """Return the hash that the format prescribes for a curve."""
    from cryptography.hazmat.primitives import hashes

    return {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[key.curve.key_size]


def _variable(setting: str, name: str, environment: Mapping[str, str]) -> str:
    value = environment.get(name, "")
    if not value:
        held = "the path of the private key's file" if setting == "key_env" else "its password"
        raise ComponentError(
            f"push.sign.{setting}: the environment variable {name} is not set.", hint=f"it has to hold {held}"
        )
    return value


def _source(settings: SigningSettings) -> str:
    """Return words for where the path is from if it may be the key itself, which no message may repeat."""
    if not settings.key:
        return f"the environment variable {settings.key_env}"
    return "push.sign.key" if _BEGIN in settings.key else ""


def _read(path: str, kind: str, *, source: str = "") -> bytes:
    """Read a key's file; with a `source`, no error repeats the path."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(_LARGEST_BYTES)
    except _NO_FILE as error:
        if source:
            told = getattr(error, "strerror", None) or "it is no path"
            raise ComponentError(
                f"The {kind} key's file that {source} names cannot be read: {told}.",
                hint=f"{source} has to hold the path of the file, not the key itself; {_MAKE}",
            ) from None  # it holds the path, too
        told = getattr(error, "strerror", None) or error
        raise ComponentError(
            f"The {kind} key {path} cannot be read: {told}.", hint=f"name another file, or {_MAKE}"
        ) from error


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise ComponentError(
            "Signatures need the package cryptography, which is not installed.",
            hint="pip install cryptography (the extra `sign`)",
        ) from error
    return ec, serialization

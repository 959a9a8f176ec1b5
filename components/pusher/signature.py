"""Creates a version's `model.sig`, and verifies it with a public key.

The format is that of OpenSSF Model Signing (OMS 1.0), so other tools can verify our signatures, and we can
verify theirs: a Sigstore bundle with a DSSE envelope around an in-toto statement, which lists the SHA-256 of
every file. It is implemented here with `cryptography` alone, because the reference implementation depends on
twelve more packages, including a client of public services, that signing with a key from a file does not
need.

The statement also lists the manifest, whose digests the files are compared with. So a verifier reads each
file only once.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.components.pusher.manifest import NO_MANIFEST, Manifest
from slipway.components.pusher.signing_keys import SigningKey, VerifyKey, short
from slipway.components.saved_model.digest import MANIFEST, SIGNATURE

UNSIGNED = f"it is not signed: it has no {SIGNATURE}"

_BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"
_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PREDICATE_TYPE = "https://model_signing/signature/v1.0"


@dataclass(frozen=True)
class Trust:
    """The versions that are trusted: signed with the private part of `key`, and pushed for `workload`.

    Attributes:
        workload: its name; empty: any.
    """

    key: VerifyKey
    workload: str = ""

    def problem(self, signature: bytes | None, manifest: bytes | None) -> str:
        """Describe why a version is not trusted; empty if it is, provided that its files match the manifest.

        Args:
            signature: the content of its `model.sig`; None: it has none.
            manifest: the content of its `manifest.json`; None: it has none.
        """
        if signature is None:
            return UNSIGNED
        if manifest is None or (read := Manifest.from_bytes(manifest)) is None:
            return NO_MANIFEST
        found = _read(signature)
        if found is None:
            return f"its {SIGNATURE} cannot be read as a signature with a key"
        if found.hint not in ("", self.key.fingerprint):
            return (
                f"it is signed with the key {short(found.hint)}, and trusted is {short(self.key.fingerprint)}"
            )
        if not self.key.holds(found.signature, found.signed):
            return f"its {SIGNATURE} was not made with the key {short(self.key.fingerprint)}, or was changed"
        signed = _digests(found.payload)
        if signed is None:
            return f"its {SIGNATURE} does not list SHA-256 digests of files"
        for name, digest in sorted(_all_digests(read, manifest).items()):
            if signed.pop(name, "") != digest:
                return f"{name} is not what was signed"
        if signed:
            return f"{min(signed)} was signed, and is not in its {MANIFEST}"
        pushed_for = read.provenance.get("workload", "")
        if self.workload not in ("", pushed_for):
            return f"it was signed for the workload {pushed_for!r}, not for {self.workload!r}"
        return ""


@dataclass(frozen=True)
class _Bundle:
    """The content of a signature file; none of it is trusted.

    Attributes:
        hint: the fingerprint that the signer claims; may be empty.
        signed: the bytes that were signed; `payload`: the statement in them.
    """

    hint: str
    signature: bytes
    signed: bytes
    payload: bytes


def sign(manifest: bytes, key: SigningKey) -> bytes:
    """Return the content of `model.sig` for a version.

    Args:
        manifest: the content of its `manifest.json`, a valid one.
    """
    read = Manifest.from_bytes(manifest)
    assert read is not None  # noqa: S101  (it was just made)
    digests = sorted(_all_digests(read, manifest).items())
    together = hashlib.sha256(b"".join(bytes.fromhex(digest) for _, digest in digests)).hexdigest()
    statement = {
        "_type": _STATEMENT_TYPE,
        "subject": [{"name": read.provenance.get("workload") or "model", "digest": {"sha256": together}}],
        "predicateType": _PREDICATE_TYPE,
        "predicate": {
            "serialization": {
                "method": "files",
                "hash_type": "sha256",
                "allow_symlinks": False,
                "ignore_paths": [SIGNATURE],
            },
            "resources": [
                {"name": name, "algorithm": "sha256", "digest": digest} for name, digest in digests
            ],
        },
    }
    return _bundle(json.dumps(statement).encode(), key)


def _bundle(payload: bytes, key: SigningKey) -> bytes:
    bundle = {
        "mediaType": _BUNDLE_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key.public.fingerprint}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": _base64(payload),
            "payloadType": _PAYLOAD_TYPE,
            "signatures": [{"sig": _base64(key.sign(_signed(payload))), "keyid": ""}],
        },
    }
    return (json.dumps(bundle) + "\n").encode()


def claimed_key(signature: bytes) -> str:
    """Return the fingerprint that a signature names, unverified; empty if it is unreadable or names none."""
    found = _read(signature)
    return found.hint if found else ""


def _all_digests(manifest: Manifest, content: bytes) -> dict[str, str]:
    """Return the SHA-256 of every file of a version except the signature."""
    files = {name: entry.sha256 for name, entry in manifest.files.items()}
    return {**files, MANIFEST: hashlib.sha256(content).hexdigest()}


def _signed(payload: bytes) -> bytes:
    """Return the bytes that DSSE signs: the payload with its type and both lengths."""
    return b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD_TYPE), _PAYLOAD_TYPE.encode(), len(payload), payload)


def _read(signature: bytes) -> _Bundle | None:
    try:
        bundle = json.loads(signature)
        envelope = bundle["dsseEnvelope"]
        if bundle["mediaType"] != _BUNDLE_TYPE or envelope["payloadType"] != _PAYLOAD_TYPE:
            return None
        payload = base64.b64decode(envelope["payload"], validate=True)
        [only] = envelope["signatures"]
        made = base64.b64decode(only["sig"], validate=True)
        hint = bundle["verificationMaterial"]["publicKey"].get("hint") or ""
        # The hint is shown to users: only a fingerprint passes.
        hint = hint if isinstance(hint, str) and len(hint) == 64 and hint.isascii() and hint.isalnum() else ""
        return _Bundle(hint, made, _signed(payload), payload)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _digests(payload: bytes) -> dict[str, str] | None:
    """Return the SHA-256 of each file in a statement; None for another type of statement or other entries."""
    try:
        statement: Mapping[str, Any] = json.loads(payload)
        predicate = statement["predicate"]
        if statement["_type"] != _STATEMENT_TYPE or statement["predicateType"] != _PREDICATE_TYPE:
            return None
        if predicate["serialization"]["method"] != "files":
            return None
        resources = predicate["resources"]
        found = {str(each["name"]): str(each["digest"]) for each in resources}
        is_sound = len(found) == len(resources) and all(each["algorithm"] == "sha256" for each in resources)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return found if is_sound else None


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()

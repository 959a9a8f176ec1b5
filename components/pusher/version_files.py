"""The files that a version gets beside the model's own: manifest, signature, card and the card's picture."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import FileEntry, Manifest
from slipway.components.pusher.manifest_contents import ModelProvenance, Provenance
from slipway.components.pusher.model_card import model_card
from slipway.components.pusher.signature import Trust, sign
from slipway.components.pusher.signing_keys import SigningKey
from slipway.components.pusher.slice_chart import slice_chart
from slipway.components.saved_model.digest import CARD, MANIFEST, PICTURE, SBOM, SIGNATURE


@dataclass(frozen=True)
class Extras:
    """Optional additions to a version.

    Attributes:
        key: the key that signs the version; None: it is not signed.
        sbom: the list of the training's software, the content of `sbom.cdx.json`; None: it is not known.
    """

    key: SigningKey | None = None
    sbom: bytes | None = None

    def are_there(self, signature: bytes | None, manifest: bytes | None) -> bool:
        """Return True if a version with these files has the extras: its signature may be of an older key."""
        return self.key is None or not Trust(self.key.public).problem(signature, manifest)


NO_EXTRAS = Extras()


def sealed(
    entries: Mapping[str, FileEntry], provenance: Provenance | None, extras: Extras = NO_EXTRAS
) -> dict[str, bytes]:
    """Return the files that describe a version, by name; the last is the signature, if it is signed.

    Args:
        provenance: the origin and quality of the model; None: the version only gets a manifest, and its
            signature.

    Raises:
        ComponentError: the provenance is that of another model.
    """
    if provenance is None:
        return _signed({MANIFEST: Manifest(entries).to_bytes()}, extras)
    model: ModelProvenance = {**provenance.get("model", {}), "digest": Manifest(entries).model_digest}
    if provenance.get("model", {}).get("digest", model["digest"]) != model["digest"]:
        raise ComponentError("The model changed while it was published.", hint="push again")
    complete: Provenance = {**provenance, "model": model}
    files = {}
    if sbom := extras.sbom:
        files[SBOM] = sbom
        complete["sbom"] = {"file": SBOM, "sha256": hashlib.sha256(sbom).hexdigest()}
    files[CARD] = model_card(complete).encode()
    if chart := slice_chart(complete):
        files[PICTURE] = chart.svg().encode()
    own = {name: FileEntry(hashlib.sha256(text).hexdigest(), len(text)) for name, text in files.items()}
    manifest = Manifest({**entries, **own}, cast(Provenance, _in_json(complete)))
    return _signed({**files, MANIFEST: manifest.to_bytes()}, extras)


def _in_json(value: Any) -> Any:
    """Return plain data without NaN and infinite numbers, such as an error of a slice: JSON has none.

    A mapping lacks the keys of such numbers then, as it does of a metric that was not measured; the card and
    its picture, which are made before, show them. A list has null in their place.
    """
    if isinstance(value, Mapping):
        return {key: _in_json(each) for key, each in value.items() if not _is_unwritable(each)}
    if isinstance(value, list | tuple):
        return [None if _is_unwritable(each) else _in_json(each) for each in value]
    return value


def _is_unwritable(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _signed(files: dict[str, bytes], extras: Extras) -> dict[str, bytes]:
    return files if extras.key is None else {**files, SIGNATURE: sign(files[MANIFEST], extras.key)}

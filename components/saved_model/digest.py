"""A SHA-256 over a model's files, to check that the pushed model is the exported and judged one. Pure."""

import hashlib
import json
from collections.abc import Mapping

from slipway.components.errors import ComponentError

MANIFEST = "manifest.json"
"""The file at the top of each pushed version that lists its files and their origin."""
CARD = "MODEL_CARD.md"
"""The same for people, at the top of each version that has provenance."""
PICTURE = "metrics_by_slice.svg"
"""The picture in the card, stored beside it if there are slices to show."""
SIGNATURE = "model.sig"
"""The signature over the manifest and all files that it lists; beside the manifest of each signed version."""
SBOM = "sbom.cdx.json"
"""The list of the training's software (CycloneDX), at the top of each version from our Trainer."""
SBOM_FOLDER = "environment"
"""The folder of a Model artifact that holds the same list until the push."""
ADDED_FILES = frozenset({MANIFEST, CARD, PICTURE, SIGNATURE, SBOM})
"""The files that a push adds, which are not part of the model."""
PROPERTY = "model_digest"
"""The property of a ModelBlessing that holds the digest of its model."""


def combined_digest(hashes: Mapping[str, str]) -> str:
    """Return one SHA-256 over names and contents of a model's files: equal for equal models.

    Args:
        hashes: the SHA-256 of each file, by path in the model's folder; the files that a push adds are
            ignored.
    """
    own = {name: each for name, each in hashes.items() if name not in ADDED_FILES}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def require_unchanged(model: str, digest: str, *, earlier: Mapping[str, str]) -> None:
    """Refuse a model whose files are no longer those that were exported or judged.

    Args:
        model: its address, for the message.
        digest: its digest now.
        earlier: earlier digests by what was done with the model, e.g. `exported`; empty if there is none.

    Raises:
        ComponentError: a digest differs; only a new training can replace the model.
    """
    for done, was in earlier.items():
        if was not in ("", digest):
            raise ComponentError(
                f"{model} changed after it was {done}: the SHA-256 over its files was {was[:12]}, and is "
                f"{digest[:12]} now. It is not known what changed it; it is neither blessed nor pushed.",
                hint="train again: run from there (--from Trainer), or else without the cache",
                start="Trainer",
            )

"""One SHA-256 for a model, to tell whether what is pushed is what was exported and judged. Pure."""

import hashlib
import json
from collections.abc import Mapping

from slipway.components.errors import ComponentError

MANIFEST = "manifest.json"
"""The file, at the top of each pushed version, that lists its files and says where they come from."""
CARD = "MODEL_CARD.md"
"""The same for people, at the top of each version that has papers."""
PICTURE = "metrics_by_slice.svg"
"""The picture in the card, beside it where there are slices to show."""
SIGNATURE = "model.sig"
"""The signature over the manifest and all that it lists, beside it in each version that was signed."""
SBOM = "sbom.cdx.json"
"""The software that the model was trained with (CycloneDX), at the top of each version of our Trainer's."""
SBOM_FOLDER = "environment"
"""Of a Model artifact: holds the same, until it is pushed."""
PAPERS = frozenset({MANIFEST, CARD, PICTURE, SIGNATURE, SBOM})
"""The files that a push adds: no part of the model."""
PROPERTY = "model_digest"
"""Of a ModelBlessing: the digest of the model that it is about."""


def combined_digest(hashes: Mapping[str, str]) -> str:
    """One SHA-256 over names and contents of a model's files: equal for equal models.

    Args:
        hashes: the SHA-256 of each file, by path in the model's folder; a push's own papers do not count.
    """
    own = {name: each for name, each in hashes.items() if name not in PAPERS}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def require_unchanged(model: str, digest: str, *, earlier: Mapping[str, str]) -> None:
    """Refuses a model whose files are no longer those that were exported or judged.

    Args:
        model: its address, for the message.
        earlier: its digest at an earlier time, by what was done with it then, e.g. `exported`; empty where
            none was taken.

    Raises:
        ComponentError: one differs; only a new training can replace the model.
    """
    for done, was in earlier.items():
        if was not in ("", digest):
            raise ComponentError(
                f"{model} changed after it was {done}: the SHA-256 over its files was {was[:12]}, and is "
                f"{digest[:12]} now. It is not known what changed it; it is neither blessed nor pushed.",
                hint="train again: run from there (--from Trainer), or else without the cache",
                start="Trainer",
            )

"""The files that a version gets beside the model's own: its manifest, its card and the card's picture."""

import hashlib
from collections.abc import Mapping

from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import FileEntry, Manifest
from slipway.components.pusher.manifest_contents import ModelPapers, Papers
from slipway.components.pusher.model_card import model_card
from slipway.components.pusher.slice_chart import slice_chart
from slipway.components.saved_model.digest import CARD, MANIFEST, PICTURE


def sealed(entries: Mapping[str, FileEntry], papers: Papers | None) -> dict[str, bytes]:
    """The papers of a version as files, by name.

    Args:
        papers: where the model comes from and how good it is; None: the version gets a manifest and no card.

    Raises:
        ComponentError: the papers are of another model.
    """
    if papers is None:
        return {MANIFEST: Manifest(entries).to_bytes()}
    model: ModelPapers = {**papers.get("model", {}), "digest": Manifest(entries).model_digest}
    if papers.get("model", {}).get("digest", model["digest"]) != model["digest"]:
        raise ComponentError("The model changed while it was published.", hint="push again")
    complete: Papers = {**papers, "model": model}
    texts = {CARD: model_card(complete)}
    if chart := slice_chart(complete):
        texts[PICTURE] = chart.svg()
    files = {name: text.encode() for name, text in texts.items()}
    own = {name: FileEntry(hashlib.sha256(text).hexdigest(), len(text)) for name, text in files.items()}
    return {**files, MANIFEST: Manifest({**entries, **own}, complete).to_bytes()}

"""A version's `MODEL_CARD.md`: what its papers say, for people."""

from collections.abc import Mapping
from typing import Any


def model_card(papers: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    return f"# {papers.get('workload', 'model')}\n"

"""Names the file of weights that a training begins with; nothing here opens what lies elsewhere. Pure."""

import hashlib
from pathlib import Path
from typing import TypedDict

KEY = "train.pretrained"


class Pretrained(TypedDict):
    """A file of weights: where it lies, as the workload names it, and the SHA-256 of its content."""

    path: str
    sha256: str


def is_remote(path: str) -> bool:
    """Whether it is an address, such as gs://..., and no path."""
    return "://" in path


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

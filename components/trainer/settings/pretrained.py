"""Names the weights file that a training starts from; opens no remote file. Pure."""

import hashlib
from pathlib import Path
from typing import TypedDict

KEY = "train.pretrained"


class Pretrained(TypedDict):
    """A weights file: its path as the workload names it, and the SHA-256 of its content."""

    path: str
    sha256: str


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    Raises:
        OSError: the file cannot be read.
    """
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

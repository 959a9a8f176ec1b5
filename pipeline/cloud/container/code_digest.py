"""Digests the code in a folder: `python -m slipway.pipeline.cloud.container.code_digest` in an image.

A rehearsal in containers compares the image's digest with the checkout's before anything runs. Imports only
the standard library.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

_MADE = "__pycache__"


class Inside(TypedDict):
    """A container's report about itself.

    Attributes:
        user: the user id that its commands run as.
        sources: the digest of the project's files.
    """

    user: int
    sources: str


def digest_of(root: Path, names: Iterable[str]) -> str:
    """Return the SHA-256 of files, by name and content, independent of their order, times and owners.

    Args:
        names: the files, relative to `root`; bytecode and folders are ignored. For a link, the path of its
            target counts.
    """
    digest = hashlib.sha256()
    for name in sorted(names):
        path = root / name
        if _MADE not in path.parts and (path.is_symlink() or path.is_file()):
            content = bytes(path.readlink()) if path.is_symlink() else path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


def main() -> None:
    """Print the user id and the digest of the current folder."""
    here = Path.cwd()
    names = [path.relative_to(here).as_posix() for path in here.rglob("*")]
    print(json.dumps(Inside(user=os.getuid(), sources=digest_of(here, names))))


if __name__ == "__main__":
    main()

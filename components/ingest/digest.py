"""Computes a digest of the ingested content, which identifies equal input wherever it is stored."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c

from slipway.components.ingest.blocks import FileError, InputFile

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileDigest:
    """The state of a file when it was read.

    Attributes:
        size_bytes: the size of the file as stored.
        crc32c: the checksum of the file as stored; Cloud Storage keeps the same one.
    """

    name: str
    size_bytes: int
    crc32c: int
    modified_ns: int

    def check_unchanged(self, file: InputFile) -> None:
        """Check that the file has not been written to since.

        Raises:
            FileError: its size or time has changed, or it is gone.
        """
        size, modified = _stamp(file)
        if (size, modified) != (self.size_bytes, self.modified_ns):
            raise FileError(
                f"{file.name} was changed while it was read", hint="run again once nothing is writing to it"
            )


def file_digest(file: InputFile) -> FileDigest:
    """Read a file once and compute its checksum.

    Raises:
        FileError: the file cannot be read.
    """
    checksum = google_crc32c.Checksum()
    size, modified = _stamp(file)
    try:
        with file.path.open("rb") as stream:
            while data := stream.read(_BLOCK_BYTES):
                checksum.update(data)
    except OSError as error:
        raise FileError(f"{file.name} cannot be read: {error.strerror}") from error
    return FileDigest(file.name, size, int.from_bytes(checksum.digest(), "big"), modified)


def combined(digests: Sequence[FileDigest]) -> str:
    """Return the digest of a source: the hex sha256 of the sizes and checksums of its files, in order.

    Names are left out, so that a copy elsewhere has the same digest.
    """
    lines = (f"{digest.size_bytes} {digest.crc32c:08x}\n" for digest in digests)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _stamp(file: InputFile) -> tuple[int, int]:
    try:
        status = os.stat(file.path)  # noqa: PTH116  (folders of images: a Path for each doubles the time)
    except FileNotFoundError as error:
        raise FileError(
            f"{file.name} was deleted while it was read", hint="run again once nothing is writing to it"
        ) from error
    except OSError as error:
        raise FileError(f"{file.name} cannot be read: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns

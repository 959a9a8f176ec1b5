"""Reads a file as decompressed UTF-8 bytes."""

import codecs
import shlex
from pathlib import Path

import pyarrow as pa

from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.file_kinds import HEAD_BYTES, other_kind
from slipway.components.ingest.suffixes import SUFFIXES

# The magic numbers of the compressed formats, by suffix.
_BEGINS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd", ".zstd": b"\x28\xb5\x2f\xfd"}


class Stream:
    """Reads a file, decompresses it and recodes it to UTF-8; errors name the file and the problem.

    Args:
        file: a file that is compressed if its name ends in one of SUFFIXES.
        encoding: the encoding of its text; None leaves the bytes as they are.
        begin: the first byte to read, of a file that is not compressed.
        end: the byte to end before; None: the end of the file.

    Raises:
        FileError: the file cannot be opened or, in `read`, is damaged, truncated or compressed twice.
    """

    def __init__(
        self, file: InputFile, *, encoding: str | None = None, begin: int = 0, end: int | None = None
    ) -> None:
        self._file = file
        self._position = begin
        self._end = end
        method = SUFFIXES.get(Path(file.name).suffix.lower())
        self._is_packed = method is not None
        try:
            # Closed when the last reference is gone, like Arrow's own streams.
            self._raw = (
                pa.OSFile(str(file.path))
                if not method
                else pa.CompressedInputStream(pa.OSFile(str(file.path)), method)
            )
        except OSError as error:
            raise FileError(f"{file.name} cannot be read: {_words(error)}") from error
        if begin:
            self._raw.seek(begin)
        self._encoding = encoding
        self._decoder = _decoder(encoding) if encoding is not None else None

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size` before recoding; none at the end."""
        if self._end is not None:
            size = min(size, self._end - self._position)
        try:
            data = self._raw.read(size)
        except OSError as error:
            if not self._position and (words := _not_compressed(self._file)):
                raise FileError(
                    f"{self._file.name} is {words}",
                    hint="if it is compressed, end its name in .gz, .bz2 or .zst",
                ) from error
            raise FileError(
                f"{self._file.name} is damaged or cut short after {self._position} bytes: {_words(error)}",
                hint="copy it again, or take it out of data.source",
            ) from error
        except MemoryError:
            raise
        except pa.ArrowException as error:  # of bzip2, where an empty stream follows another one
            name = shlex.quote(self._file.name)
            raise FileError(
                f"{self._file.name} cannot be unpacked after {self._position} bytes: {error}",
                hint=f"if an empty file was joined to others: bunzip2 < {name} | bzip2 > new.bz2",
            ) from error
        if not data and not self._position and self._is_packed and not self._file.path.stat().st_size:
            raise FileError(  # Arrow takes it for one of no rows
                f"{self._file.name} is cut short: it has 0 bytes, and a compressed file has a header",
                hint="copy it again, or take it out of data.source",
            )
        # Texts only: a record of a TFRecord may begin with any bytes.
        is_text = self._is_packed and not self._position and self._encoding is not None
        if is_text and data.startswith((_BEGINS[".gz"], _BEGINS[".zst"])):
            raise FileError(
                f"{self._file.name} is compressed twice",
                hint="unpack it once, and keep the suffix of what is in it",
            )
        self._position += len(data)
        if self._decoder is None:
            return bytes(data)
        try:
            text = self._decoder.decode(data, not data)
        except UnicodeDecodeError as error:
            raise FileError(
                f"{self._file.name}: {error.reason} near byte {self._position - len(data) + error.start}",
                hint=f"it is not {self._encoding} throughout; check data.encoding",
            ) from error
        # The decoder may need more bytes for the first character.
        return text.encode() if text or not data else self.read(size)


def is_utf8(encoding: str) -> bool:
    """Return True if bytes of this encoding are read as they are."""
    return _decoder(encoding) is None


def _decoder(encoding: str) -> codecs.IncrementalDecoder | None:
    """Return a decoder; None for UTF-8, whose bytes are kept so that broken rows are rejected one by one."""
    name = codecs.lookup(encoding).name
    return None if name in ("utf-8", "utf-8-sig", "ascii") else codecs.getincrementaldecoder(name)()


def _not_compressed(file: InputFile) -> str:
    """Describe a file that is not compressed as its name says; "" if it is, or if it is empty."""
    suffix = Path(file.name).suffix.lower()
    try:
        with file.path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:  # a fault of the disk, not of the compression
        return ""
    if not head or suffix not in _BEGINS or head.startswith(_BEGINS[suffix]):
        return ""
    other = other_kind(head)
    return f"{other[0] if other else 'not compressed'}, though its name ends in {suffix}"


def _words(error: OSError) -> str:
    words = error.strerror or str(error)
    return words.partition(" Detail:")[0].strip()

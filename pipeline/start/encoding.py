"""Rejects a text file that is not UTF-8, and says how to convert it."""

import codecs
import shlex
from pathlib import Path

from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.compression import Stream
from slipway.components.ingest.file_kinds import HEAD_BYTES, other_kind
from slipway.components.ingest.suffixes import SUFFIXES
from slipway.components.store_address import is_elsewhere
from slipway.pipeline.errors import UsageError

WINDOWS = "CP1252"
"""The likely encoding of a text that is not Unicode: Latin-1 as Windows writes it, with signs such as €
where Latin-1 has control characters. iconv refuses a byte that it does not have."""
_SAMPLE_BYTES = 65_536
_PROGRAMS = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd", ".zstd": "zstd"}  # each takes -dc


def check_encoding(file: InputFile) -> None:
    """Reject a file that is not UTF-8 text, with a command to convert it.

    A workload can name another encoding, but `new` reads UTF-8 only.

    Raises:
        UsageError: the first bytes are not UTF-8, or belong to another kind of file.
    """
    head = Stream(file, encoding="utf-8").read(_SAMPLE_BYTES)
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if other := other_kind(head[:HEAD_BYTES]):
        raise UsageError(f"{file.name} is {other[0]}.", hint=other[1])
    if b"\0" in head and not is_utf16:
        if endian := _utf16_without_mark(head):
            raise UsageError(
                f"{file.name} is not UTF-8 text.",
                hint=iconv(file.name, f"UTF-16{endian}"),
            )
        path = Path(file.name)
        is_here = path.suffix.lower() not in SUFFIXES and not is_elsewhere(file.name)
        is_text = is_here and _is_utf8(head.replace(b"\0", b""))
        # Not the input's name, which the shell would empty, but its suffix, by which `new` knows the format.
        text = shlex.quote(f"{path.stem}-text{path.suffix}")
        without = f"tr -d '\\0' < {shlex.quote(file.name)} > {text}   # if that is all"
        raise UsageError(
            f"{file.name} is not text: it holds NUL bytes.",
            hint=without if is_text else "name a CSV, JSON Lines or Parquet file with --data",
        )
    if not _is_utf8(head):
        known = "UTF-16" if is_utf16 else WINDOWS
        raise UsageError(
            f"{file.name} is not UTF-8 text.",
            hint=iconv(file.name, known),
        )


def iconv(file: str, encoding: str) -> str:
    """Return the command that converts a file to UTF-8, or what to do where that is not one file here."""
    path = Path(file)
    convert = f"iconv -f {encoding} -t UTF-8"
    program = _PROGRAMS.get(path.suffix.lower())
    unpack, end = (f"{program} -dc ", Path(path.stem).suffix) if program else ("", path.suffix)
    if is_elsewhere(file) or not end or path.is_dir() or any(letter in file for letter in "*?["):
        return f"convert its files here, with {convert} or from their encoding, and name those"
    given = shlex.quote(file)
    command = f"{unpack}{given} | {convert}" if unpack else f"{convert} {given}"
    return f"{command} > utf8{end}   # or the file's encoding"


def _is_utf8(head: bytes) -> bool:
    """Return True for the first bytes of a UTF-8 text, which may end within a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _utf16_without_mark(head: bytes) -> str:
    """Return LE or BE if the bytes are mostly Latin text in UTF-16 without a byte order mark; else empty."""
    for first, endian in ((1, "LE"), (0, "BE")):
        zeros, others = head[first::2], head[1 - first :: 2]
        if zeros.count(0) > len(zeros) / 2 and 0 not in others:
            return endian
    return ""

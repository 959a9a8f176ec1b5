"""Endings of file names that tell how the file is compressed."""

from collections.abc import Mapping

# From the ending to Arrow's name of the codec.
SUFFIXES: Mapping[str, str] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}

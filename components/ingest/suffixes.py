"""The suffixes of file names that say how a file is compressed."""

from collections.abc import Mapping

# From the suffix to Arrow's name for the codec.
SUFFIXES: Mapping[str, str] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}

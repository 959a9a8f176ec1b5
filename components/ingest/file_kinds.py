"""Recognises files that are not what their names say, by their first bytes. Pure."""

import re

PARQUET = "a Parquet file"
AS_PARQUET = "pandas.{}(...).to_parquet('data.parquet')"
DUCKDB_AS_PARQUET = "duckdb.connect('FILE').table('TABLE').write_parquet('data.parquet')"
UNPACK = "unpack it first; .gz, .bz2 and .zst are unpacked here"
_IMAGE = "name a table instead; images are read from a folder for each class (docs/own-data.md)"
_ARRAY = "pandas.DataFrame(numpy.load(...){}, columns=[...]).to_csv('data.csv', index=False)"
SPREADSHEET = (
    "save the sheet as CSV in the program that made it, or with "
    "pandas.read_excel(...).to_csv('data.csv', index=False)"
)
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "a file compressed with gzip", "end its name in .gz"),
    (b"BZh", "a file compressed with bzip2", "end its name in .bz2"),
    (b"\x28\xb5\x2f\xfd", "a file compressed with zstd", "end its name in .zst"),
    (b"\xfd7zXZ\x00", "a file compressed with xz", "unpack it first, with xz -d"),
    (b"PAR1", PARQUET, "end its name in .parquet, and set data.format to parquet"),
    (b"ARROW1", "an Arrow or Feather file", AS_PARQUET.format("read_feather")),
    (b"FEA1", "a Feather file", AS_PARQUET.format("read_feather")),
    (b"ORC", "an ORC file", AS_PARQUET.format("read_orc")),
    (b"Obj\x01", "an Avro file", "convert it to Parquet or JSON Lines first"),
    (b"\x89HDF", "an HDF5 file", AS_PARQUET.format("read_hdf")),
    (b"SQLite format 3\x00", "an SQLite database", AS_PARQUET.format("read_sql")),
    (b"\xd0\xcf\x11\xe0", "a workbook of Excel from before 2007, or the like", SPREADSHEET),
    (b"%PDF-", "a PDF", "ask for the table that it was made from"),
    (b"\x89PNG\r\n", "a PNG image", _IMAGE),
    (b"\xff\xd8\xff", "a JPEG image", _IMAGE),
    (b"GIF87a", "a GIF image", _IMAGE),
    (b"GIF89a", "a GIF image", _IMAGE),
    (b"II*\0", "a TIFF image", _IMAGE),
    (b"MM\0*", "a TIFF image", _IMAGE),
    (b"\x93NUMPY", "a NumPy array (npy)", _ARRAY.format("")),
    *((b"\x80%c" % version, "a Python pickle", AS_PARQUET.format("read_pickle")) for version in (2, 3, 4, 5)),
)
# The first letters of these alone may begin a text.
_BMP, _WEBP = re.compile(rb"BM.{4}\0{4}", re.DOTALL), re.compile(rb"RIFF.{4}WEBP", re.DOTALL)
_ZIP = b"PK\x03\x04"
# The name of a ZIP's first file follows the first 30 bytes; in a workbook it has another suffix.
_ZIPPED_TABLE = re.compile(rb".{26}([^\x00]+\.(?:csv|tsv|txt|jsonl|json|parquet))", re.DOTALL)
_ZIPPED_ARRAY = re.compile(rb".{26}[^\x00/]+\.npy", re.DOTALL)
_WEB_PAGE = re.compile(rb"\s*<(!doctype html|html|head|body|table)\b", re.IGNORECASE)
# Bytes that never occur in text.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x7f]")
_BOM = b"\xef\xbb\xbf"
HEAD_BYTES = 512
"""The number of bytes that are enough to recognise a file."""


def other_kind(head: bytes) -> tuple[str, str] | None:
    """Describe a file that is neither text nor what its name says, and the remedy; None if unknown.

    Args:
        head: the first HEAD_BYTES of the file, as stored on disk.
    """
    if head.startswith(_ZIP):
        if _ZIPPED_TABLE.match(head, len(_ZIP)):
            return "a ZIP file", UNPACK
        if _ZIPPED_ARRAY.match(head, len(_ZIP)):
            return "a file of NumPy arrays (npz)", _ARRAY.format("[...]")
        return "a ZIP file, as the workbooks of Excel are", SPREADSHEET
    if _WEB_PAGE.match(head.removeprefix(_BOM)):
        return "a web page", "download the file itself: a browser may have to log in for it"
    if _BMP.match(head):
        return "a BMP image", _IMAGE
    if _WEBP.match(head):
        return "a WebP image", _IMAGE
    for magic, what, remedy in _KINDS:
        # A text table may begin with the same letters, for example with a column ORCID.
        if head.startswith(magic) and not (magic.isalnum() and _CONTROL.search(head) is None):
            return what, remedy
    return None

"""File types by their first bytes."""

import bz2
import gzip
import io
import pickle
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.compression import Stream
from slipway.components.ingest.file_kinds import HEAD_BYTES, other_kind


def _zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "a,b\n1,2\n")
    return file.getvalue()


@pytest.mark.parametrize(
    ("head", "what", "remedy"),
    [
        (gzip.compress(b"a\n1\n", mtime=0), "a file compressed with gzip", "end its name in .gz"),
        (_zipped("data.csv"), "a ZIP file", "unpack it first"),
        (_zipped("[Content_Types].xml"), "a ZIP file, as the workbooks of Excel are", "save the sheet"),
        (_zipped("mimetype", "content.csv"), "a ZIP file, as the workbooks of Excel are", "save the sheet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook of Excel from before 2007", "save the sheet"),
        (b"SQLite format 3\x00", "an SQLite database", "read_sql"),
        (b"ARROW1\x00\x00", "an Arrow or Feather file", "read_feather"),
        (b"PAR1\x15\x04", "a Parquet file", ".parquet"),
        (b"FEA1\x00\x00\x00\x00", "a Feather file", "read_feather"),
        (b"ORC\x82\xd0\x01\x12", "an ORC file", "read_orc"),
        (bz2.compress(b"a\n1\n"), "a file compressed with bzip2", "end its name in .bz2"),
        (b"%PDF-1.7", "a PDF", "ask for the table"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image", "a folder for each class"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG image", "a folder for each class"),
        (b"GIF89a\x32\0", "a GIF image", "a folder for each class"),
        (b"II*\0\x08\0", "a TIFF image", "a folder for each class"),
        (b"BM\xe6\x1d\0\0\0\0\0\x006\0", "a BMP image", "a folder for each class"),
        (b"RIFF\xd6\x08\0\0WEBPVP8 ", "a WebP image", "a folder for each class"),
        (b"\x93NUMPY\x01\0v\0{", "a NumPy array (npy)", "numpy.load(...), columns"),
        (_zipped("x_train.npy"), "a file of NumPy arrays (npz)", "numpy.load(...)[...], columns"),
        (pickle.dumps([1.5]), "a Python pickle", "read_pickle"),
        (b"\xef\xbb\xbf\n<!DOCTYPE HTML><p>Log in", "a web page", "download the file itself"),
        (b'<table border="1" class="dataframe">', "a web page", "download the file itself"),
    ],
)
def test_a_file_of_another_kind_is_reported_with_the_remedy(head, what, remedy):
    found = other_kind(head[:HEAD_BYTES])
    assert found is not None
    assert found[0].startswith(what)
    assert remedy in found[1]


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"a,b\n1,2\n",
        b"<5,>5\n1,2\n",
        b"PK,B\n1,2\n",
        "größe\n1\n".encode("utf-16"),
        b"ORCID,age\n1,2\n",
        b"PAR1,PAR2\r\n1,2\r\n",
        b"FEA1\tFEA2\n",
        b"ARROW1\n",
        "BZhö\n".encode(),
        b"GIF89a,b\n1,2\n",
        b"BMI,age\n23,50\n",
        b"RIFF,WEBP,c\n1,2,3\n",
        b"II*,b\n1,2\n",
        "ÿØÿ,b\n1,2\n".encode(),
    ],
)
def test_text_is_no_other_kind(head):
    assert other_kind(head) is None


def test_an_image_named_csv_is_reported_also_where_nothing_looked_at_its_head_before(ingest, write):
    with pytest.raises(FileError, match=r"in\.csv is a PNG image\n") as caught:
        ingest(write(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x32", "in.csv"))
    assert "a folder for each class" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("in.csv.gz", b"a,b\n1,2\n", "in.csv.gz is not compressed, though its name ends in .gz"),
        (
            "in.csv.zst",
            gzip.compress(b"a\n1\n", mtime=0),
            "is a file compressed with gzip, though its name ends in .zst",
        ),
    ],
)
def test_a_file_that_is_not_compressed_as_its_name_says_is_reported(ingest, write, name, content, words):
    with pytest.raises(FileError, match=words):
        ingest(write(content, name))


def test_a_disk_that_fails_at_the_first_byte_is_reported_as_that():
    stream = Stream(InputFile("mem.csv", Path("/proc/self/mem")))
    with pytest.raises(FileError, match=r"mem\.csv is damaged or cut short after 0 bytes"):
        stream.read(100)


def test_a_feather_file_named_parquet_is_reported(ingest, tmp_path):
    path = tmp_path / "in.parquet"
    feather.write_feather(pa.table({"a": [1, 2]}), path)
    with pytest.raises(FileError, match=r"in\.parquet is an Arrow or Feather file, not Parquet") as caught:
        ingest(path, format="parquet")
    assert "read_feather" in caught.value.hint


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_text_that_is_compressed_twice_is_told(tmp_path, pack):
    path = tmp_path / f"a.csv{'.gz' if pack is gzip.compress else '.bz2'}"
    path.write_bytes(pack(gzip.compress(b"a,b\n1,2\n")))
    with pytest.raises(FileError, match="is compressed twice"):
        Stream(InputFile(path.name, path), encoding="utf-8").read(100)
    assert Stream(InputFile(path.name, path)).read(2) == b"\x1f\x8b"  # as a TFRecord may begin

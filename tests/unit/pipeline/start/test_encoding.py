import gzip
import re

import pytest

from slipway.components.ingest.blocks import InputFile
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.encoding import check_encoding, iconv


def _refused(tmp_path, name, content, match):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError, match=match) as refused:
        check_encoding(InputFile(name, path))
    return refused.value.hint


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("latin-1", "CP1252")],
)
def test_text_of_another_encoding_is_refused_with_the_command_that_changes_it(tmp_path, encoding, name):
    rows = "".join(f"{row},m\xfcde\n{row},wach\n" for row in range(30))
    content = f"gr\xf6\xdfe,y\n{rows}".encode(encoding)
    hint = _refused(tmp_path, "my data.csv", content, r"^my data\.csv is not UTF-8 text\.")
    assert hint.startswith(f"iconv -f {name} -t UTF-8 'my data.csv' > utf8.csv")


def test_the_command_keeps_the_signs_that_windows_writes(tmp_path):
    content = "preis in €,größe\n5,„groß“\n".encode("cp1252")
    hint = _refused(tmp_path, "data.csv", content, "is not UTF-8 text")
    encoding = re.search(r"-f (\S+) -t UTF-8", hint)[1]
    assert content.decode(encoding) == "preis in €,größe\n5,„groß“\n"


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("data.csv", b"a,b\n\0\x01\xff", "name a CSV"),
        ("data.csv", b"a,b\n1,2\n\0\0\0\n", "> data-text.csv   # if"),
        ("d.jsonl", b'{"a": 1}\n\0\n', "> d-text.jsonl   # if"),
        ("d.csv.gz", gzip.compress(b"a\n1\n\0\n", mtime=0), "name a CSV"),
    ],
)
def test_nul_bytes_are_refused_with_the_command_that_removes_them_from_text(tmp_path, name, content, hint):
    assert hint in _refused(tmp_path, name, content, "is not text: it holds NUL bytes")


def test_a_file_of_another_kind_is_named_as_what_it_is(tmp_path):
    hint = _refused(tmp_path, "data.csv", b"PK\x03\x04\x14\0\0", "is a ZIP file")
    assert "save the sheet as CSV" in hint


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n1,2\n", "a\nh\xe9\n".encode(), b"x" * 65_535 + "\xe9".encode()]
)
def test_utf8_is_taken_also_if_a_character_is_cut_by_the_end_of_the_sample(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    check_encoding(InputFile("data.csv", path))


def test_the_command_quotes_the_file():
    assert iconv("my data.csv", "CP1252").startswith("iconv -f CP1252 -t UTF-8 'my data.csv' > utf8.csv")


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("my data.csv", "iconv -f CP1252 -t UTF-8 'my data.csv' > utf8.csv"),
        ("rows.jsonl", "iconv -f CP1252 -t UTF-8 rows.jsonl > utf8.jsonl"),
        ("rows.csv.gz", "gzip -dc rows.csv.gz | iconv -f CP1252 -t UTF-8 > utf8.csv"),
        ("rows.jsonl.zst", "zstd -dc rows.jsonl.zst | iconv -f CP1252 -t UTF-8 > utf8.jsonl"),
    ],
)
def test_the_command_that_converts_suits_the_file(file, command):
    assert iconv(file, "CP1252") == f"{command}   # or the file's encoding"


@pytest.mark.parametrize("source", ["gs://bucket/rows.csv", "rows/*.csv", "rows", "rows.gz"])
def test_what_is_no_single_file_here_gets_no_command(source):
    assert iconv(source, "CP1252") == (
        "convert its files here, with iconv -f CP1252 -t UTF-8 or from their encoding, and name those"
    )

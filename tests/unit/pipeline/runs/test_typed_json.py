"""Documents on disk: read as what they should be, or refused with the field that is not."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from slipway.pipeline.runs.typed_json import DocumentError, plain, read_document, typed, typed_text


@dataclass(frozen=True)
class Whole:
    state: Literal["new", "old"]
    size: float


def test_field_that_does_not_fit_is_an_error_of_the_pipeline():
    with pytest.raises(DocumentError) as raised:
        typed(Whole, {"state": "new", "size": "1"})
    assert raised.value.message == 'size is "1", where a number belongs'


def test_file_is_named_with_what_is_wrong_in_it(tmp_path):
    path = tmp_path / "whole.json"
    with pytest.raises(FileNotFoundError):
        read_document(Whole, path)
    path.write_bytes(b'{"state": "\xff"}')
    with pytest.raises(DocumentError, match=rf"{path} cannot be read: its 14 bytes are not complete JSON"):
        read_document(Whole, path)
    path.write_text('{"state": "new"}', encoding="utf-8")
    with pytest.raises(DocumentError, match=rf"{path} cannot be read: size is missing"):
        read_document(Whole, path)
    path.unlink()
    path.mkdir()
    with pytest.raises(DocumentError, match=rf"{path} cannot be read: Is a directory"):
        read_document(Whole, path)


@dataclass(frozen=True)
class File:
    path: Path
    size: int = 0


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listed:
    first: File | Table | None


def test_what_is_made_plain_comes_back_as_it_was():
    for listed in (Listed(File(Path("/a"))), Listed(Table("t", ("x", "y"))), Listed(None)):
        assert typed_text(Listed, json.dumps(plain(listed))) == listed
    assert plain(Listed(File(Path("/a")))) == {"first": {"path": "/a", "size": 0}}


def test_text_that_is_no_json_is_refused():
    with pytest.raises(DocumentError, match="the text is not JSON"):
        typed_text(Listed, "{")

"""Plain data: read as what it should be, or refused with the field that is not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from slipway.components.typed_json import MisfitError, fits, typed


class Part(TypedDict):
    name: str
    note: NotRequired[str]


@dataclass(frozen=True)
class Whole:
    state: Literal["new", "old"]
    size: float
    count: int | None = None
    parts: tuple[Part, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    loose: Annotated[dict[str, Any], Part] = field(default_factory=lambda: {"name": "x"})


def test_document_of_the_right_types_comes_back_as_it_was():
    whole = {"state": "new", "size": 1, "count": None, "parts": [{"name": "a"}], "words": {"a": "b"}}
    assert typed(Whole, whole) == Whole("new", 1, None, ({"name": "a"},), {"a": "b"})


def test_whatever_belongs_to_any_and_to_object_comes_back_as_it_was():
    loose = {"a": [1, {"b": None}]}
    assert typed(dict[str, Any], loose) == typed(dict[str, object], loose) == loose
    assert typed(object, "a") == "a"


def test_key_that_is_not_known_is_left_out_of_a_dataclass_and_stays_in_a_mapping():
    assert typed(Whole, {"state": "old", "size": 1.5, "later": 1}) == Whole("old", 1.5)
    assert typed(Part, {"name": "a", "later": 1}) == {"name": "a", "later": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "odd"}, 'state is "odd", where one of new, old belongs'),
        ({"state": ["new"]}, 'state is ["new"], where one of new, old belongs'),
        ({"size": "1"}, 'size is "1", where a number belongs'),
        ({"size": True}, "size is true, where a number belongs"),
        ({"count": 1.5}, "count is 1.5, where a whole number belongs"),
        ({"parts": {}}, "parts is {}, where a list belongs"),
        ({"parts": [{"name": "a"}, 1]}, "parts[1] is 1, where a mapping belongs"),
        ({"parts": [{"note": "a"}]}, "parts[0].name is missing"),
        ({"parts": [{"name": "a", "note": None}]}, "parts[0].note is null, where text belongs"),
        ({"words": {"a": 1}}, "words.a is 1, where text belongs"),
        ({"words": ["a"]}, 'words is ["a"], where a mapping belongs'),
        ({"loose": {}}, "loose.name is missing"),
    ],
)
def test_field_that_does_not_fit_is_named_with_its_value(change, words):
    with pytest.raises(MisfitError) as raised:
        typed(Whole, {"state": "new", "size": 1, **change})
    assert raised.value.message == words


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

    @staticmethod
    def from_document(document):
        return document if "first" in document else {"first": document}


def test_kind_of_a_union_is_reported_by_its_needed_keys_and_its_field_that_does_not_fit_is_named():
    for value, words in (
        ({"path": 1}, "first.path is 1, where text belongs"),
        ({"name": "t", "columns": [1]}, "first.columns[0] is 1, where text belongs"),
        ({"other": 1}, 'first is {"other": 1}, where '),
    ):
        with pytest.raises(MisfitError) as raised:
            typed(Listed, {"first": value})
        assert raised.value.message.startswith(words)


def test_sequence_is_read_as_a_list():
    assert typed(str | Mapping[str, str] | Sequence[str], ["a"]) == ["a"]
    with pytest.raises(MisfitError, match="where a list belongs"):
        typed(Sequence[str], {"a": 1})


def test_document_of_an_earlier_form_is_brought_to_the_names_of_the_fields():
    assert typed(Listed, {"name": "t"}) == Listed(Table("t"))


def test_what_is_nested_a_thousandfold_fits_no_plain_type():
    value = ["a"]
    for _ in range(1000):
        value = [value]
    assert not fits(list[str], value)
    assert fits(list[str], ["a"])


@pytest.mark.parametrize(("value", "shown"), [(b"x", "b'x'"), ([{1}], "{1}")])
def test_value_that_json_does_not_know_is_told_as_one_that_does_not_fit(value, shown):
    with pytest.raises(MisfitError) as caught:
        typed(str, value)
    assert shown in caught.value.message

"""Arguments of a pipeline's function come from --set and the engine, read as the function declares them."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, List, Optional, Union  # noqa: UP035 (as TFX's examples write them)

import pytest
from pydantic import Field

from slipway.pipeline.engine.tfx.arguments import arguments
from slipway.pipeline.errors import UsageError

if TYPE_CHECKING:
    from users_library import Connection


class Proto:
    """What no text can stand for."""


def create(pipeline_name: str, pipeline_root: str, data_root: str, steps: int, fast: bool = False, **rest):
    """As the examples of TFX declare it."""


def test_arguments_are_what_was_set_and_what_the_engine_knows():
    values = {"data_root": "/data", "steps": "10", "fast": "yes", "other": "1"}
    assert arguments(create, name="a.b:create", output=Path("/out"), values=values) == {
        "pipeline_name": "b",
        "pipeline_root": "/out/artifacts/b",
        "data_root": "/data",
        "steps": 10,
        "fast": True,
    }


def test_missing_arguments_are_all_named():
    with pytest.raises(UsageError, match="the function needs data_root, steps") as error:
        arguments(create, name="a:create", output=Path("/out"), values={})
    assert error.value.hint == "give each with --set NAME=VALUE"


@pytest.mark.parametrize(("key", "value", "kind"), [("steps", "ten", "int"), ("fast", "maybe", "bool")])
def test_a_value_of_another_type_is_refused(key, value, kind):
    with pytest.raises(UsageError, match=f"--set {key}={value}: must be of type {kind}"):
        arguments(
            create, name="a:create", output=Path("/out"), values={"data_root": "d", "steps": "1", key: value}
        )


def test_a_function_without_arguments_takes_none():
    assert arguments(lambda: None, name="a:b", output=Path("/out"), values={"word": "x"}) == {}


def flexible(
    flag: Optional[bool] = None,  # noqa: UP045
    steps: "int | None" = None,
    words: Optional[List[str]] = None,  # noqa: UP006, UP045
    numbers: list[int] | None = None,
    rates: dict[str, float] | None = None,
    place: str | Path = "",
    either: Union[Proto, str] = "",  # noqa: UP007
    proto: Proto | None = None,
    later: "Connection | None" = None,
    bare=None,
    items: Iterable[str] = (),
    codes: Optional[Collection[int]] = None,  # noqa: UP045
    things: Iterable = (),
    pairs: Iterable[Iterable[str]] = (),
    noted: Annotated[Iterable[str], "columns"] = (),
    few: Annotated[Collection[str] | None, Field(max_length=2)] = None,
    lists: list[Annotated[Iterable[str], "rows"]] | None = None,
    by_name: dict[str, Iterable[str]] | None = None,
    any_of: Annotated[Iterable[str], "columns"] | None = None,
):
    """Declares its arguments in every way."""


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("flag", "false", False),
        ("flag", "yes", True),
        ("flag", "none", None),
        ("steps", "10", 10),
        ("steps", "null", None),
        ("words", "a,b", ["a", "b"]),
        ("words", '["a", "b"]', ["a", "b"]),
        ("words", "a", ["a"]),
        ("words", "a, b c", ["a", "b c"]),
        ("words", "", []),
        ("words", '[" a"]', [" a"]),
        ("numbers", "1,2", [1, 2]),
        ("items", "a,b", ["a", "b"]),
        ("items", '["a,b"]', ["a,b"]),
        ("codes", "1,2", [1, 2]),
        ("codes", "none", None),
        ("things", "a,b", ["a", "b"]),
        ("pairs", '[["a", "b"], ["c"]]', [["a", "b"], ["c"]]),
        ("noted", "a,b", ["a", "b"]),
        ("few", "a,b", ["a", "b"]),
        ("few", "none", None),
        ("lists", '[["a", "b"], ["c"]]', [["a", "b"], ["c"]]),
        ("by_name", '{"x": ["a", "b"]}', {"x": ["a", "b"]}),
        ("any_of", "a,b", ["a", "b"]),
        ("any_of", "none", None),
        ("numbers", "[]", []),
        ("rates", '{"a": 0.5}', {"a": 0.5}),
        ("place", "/data", "/data"),
        ("either", "text", "text"),
        ("later", "text", "text"),
        ("bare", "false", "false"),
    ],
)
def test_text_is_read_as_the_function_declares_it(key, text, value):
    assert arguments(flexible, name="a:b", output=Path("/out"), values={key: text}) == {key: value}


@pytest.mark.parametrize(
    ("key", "text", "kind"),
    [
        ("flag", "maybe", r"Optional\[bool\]"),
        ("steps", "ten", r"int \| None"),
        ("numbers", "1,b", r"list\[int\] \| None"),
        ("proto", "text", r".*Proto \| None"),
    ],
)
def test_text_that_is_none_of_the_declared_type_is_refused(key, text, kind):
    with pytest.raises(UsageError, match=rf"--set {key}={text}: must be of type {kind}"):
        arguments(flexible, name="a:b", output=Path("/out"), values={key: text})

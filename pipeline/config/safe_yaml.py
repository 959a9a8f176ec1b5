"""Reads YAML as plain data with the line of every key, without YAML's dangerous or surprising features.

Tags, anchors, aliases, merge keys, duplicate keys and further documents are rejected, size and depth are
limited, and only text that all YAML versions read alike becomes a number, a boolean or null: `no`, `on`,
`010`, `1:30`, `0x1f` and `2024-01-02` stay text.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import yaml

from slipway.pipeline.config.secret_names import hides_value
from slipway.pipeline.errors import ConfigError

Scalar = str | int | float | bool | None
Value = Scalar | list["Value"] | dict[str, "Value"]
KeyPath = tuple[str | int, ...]

MAX_BYTES = 1_000_000
MAX_DEPTH = 32
_MAX_SHOWN_CHARS = 60
_PLAIN_KEY = re.compile(rf"[\w-]{{1,{_MAX_SHOWN_CHARS}}}", re.ASCII)

_NULL = re.compile(r"(?:null|Null|NULL|~)?")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# YAML's own set of allowed characters (YAML 1.2, production c-printable).
_FORBIDDEN_CHARACTER = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# The parser's messages -> plain words. The first match counts.
_PLAIN_WORDS = (
    (
        "mapping values are not allowed",
        "a ': ' too many, or the line is indented too far; quote text with ': '",
    ),
    (
        "block sequence entries are not allowed",
        "a list item '- ' is not allowed here; begin the list on a new line",
    ),
    (
        "did not find expected key",
        "not aligned with the keys around it; check the indentation and the quotes",
    ),
    (
        "did not find expected '-' indicator",
        "not aligned with the list items above it; check the indentation",
    ),
    ("could not find expected ':'", "the ': ' after a key is missing"),
    ("did not find expected ',' or ']'", "the list in [ ] is not closed, or a comma is missing"),
    ("did not find expected ',' or '}'", "the mapping in { } is not closed, or a comma is missing"),
    ("found unexpected end of stream", "a quote is not closed"),
    ("found unexpected document indicator", "a quote is not closed"),
    ("unknown escape character", "an unknown escape after '\\'; use single quotes to take '\\' as it is"),
    ("did not find expected node content", "a value is missing here"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a key: `line` counts from 1; `text` is a scalar as written, "" for a list or mapping."""

    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file as plain data; `places` has the place of each key and list item, by its path."""

    data: Value
    places: dict[KeyPath, Place] = field(default_factory=dict)


def read_yaml(raw: bytes | str, *, name: str) -> Document:
    """Read one YAML document of at most MAX_BYTES and MAX_DEPTH levels; an empty one has the data None.

    Args:
        raw: the file's content; bytes are UTF-8, with or without a byte order mark.
        name: the name of the file in messages.

    Raises:
        ConfigError: `name:line: what is wrong; what to write instead`.
    """
    text = _decode(raw, name)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(name, iter(yaml.parse(text, Loader=loader)), text.splitlines()).document()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, name) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not YAML: {error}") from error


def shown(value: object) -> str:
    """Format a value for a message: on one line, shortened, with control and direction characters escaped."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return shortened(repr(value))


def shown_key(path: KeyPath) -> str:
    """Format a key path for a message, as `train.batch_size`; what is no short plain word is quoted."""
    return ".".join(str(part) if _PLAIN_KEY.fullmatch(str(part)) else shown(part) for part in path)


def shortened(text: str) -> str:
    """Return the text, cut where it is too long for a message."""
    return text if len(text) <= _MAX_SHOWN_CHARS else text[: _MAX_SHOWN_CHARS - 3] + "..."


def _decode(raw: bytes | str, name: str) -> str:
    # Checked before any work. Text never has more characters than bytes, so the limit holds for both.
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{name}: {len(raw)} bytes; at most {MAX_BYTES} are read")
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise ConfigError(f"{name}:{line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from error
    text = text.removeprefix("\ufeff")
    if found := _FORBIDDEN_CHARACTER.search(text):
        line = text.count("\n", 0, found.start()) + 1
        code = f"U+{ord(found.group()):04X}"
        raise ConfigError(f"{name}:{line}: the invisible character {code} is not allowed in YAML; remove it")
    return text


def _syntax_error(error: yaml.MarkedYAMLError, text: str, name: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "not YAML"
    if mark is None:
        return ConfigError(f"{name}: {problem}")
    if "cannot start any token" in problem:
        character = text[mark.index : mark.index + 1]
        if character == "\t":
            words = "a tab indents this line; YAML takes spaces only"
        else:
            words = f"text cannot begin with {shown(character)}; put it in quotes"
    else:
        words = next((plain for said, plain in _PLAIN_WORDS if said in problem), problem)
        # Point to the opening quote or bracket, or to the key; the parser stops far behind it.
        if "not closed" in words or "after a key" in words:
            mark = error.context_mark or mark
    return ConfigError(f"{name}:{mark.line + 1}: {words} (column {mark.column + 1})")


def _as_given(path: KeyPath, text: str) -> str:
    """Return the key and its number for a message; a number that may be a secret is left out.

    Without a key, as for `--set KEY=NUMBER`, whose key is not known here, the result is empty.
    """
    if not path:
        return ""
    number = "" if any(hides_value(str(part)) for part in path) else f" = {shortened(text)}"
    return f"{shown_key(path)}{number}: "


def _no_indirection(sign: str, kind: str, remedy: str) -> str:
    # Its name is not repeated: it may be a password that begins with the sign.
    return f"text that begins with {sign} is {kind}, which is not allowed; {remedy}, or quote the text"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Reader:
    """Builds the data from the parser's events, which show tags and aliases before they take effect."""

    def __init__(self, name: str, events: Iterator[yaml.Event], lines: Sequence[str]) -> None:
        self._name = name
        self._events = events
        self._lines = lines
        self._places: dict[KeyPath, Place] = {}

    def document(self) -> Document:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return Document(None)
        data = self._value(next(self._events), ())
        next(self._events)  # the document's end
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise self._refused(following, "a second document begins after '---'; a file holds one")
        return Document(data, self._places)

    def _value(self, event: yaml.Event, path: KeyPath) -> Value:
        self._refuse_indirection(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if len(path) >= MAX_DEPTH:
            raise self._refused(event, f"nested deeper than {MAX_DEPTH} levels")
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._list(path)

    def _refuse_indirection(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._refused(event, _no_indirection("*", "an alias", "repeat the value"))
        if getattr(event, "anchor", None):
            raise self._refused(event, _no_indirection("&", "an anchor", "repeat the value"))
        if getattr(event, "tag", None):
            raise self._refused(event, _no_indirection("!", "a tag", "remove it"))

    def _mapping(self, path: KeyPath) -> dict[str, Value]:
        mapping: dict[str, Value] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            here = (*path, key)
            if key in mapping:
                first = self._places[here].line
                raise self._refused(event, f"{shown_key(here)}: given twice, first on line {first}; keep one")
            line = _line(event)
            value_event = next(self._events)
            text = value_event.value if isinstance(value_event, yaml.ScalarEvent) else ""
            self._places[here] = Place(line, text)
            mapping[key] = self._value(value_event, here)
        return mapping

    def _key(self, event: yaml.Event) -> str:
        self._refuse_indirection(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refused(event, "a list or mapping is used as a key; keys are text")
        mark = event.start_mark
        begins_before = (
            mark is not None and self._lines[mark.line][max(mark.column - 1, 0) : mark.column] == "?"
        )
        if event.value and begins_before:  # [?x] would be {x: null}
            raise self._refused(event, "text that begins with ? is a key to YAML; put it in quotes")
        if not event.style and event.value == "<<":
            raise self._refused(event, "the merge key '<<' is not allowed; repeat the keys")
        key = self._scalar(event, ())
        if type(key) is int:
            return str(key)  # as in JSON, whose keys are text; class codes are such keys
        if not isinstance(key, str):
            raise self._refused(event, f"the key {shown(key)} is not text; put it in quotes")
        return key

    def _list(self, path: KeyPath) -> list[Value]:
        items: list[Value] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            here = (*path, len(items))
            text = event.value if isinstance(event, yaml.ScalarEvent) else ""
            self._places[here] = Place(_line(event), text)
            items.append(self._value(event, here))
        return items

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> Scalar:
        text = event.value
        if event.style or not text.isascii():  # quoted, folded or literal: always text
            return text
        if _NULL.fullmatch(text):
            return None
        if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
            return text.lower() == "true"
        prefix = _as_given(path, text)
        if _INTEGER.fullmatch(text):
            # Larger numbers are exact only in Python: JSON readers, TensorFlow and databases have 64 bits.
            if len(text) > 20 or abs(int(text)) >= 2**63:
                raise self._refused(event, f"{prefix}a whole number must fit in 64 bits; quote text")
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if math.isinf(number):
                raise self._refused(event, f"{prefix}too large for a number")
            return number
        if _NOT_FINITE.fullmatch(text):
            raise self._refused(event, f"{prefix}a number must be finite")
        return text

    def _refused(self, event: yaml.Event, words: str) -> ConfigError:
        return ConfigError(f"{self._name}:{_line(event)}: {words}")

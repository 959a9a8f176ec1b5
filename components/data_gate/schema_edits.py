"""Edits a schema file (protobuf text) and leaves the rest of its text unchanged, including comments. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slipway.components.data_gate.finding import Edit
from slipway.components.errors import ComponentError

# A comment, a quoted text, a brace, a word, or one other character: enough to find blocks and fields.
_TOKEN = re.compile(
    r'#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[{}<>]|[A-Za-z_][\w.]*|[^\s]', re.ASCII
)
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class _Block:
    """A message in braces.

    Attributes:
        name: the name of the field whose value the message is.
        start: the position of that name.
        depth: the nesting depth; 0 at the top of the file.
    """

    name: str
    start: int
    open: int
    close: int
    depth: int


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the schema with the edits applied.

    Raises:
        ComponentError: the schema lacks the feature or its domain, or its braces do not match.
    """
    for edit in edits:
        text = _EDITORS[edit.kind](text, edit)
    return text


def _add_values(text: str, edit: Edit) -> str:
    feature = _feature(text, edit.feature)
    own = _inner(text, feature, "string_domain")
    domain = own or _shared_domain(text, feature, edit.feature)
    there = set(_scalars(text, domain, "value"))
    lines = [f"value: {_quoted(value)}" for value in edit.values if value not in there]
    return _insert_last(text, domain, lines)


def _set_range(text: str, edit: Edit) -> str:
    feature = _feature(text, edit.feature)
    domain = _inner(text, feature, "int_domain") or _inner(text, feature, "float_domain")
    if domain is None:
        raise _unexpected(edit.feature, "int_domain or float_domain")
    return _set_scalar(text, domain, edit.text, _number(edit.number, is_whole=domain.name == "int_domain"))


def _set_presence(text: str, edit: Edit) -> str:
    text = _without_fixed_shape(text, _feature(text, edit.feature))
    return _set_number(text, edit, "presence", "min_fraction", beside=" min_count: 1")


def _without_fixed_shape(text: str, feature: _Block) -> str:
    """Replace a fixed shape by at most one value, since the feature may now be missing."""
    shape = _inner(text, feature, "shape")
    if shape is None:
        return text
    return f"{text[: shape.start]}value_count {{ min: 0 max: 1 }}{text[shape.close + 1 :]}"


def _set_mass(text: str, edit: Edit) -> str:
    return _set_number(text, edit, "distribution_constraints", "min_domain_mass")


def _set_number(text: str, edit: Edit, block: str, field: str, *, beside: str = "") -> str:
    """Set a number in a block of a feature; a block that is missing is made, with what belongs beside it."""
    feature, number = _feature(text, edit.feature), _number(edit.number)
    there = _inner(text, feature, block)
    if there is None:
        return _insert_last(text, feature, [f"{block} {{ {field}: {number}{beside} }}"])
    return _set_scalar(text, there, field, number)


def _add_feature(text: str, edit: Edit) -> str:
    lines = [
        "feature {",
        f"{_INDENT}name: {_quoted(edit.feature)}",
        f"{_INDENT}type: {edit.text}",
        f"{_INDENT}value_count {{ min: 0 max: 1 }}",
        "}",
    ]
    return f"{text.rstrip()}\n" + "\n".join(lines) + "\n"


def _deprecate(text: str, edit: Edit) -> str:
    feature = _feature(text, edit.feature)
    return _set_scalar(text, feature, "lifecycle_stage", "DEPRECATED")


_EDITORS = {
    "add_values": _add_values,
    "set_range": _set_range,
    "set_presence": _set_presence,
    "set_mass": _set_mass,
    "add_feature": _add_feature,
    "deprecate": _deprecate,
}


def _feature(text: str, name: str) -> _Block:
    for block in _blocks(text):
        if block.depth == 0 and block.name == "feature" and name in _scalars(text, block, "name"):
            return block
    raise ComponentError(
        f"the schema has no feature {name!r}", hint="it was edited since the run; run again, then accept"
    )


def _shared_domain(text: str, feature: _Block, name: str) -> _Block:
    names = list(_scalars(text, feature, "domain"))
    for block in _blocks(text):
        if (
            block.depth == 0
            and block.name == "string_domain"
            and set(_scalars(text, block, "name")) & {*names}
        ):
            return block
    raise _unexpected(name, "domain of texts")


def _unexpected(feature: str, what: str) -> ComponentError:
    return ComponentError(
        f"the schema's feature {feature!r} has no {what}",
        hint="it was edited since the run; run again, then accept",
    )


def _inner(text: str, outer: _Block, name: str) -> _Block | None:
    inside = (b for b in _blocks(text) if outer.open < b.open < outer.close and b.depth == outer.depth + 1)
    return next((block for block in inside if block.name == name), None)


def _tokens(text: str) -> Iterator[re.Match[str]]:
    return (token for token in _TOKEN.finditer(text) if not token[0].startswith("#"))


def _blocks(text: str) -> list[_Block]:
    """Return every message in braces, in closing order."""
    found: list[_Block] = []
    open_ones: list[tuple[str, int, int]] = []
    name, start = "", 0
    for token in _tokens(text):
        if token[0] in "{<":
            open_ones.append((name, start, token.start()))
        elif token[0] in "}>":
            if not open_ones:
                raise ComponentError("the schema closes a brace that was never opened")
            block_name, block_start, opened = open_ones.pop()
            found.append(_Block(block_name, block_start, opened, token.start(), len(open_ones)))
        elif token[0] != ":":
            name, start = token[0], token.start()
    return found


def _fields(text: str, block: _Block) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the name and the value's first token of each scalar field of a message, without nested ones."""
    depth, before, colon = 0, "", False
    for token in _TOKEN.finditer(text, block.open + 1, block.close):
        word = token[0]
        if word.startswith("#"):
            continue
        if word in "{<":
            depth += 1
        elif word in "}>":
            depth -= 1
        elif depth == 0 and colon:
            yield before, token
        colon = word == ":"
        before = before if colon else word


def _scalars(text: str, block: _Block, name: str) -> Iterator[str]:
    return (_unquoted(token[0]) for field, token in _fields(text, block) if field == name)


def _set_scalar(text: str, block: _Block, name: str, value: str) -> str:
    """Return the text with the field set; a number is several tokens (`-`, digits, `.`), so find its end."""
    for field, token in _fields(text, block):
        if field == name:
            end = token.end()
            while end < block.close and not text[end].isspace() and text[end] not in "}>#;,":
                end += 1
            return f"{text[: token.start()]}{value}{text[end:]}"
    return _insert_last(text, block, [f"{name}: {value}"])


def _insert_last(text: str, block: _Block, lines: list[str]) -> str:
    """Return the text with the lines added at the end of the block; a one-line block stays on one line."""
    if not lines:
        return text
    before = text[: block.close]
    if "\n" not in text[block.open : block.close]:
        inside = before.rstrip()
        return f"{inside} {' '.join(lines)} {text[block.close :]}"
    own_line = before.rfind("\n") + 1
    margin = text[own_line : block.close]
    if margin.strip():  # the closing brace follows the last field on the same line
        return f"{before.rstrip()}\n{_INDENT}{f'{chr(10)}{_INDENT}'.join(lines)}\n{text[block.close :]}"
    added = "".join(f"{margin}{_INDENT}{line}\n" for line in lines)
    return f"{text[:own_line]}{added}{text[own_line:]}"


def _number(number: float | None, *, is_whole: bool = False) -> str:
    value = float(number or 0.0)
    if is_whole:
        return str(int(value))
    return repr(value)


def _quoted(value: str) -> str:
    out = []
    for letter in value:
        if letter in '"\\':
            out.append(f"\\{letter}")
        elif letter.isprintable():
            out.append(letter)
        else:
            out += [f"\\{byte:03o}" for byte in letter.encode()]
    return f'"{"".join(out)}"'


def _unquoted(text: str) -> str:
    """Unquote a text as protobuf does; only the escapes used in schemas are known."""
    if len(text) < 2 or text[0] not in "\"'":
        return text
    simple = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}

    def escaped(match: re.Match[bytes]) -> bytes:
        code = match[1].decode("ascii")
        if code[0] in "01234567":
            return bytes([int(code, 8) & 255])
        if code[0] in "xX":
            return bytes([int(code[1:], 16)])
        return simple.get(code, code.encode())

    raw = text[1:-1].encode()
    return re.sub(rb"\\([0-7]{1,3}|[xX][0-9a-fA-F]{1,2}|.)", escaped, raw).decode("utf-8", "replace")

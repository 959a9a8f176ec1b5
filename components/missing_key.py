"""Describes a missing key together with the keys that exist, since a KeyError names only the former."""

import ast
import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from types import TracebackType

from slipway.components.counted_words import first_of
from slipway.components.nearest import nearest

_SHOWN = 40


@dataclass(frozen=True)
class MissingKey:
    """A requested key that does not exist.

    Attributes:
        holder: the name of the mapping in the code.
        names: the mapping's keys, in order.
    """

    holder: str
    key: str
    names: tuple[str, ...]

    @property
    def words(self) -> str:
        """The missing key, and the nearest name if one is close."""
        near = nearest(self.key, self.names)
        return f"{self.holder} has no {self.key!r}" + (f"; nearest: {near!r}" if near else "")

    @property
    def there(self) -> str:
        """The keys that exist."""
        return f"{self.holder} has {first_of(self.names, _SHOWN) or 'nothing'}"


def missing_key(error: BaseException) -> MissingKey | None:
    """Return the missing key if an error was raised by `mapping["name"]` or `mapping.pop("name")`, else None.

    Args:
        error: the caught error, with its traceback; the source of its last frame must still be readable.
    """
    if not isinstance(error, KeyError) or not error.args or not isinstance(error.args[0], str):
        return None
    place = error.__traceback__
    if place is None:
        return None
    while place.tb_next is not None:
        place = place.tb_next
    holder = _holder(_failing_expression(place))
    frame = place.tb_frame
    mapping = frame.f_locals.get(holder, frame.f_globals.get(holder))
    if not isinstance(mapping, Mapping) or error.args[0] in mapping:
        return None
    return MissingKey(holder, error.args[0], tuple(map(str, mapping)))


def _failing_expression(place: TracebackType) -> ast.expr | None:
    """Return the expression whose evaluation failed, from the columns that the bytecode records, or None."""
    code = place.tb_frame.f_code
    span = next(islice(code.co_positions(), place.tb_lasti // 2, None), None)
    if span is None or None in span:
        return None
    first, last, start, end = (position or 0 for position in span)
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(first, last + 1)]
    lines[-1] = lines[-1][:end]  # columns count bytes
    lines[0] = lines[0][start:]
    try:
        return ast.parse(f"({b''.join(lines).decode()})", mode="eval").body
    except (SyntaxError, UnicodeDecodeError):  # the file has changed since it was imported
        return None


def _holder(expression: ast.expr | None) -> str:
    """Return the name of the mapping that the expression looks a key up in; "" if it is not a plain name."""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        asked: ast.expr = expression.func.value
    elif isinstance(expression, ast.Subscript):
        asked = expression.value
    else:
        return ""
    return asked.id if isinstance(asked, ast.Name) else ""

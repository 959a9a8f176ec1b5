"""Templates whose output is code, YAML, protobuf text and Markdown; what a user's data holds stays data."""

import html
import json
import re
from typing import Any

import jinja2
from google.protobuf import text_encoding

from pipeline.local.printable import printable


def environment(folder: str = "templates") -> jinja2.Environment:
    """The templates of a folder, with a filter for each language that is written.

    Args:
        folder: in this package.
    """
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("pipeline.start", folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # What is written is no HTML: each place has the filter of its own language.
        autoescape=False,  # noqa: S701
    )
    made.filters |= {"literal": _literal, "proto": _proto, "line": line, "text": _text}
    return made


def _literal(value: Any) -> str:
    """The value as Python, YAML and JSON all write it."""
    return json.dumps(value, ensure_ascii=True)


def _proto(value: str) -> str:
    return f'"{text_encoding.CEscape(value.encode(), as_utf8=True)}"'


def line(value: object) -> str:
    """One line of a comment, whatever stands in the name of a column."""
    return " ".join(printable(str(value)).replace('"""', "'''").replace("\\", "/").split())


def _text(value: object) -> str:
    """One cell of a table in Markdown."""
    escaped = html.escape(line(value), quote=False)
    return re.sub(r"([|`*_\[\]])", r"\\\1", escaped)

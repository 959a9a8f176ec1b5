"""Renders templates to code, YAML, protobuf text and Markdown, and escapes the user's data in each."""

import functools
import html
import json
import re
from collections.abc import Mapping
from typing import Any

import jinja2
from google.protobuf import text_encoding

from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import program_name
from slipway.pipeline.terminal.printable import printable

_LAST_OF_FOUR_DIGITS = 0xFFFF
_LINE = 110


def workload_files(
    name: str, values: Mapping[str, object], *, about: str, folder: str = "templates"
) -> dict[str, str]:
    """Render the files of a workload: path relative to the project's root -> content.

    Args:
        name: the workload's name: a letter, then lower-case letters, digits and _.
        about: what the workload does: one sentence without the full stop.
        folder: the folder of the templates in this package.
    """
    here = f"workloads/{name}"
    templates = {
        f"schemas/{name}.pbtxt": "schema.pbtxt",
        f"{here}/workload.yaml": "workload.yaml",
        f"{here}/preprocessing.py": "preprocessing.py",
        f"{here}/model.py": "model.py",
        f"{here}/README.md": "README.md",
        f"tests/unit/workloads/test_{name}.py": "test.py",
    }
    jinja = load_templates(folder)
    files = {path: jinja.get_template(f"{each}.j2").render(values) for path, each in templates.items()}
    return {f"{here}/__init__.py": f'"""{line(about)}; see README.md."""\n', **files}


def load_templates(folder: str) -> jinja2.Environment:
    """Return the Jinja environment of a template folder, with an escaping filter for each output language."""
    made = _environment(folder)
    made.globals["slipway"] = program_name()
    return made


@functools.cache  # it keeps the templates that it has compiled
def _environment(folder: str) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("slipway.pipeline.start", folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The output is not HTML; each expression in a template uses the filter of its language.
        autoescape=False,  # noqa: S701
    )
    made.filters |= {"literal": _literal, "wrapped": _wrapped, "proto": _proto, "line": line, "text": _text}
    return made


def _literal(value: Any) -> str:
    r"""Return a literal that is valid in both Python and YAML, in ASCII: JSON, but with \U0001f600 escapes.

    JSON escapes a character beyond U+FFFF as two surrogates, which neither Python nor YAML joins again.

    Raises:
        UsageError: the value holds a lone surrogate, which no text file can hold.
    """
    text = utf8(json.dumps(value, ensure_ascii=False)).decode()
    return re.sub(r"[^ -~]", _escaped, text)


def _wrapped(values: list[Any], column: str) -> str:
    """Return the values of a row's column as a literal; if they are too long for a line, one on each."""
    whole = _literal(values)
    if len(f"        {_literal(column)}: {whole},") <= _LINE:
        return whole
    lines = [f"            {_literal(value)}," for value in values]
    # A category is kept whole, however long.
    marked = [f"{each}  # noqa: E501" if len(each) > _LINE else each for each in lines]
    return "\n".join(["[", *marked, "        ]"])


def _escaped(letter: re.Match[str]) -> str:
    code = ord(letter.group())
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else f"\\U{code:08x}"


def _proto(value: str) -> str:
    return f'"{text_encoding.CEscape(utf8(value), as_utf8=True)}"'


def utf8(text: str) -> bytes:
    """Encode a text for a file.

    Raises:
        UsageError: the text holds a lone surrogate, which no text file can hold.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:  # Python represents undecodable bytes of a file name as lone surrogates
        raise UsageError(
            f"{printable(text)} holds bytes that are not UTF-8.", hint="rename that file or folder"
        ) from None


def line(value: object) -> str:
    """Return a value as a single line that is safe in a comment or a docstring, whatever it holds."""
    return " ".join(printable(str(value)).replace('"""', "'''").replace("\\", "/").split())


def _text(value: object) -> str:
    """Escape a value for one cell of a Markdown table."""
    escaped = html.escape(line(value), quote=False)
    return re.sub(r"([|`*_\[\]])", r"\\\1", escaped)

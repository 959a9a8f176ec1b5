"""Renders and writes the report pages: Jinja templates, colours, and the content security policy."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from slipway.components.atomic_file import whole_file
from slipway.pipeline.report import graph_layout
from slipway.pipeline.report.data import REFERENCE, shown_splits
from slipway.pipeline.report.index import PAGE_NAME, index
from slipway.pipeline.report.palette import DARK, LIGHT
from slipway.pipeline.report.predictions import SIDE_PX
from slipway.pipeline.report.run_page import gather
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import MARKS
from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.printable import printable


def write_page(record: RunRecord, output: Path, path: Path | None = None) -> Path:
    """Write the report page of a run atomically and return its path.

    Args:
        output: the folder that holds `runs/`.
        path: the file to write; by default `report.html` in the run's folder.

    Raises:
        OSError: the page cannot be written, or a file of the run cannot be read.
        ValueError: a file of the run is damaged.
    """
    return write("run.html.j2", gather(record, output), path or output / "runs" / record.run_id / PAGE_NAME)


def write_index(records: Sequence[RunRecord], output: Path, path: Path | None = None) -> Path:
    """Write the index page of all runs atomically and return its path.

    Args:
        records: the runs, newest first.
        output: the folder that holds `runs/`.
        path: the file to write; by default `report.html` in `output`.

    Raises:
        OSError: the page cannot be written.
    """
    path = path or output / PAGE_NAME
    _write(path, render("index.html.j2", index=index(records, output, path.absolute())))
    return path


def write(template: str, page: object, path: Path) -> Path:
    """Write the page that a template makes of its content atomically and return its path.

    Raises:
        OSError: the page cannot be written.
    """
    _write(path, render(template, page=page))
    return path


def render(template: str, **values: Any) -> str:
    """Render a template to HTML; every value is escaped."""
    style, script = _style(), _source("page.js")
    return (
        _environment()
        .get_template(template)
        .render(**values, style=style, script=script, policy=_policy(style, script))
    )


def _policy(style: str, script: str) -> str:
    """Return the content security policy, which allows only the page's own style and script, by digest."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _style() -> str:
    schemes = {"light": LIGHT, "dark": DARK}
    return _environment().get_template("page.css.j2").render(schemes=schemes)


@cache
def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None  # noqa: S101
    return environment.loader.get_source(environment, name)[0]


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("slipway.pipeline.report"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(seconds=seconds, breakable=_breakable)
    environment.globals.update(
        marks=MARKS,
        side=SIDE_PX,
        reference=REFERENCE,
        shown_splits=shown_splits,
        box_width=graph_layout.BOX_WIDTH_PX,
        box_height=graph_layout.BOX_HEIGHT_PX,
    )
    return environment


def _shown(value: Any) -> Any:
    """Escape control characters, because some reverse the direction of text; markup is already escaped."""
    if isinstance(value, str) and not isinstance(value, markupsafe.Markup) and not value.isprintable():
        return printable(value)
    return value


def _breakable(name: object) -> markupsafe.Markup:
    """Escape a name and let it break behind each `_` and `.` before a letter, not before its last letters."""
    return markupsafe.Markup("<wbr>").join(re.split(r"(?<=[_.])(?=[^\W\d_])", _shown(str(name))))


def _write(path: Path, text: str) -> None:
    try:
        with whole_file(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        if error.errno:  # name the requested file, not the partial one
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise

"""The commands `report` and `diff`: the report page of a run, of all runs, and of a comparison of two."""

from pathlib import Path
from typing import TYPE_CHECKING

from slipway.pipeline.commands.show import find, runs
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.terminal.invocation import command

# The modules that read workload files take a quarter of a second to import: only commands that need them do.
if TYPE_CHECKING:
    from slipway.pipeline.runs.diff import Difference


def report(name: str | None, output: Path, *, index: bool, path: Path | None) -> Path:
    """Write the report page of a run, or with `index` the page of all runs; return the file.

    Raises:
        UsageError: there is no such run, or no run at all.
        PipelineError: the page cannot be written, or the run's files cannot be read.
    """
    from slipway.pipeline.report.page import write_index, write_page

    if index and name is not None:
        raise UsageError("--index is about all runs: name none.")
    try:
        if index:
            found = runs(output)
            if not found:
                raise UsageError(f"{output.absolute()} has no runs yet.", hint=command("run", output=output))
            return write_index(found, output.absolute(), path)
        return write_page(find(name, output), output.absolute(), path)
    except (OSError, ValueError) as error:
        raise _no_page(error) from error


def diff(old: str, new: str, output: Path) -> "Difference":
    """Return the changes from one run to another; each is named as in `find`."""
    return _difference(find(old, output), find(new, output), output)


def diff_page(old: str, new: str, output: Path, path: Path) -> Path:
    """Write the changes from one run to another as a page; return the file.

    Raises:
        UsageError: there is no such run.
        PipelineError: the page cannot be written.
    """
    from slipway.pipeline.report.difference_page import difference_page
    from slipway.pipeline.report.page import write

    before, after = find(old, output), find(new, output)
    try:
        page = difference_page(_difference(before, after, output), before, after)
        return write("difference.html.j2", page, path)
    except OSError as error:
        raise _no_page(error) from error


def _no_page(error: OSError | ValueError) -> PipelineError:
    words = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        words = f"{error.filename}: {error.strerror}"
    return PipelineError(f"The page cannot be written: {words}", hint="another file: -o FILE")


def _difference(before: RunRecord, after: RunRecord, output: Path) -> "Difference":
    from slipway.pipeline.runs.diff import compare, read_fingerprints

    history = History(output.absolute())
    prints = [read_fingerprints(history.folder(record.run_id)) for record in (before, after)]
    return compare(before, after, *prints)

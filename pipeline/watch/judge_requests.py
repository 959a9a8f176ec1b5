"""Compares logged requests with the training data by the hour or day, and reports what drifted."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from slipway.components.counted_words import agreeing, counted
from slipway.components.data_gate.finding import RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.statistics import (
    FeatureStatistics,
    SplitStatistics,
    without_empty_texts,
)
from slipway.pipeline.errors import UsageError
from slipway.pipeline.exit_codes import DONE, GATE_STOPPED
from slipway.pipeline.watch.column_statistics import at_cuts_of, statistics_of
from slipway.pipeline.watch.drift import Drifted, Judged, drifted, judge_window
from slipway.pipeline.watch.live_metrics import LiveMetric
from slipway.pipeline.watch.log_folder import Logs, left_out_lines
from slipway.pipeline.watch.requests import Requests, read_requests
from slipway.pipeline.watch.windows import By, Window, after, windows

_MISFITS = "rows with a value of another type than in training"
_AHEAD = "rows dated after the current {}, by another clock"


@dataclass(frozen=True)
class WatchRequest:
    """The requests to judge, and the rules.

    Attributes:
        by: the unit of windows.
        skip: columns not to compare, such as times, which always advance.
        inputs: the columns that the version takes; empty if unknown. Another one that no request has a value
            of is not compared: no request has it.
    """

    workload: str
    version: int
    logs: Logs
    by: By
    limits: Limits
    skip: Collection[str] = ()
    inputs: Collection[str] = ()


@dataclass(frozen=True)
class Watched:
    """The result of judging the requests.

    Attributes:
        rows: the number of rows that the version has answered.
        not_logged: columns of the training data that the requests lack, or that hold lists.
        windows: the windows, earliest first.
        drifted: the columns that have drifted in the newest window.
        live: the metrics of rows with late labels; empty if no labels were given.
        labelled: the number of these rows.
        not_finite: the number of these rows whose answer is NaN or infinite.
        labelled_left_out: counts of rows with a label that are left out, by reason.
        lacking: how many files lack a column that others have, by column; it is not compared.
        ahead: how many rows are dated after the current hour or day, by the clocks of those who logged them;
            they are left out.
        misfits: how many rows are left out, since a value has another type than in training.
    """

    request: WatchRequest
    rows: int
    columns: tuple[str, ...]
    not_logged: tuple[str, ...]
    windows: tuple[Judged, ...]
    drifted: tuple[Drifted, ...]
    live: tuple[LiveMetric, ...] = ()
    labelled: int = 0
    not_finite: int = 0
    labelled_left_out: Mapping[str, int] = field(default_factory=dict)
    lacking: Mapping[str, int] = field(default_factory=dict)
    ahead: int = 0
    misfits: int = 0

    @property
    def exit_code(self) -> int:
        """The exit code of a run that a gate stopped if something has drifted or is worse; otherwise 0."""
        return DONE if self.is_right else GATE_STOPPED

    @property
    def is_right(self) -> bool:
        """Whether no column has drifted, no live metric is worse than at the push, and each answer to a row
        with a label is a finite number."""
        return not (self.drifted or self.not_finite or any(each.is_worse for each in self.live))

    @property
    def sentence(self) -> str:
        """The outcome in one sentence, and a second one about live metrics if there are any."""
        return " ".join(filter(None, [self._of_drift, self._of_labels]))

    @property
    def _of_drift(self) -> str:
        judged = f"the requests to version {self.request.version} of {self.request.workload}"
        if not self.drifted:
            newest = self.windows[-1]
            span = " to ".join(dict.fromkeys([self.windows[0].name, newest.last or newest.name]))
            compared = f"{counted(self.rows, 'row')}, {counted(len(self.columns), 'column')}, {span}"
            return f"Nothing has drifted in {judged}: {compared}."
        since = ", ".join(f"{each.column} {_since(each)}" for each in self.drifted)
        return f"{len(self.drifted)} of {counted(len(self.columns), 'column')} drifted in {judged}: {since}."

    @property
    def _of_labels(self) -> str:
        if not self.live:
            return ""
        told = "; ".join(each.text for each in self.live)
        unsound = ""
        if self.not_finite:
            verb = agreeing(self.not_finite, "have")
            unsound = f", of which {self.not_finite:,} {verb} an answer that is no finite number"
        least = self.request.limits.min_rows
        few = f", too few to judge (data_gate.min_rows is {least})" if self.labelled < least else ""
        return f"In {counted(self.labelled, 'row')} with a label{unsound}{few}: {told}."

    @property
    def left_out_counts(self) -> dict[str, int]:
        """What was left out or is incomplete: counts, by reason in words."""
        lacking = {f"files without {name}, which is not compared": n for name, n in self.lacking.items()}
        ahead = {_AHEAD.format(self.request.by): self.ahead} if self.ahead else {}
        misfits = {_MISFITS: self.misfits} if self.misfits else {}
        return {**self.request.logs.left_out_counts, **lacking, **ahead, **misfits, **self.labelled_left_out}

    @property
    def merged(self) -> str:
        """A sentence about the newest window if it is of several hours or days; otherwise empty."""
        newest, by = self.windows[-1], self.request.by
        if not newest.last:
            return ""
        return f"The newest rows were judged together, for lack of rows in each {by}: {newest.span}."

    def message(self) -> dict[str, object]:
        """Return plain data for notifications, without logged values, which are only for the log's owner."""
        kept = ("rule", "measured", "limit", "key")
        drifted = [
            {
                "column": each.column,
                "since": each.since,
                **{name: getattr(each.finding, name) for name in kept},
            }
            for each in self.drifted
        ]
        return {**self.to_json(), "state": "stopped", "drifted": drifted}

    def text(self) -> str:
        """Return the sentence, each finding with its rows, and what was left out."""
        found = (line for each in self.drifted for line in each.finding.lines())
        merged = [self.merged] if self.merged else []
        return "\n".join([self.sentence, *found, *merged, *left_out_lines(self.left_out_counts)])

    def to_json(self) -> dict[str, object]:
        """Return the result as plain data."""
        return {
            "workload": self.request.workload,
            "version": self.request.version,
            "text": self.sentence,
            "exit_code": self.exit_code,
            "rows": self.rows,
            "columns": list(self.columns),
            "not_logged": list(self.not_logged),
            "drifted": [
                {"column": each.column, "since": each.since, "finding": each.finding.to_json()}
                for each in self.drifted
            ],
            "live": [each.to_json() for each in self.live],
            "labelled": self.labelled,
            "not_finite": self.not_finite,
            "told": self.left_out_counts,
            "windows": [
                {
                    "begin": each.name,
                    "last": each.last or each.name,
                    "rows": each.rows,
                    "drifted": sorted(each.findings),
                }
                for each in self.windows
            ],
            "limits": asdict(self.request.limits),
        }


def watch(
    request: WatchRequest, training: SplitStatistics, *, clock: Callable[[], float] = time.time
) -> Watched:
    """Read and judge the requests.

    Args:
        clock: seconds since 1970.

    Raises:
        UsageError: there are no requests of the version, too few, or they cannot be read.
    """
    training = without_empty_texts(training)
    known = {name: each for name, each in training.features.items() if name not in request.skip}
    kinds = {name: each.kind for name, each in known.items() if _is_single(each)}
    everything = read_requests(request.logs, kinds, request.version)
    # One clock that is ahead would otherwise be the newest window, for as long as it is ahead.
    dated = everything.dated_before(after(int(clock() * 1000), request.by))
    ahead = len(everything.table) - len(dated.table)
    requests = _of_inputs(dated, request.inputs)
    rows = len(requests.table)
    if rows < max(request.limits.min_rows, 1):
        besides = f", besides {ahead:,} {_AHEAD.format(request.by)}" if ahead else ""
        raise UsageError(
            f"{request.logs.folder} holds {counted(rows, 'row')} that version {request.version} has "
            f"answered{besides}, too few to judge; data_gate.min_rows is {request.limits.min_rows}.",
            hint="wait until there are more" + ("; or set the clocks right" if ahead else ""),
        )
    cut = windows(requests.at_ms, request.by)
    judged = tuple(_judged(requests, window, training, request.limits) for window in cut)
    columns = tuple(requests.table.column_names)
    return Watched(
        request=request,
        rows=rows,
        columns=columns,
        not_logged=tuple(name for name in known if name not in columns),
        windows=judged,
        drifted=tuple(_with_rows(each, requests, cut[-1]) for each in drifted(judged)),
        lacking=requests.lacking,
        ahead=ahead,
        misfits=everything.misfits,
    )


def _of_inputs(requests: Requests, inputs: Collection[str]) -> Requests:
    """Return the requests without the columns that are no inputs of the version and have no value at all."""
    table = requests.table
    kept = [
        name
        for name in table.column_names
        if not inputs or name in inputs or table[name].null_count < len(table)
    ]
    return replace(requests, table=table.select(kept)) if kept else requests


def _judged(requests: Requests, window: Window, training: SplitStatistics, limits: Limits) -> Judged:
    table = requests.table.take(window.rows)
    own = statistics_of(table)
    now = at_cuts_of(training, table, own)
    last = window.last if window.last_ms > window.begin_ms else ""
    return Judged(window.name, len(window.rows), judge_window(now, own, training, limits), last)


def _with_rows(found: Drifted, requests: Requests, newest: Window) -> Drifted:
    query = found.finding.query
    rows = requests.showing(query, newest.rows) if query else ()
    if query and query.within and not rows:
        rows = requests.showing(_with_lower_end(query), newest.rows)
    return replace(found, finding=replace(found.finding, rows=rows))


def _with_lower_end(query: RowQuery) -> RowQuery:
    """Return a query for a range and its lower end, where rows that share a value lie; see `counted_at`."""
    low, high = query.within or (None, None)
    if low is None:
        return query
    # The query begins a float32 above the end.
    before = np.nextafter(np.nextafter(np.float32(low), np.float32(-np.inf)), np.float32(-np.inf))
    return replace(query, within=(float(before), high))


def _is_single(feature: FeatureStatistics) -> bool:
    """Return True if a column has at most one number or text per row; only such columns are compared."""
    return feature.kind != "other" and feature.values <= feature.rows and feature.most_values <= 1


def _since(found: Drifted) -> str:
    return f"since {found.since}, the first that is logged" if found.is_from_begin else f"since {found.since}"

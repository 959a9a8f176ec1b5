"""Compares runs side by side: their metrics, and the settings that differ, sorted. Pure."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from slipway.components.counted_words import counted
from slipway.components.escaped_text import escaped
from slipway.components.metrics.better_side import BOUNDS, is_lower_better
from slipway.components.nearest import nearest
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import OfWorkload
from slipway.pipeline.terminal.durations import seconds

Settings = Mapping[str, object]
"""Dotted key -> value, as JSON has it."""

COUNT = "example_count"
# Fields of every run that it can be sorted by, beside metrics and keys; the smallest first.
_FACTS = ("started_at", "wall_s")
_SHOWN_KEYS = 8
_CELL_LENGTH = 24
_ABSENT = "-"


@dataclass(frozen=True)
class Comparison:
    """Runs side by side.

    Attributes:
        runs: in the requested order; their nodes are not needed.
        keys: the keys that differ between two runs of one pipeline, those with the most values first.
        values: for each run, its values by key.
        searched: the folder that was searched, named in the text if there is no run; empty: not named.
    """

    runs: tuple[RunRecord, ...]
    metrics: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[Settings, ...]
    searched: str = ""

    def to_json(self) -> dict[str, object]:
        """Return plain data: the names of the columns, then one mapping per run."""
        rows = [
            {
                "run_id": run.run_id,
                "workload": run.workload,
                "state": run.state,
                "started_at": run.started_at,
                "wall_s": run.wall_s,
                # NaN, the value of a metric without rows, is not valid JSON.
                "metrics": {name: v if math.isfinite(v) else None for name, v in run.metrics.items()},
                "keys": {key: values[key] for key in self.keys if key in values},
                "pushed": run.pushed["version"] if run.pushed else None,
            }
            for run, values in zip(self.runs, self.values, strict=True)
        ]
        return {"metrics": list(self.metrics), "keys": list(self.keys), "runs": rows}

    def text(self) -> str:
        """Return a table with one line per run; of many keys, those with the most values."""
        if not self.runs:
            return f"No run in {self.searched} fits." if self.searched else "No run fits."
        keys = self.keys[:_SHOWN_KEYS]
        # A short name is unique among all keys, so that `--by` accepts it.
        shown = short_names(keys, among=[key for found in self.values for key in found])
        metrics = [name for name in self.metrics if name != COUNT]
        named = [escaped(name) for name in (*metrics, *(shown[key] for key in keys))]
        lines = [["run", "state", "took", *named, "pushed"]]
        for run, values in zip(self.runs, self.values, strict=True):
            numbers = [number(run.metrics.get(name)) for name in metrics]
            settings = [cell(values[key]) if key in values else _ABSENT for key in keys]
            pushed = run.pushed["version"] if run.pushed else ""
            lines.append([run.run_id, run.state, seconds(run.wall_s), *numbers, *settings, pushed])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(each.ljust(width) for each, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        if len(self.keys) > len(keys):
            text.append(f"and {counted(len(self.keys) - len(keys), 'more key')} (--json has all)")
        return "\n".join(text)


def compare_runs(records: Sequence[RunRecord], *, by: str | None = None, searched: str = "") -> Comparison:
    """Put runs side by side.

    Args:
        records: the runs, the newest first.
        by: what to sort by: a metric, the best first; a key, or `started_at` or `wall_s`, the smallest
            first. Runs without it come last. None keeps the order.
        searched: the folder that was searched, in words.

    Raises:
        UsageError: no run has anything of that name.
    """
    values = settings_of_all(records)
    metrics = tuple(dict.fromkeys(name for record in records for name in record.metrics))
    keys = _changed(records, values)
    order: Iterable[int] = range(len(records))
    if by is not None and records:
        every = dict.fromkeys(key for found in values for key in found)
        name = _meant(by, metrics, every)
        sign = -1 if name in metrics and not is_lower_better(name, _bounds(values, name)) else 1
        order = sorted(order, key=lambda at: _place(_value(records[at], values[at], name), sign))
    order = list(order)
    runs, settings = tuple(records[at] for at in order), tuple(values[at] for at in order)
    return Comparison(runs, metrics, keys, settings, searched)


def _bounds(values: Sequence[Settings], metric: str) -> set[str]:
    """Return the bounds that a run's thresholds set for the metric, in any of the runs."""
    keys = {bound: f"evaluate.thresholds.{metric}.{bound}" for bound in BOUNDS}
    return {bound for bound, key in keys.items() for found in values if found.get(key) is not None}


def settings_of(record: RunRecord) -> Settings:
    """Return a run's settings by dotted key: those of its workload, or the parameters of another pipeline."""
    target = record.target.target
    return _flat_config(target.config) if isinstance(target, OfWorkload) else record.target.parameters


def changed_keys(old: Settings, new: Settings, keys: Iterable[str]) -> list[str]:
    """Return those of the keys whose values differ; a key that only one side has differs."""
    return [] if old is new else [key for key in keys if old.get(key, _ABSENT) != new.get(key, _ABSENT)]


def short_names(keys: Iterable[str], *, among: Iterable[str] = ()) -> dict[str, str]:
    """Return for each dotted key as few of its last words as make it unique, also within `among`."""
    keys = list(keys)
    every = dict.fromkeys([*keys, *among])
    found = {}
    for key in keys:
        words = key.split(".")
        ends = (".".join(words[start:]) for start in range(len(words) - 1, -1, -1))
        is_own = (end for end in ends if sum(f".{other}".endswith(f".{end}") for other in every) == 1)
        found[key] = next(is_own, key)
    return found


def number(value: float | None) -> str:
    """Return a metric's value as text; `-` for none."""
    if value is None:
        return _ABSENT
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.2g}"


def cell(value: object) -> str:
    """Return a setting's value as a table cell, cut if it is long."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = escaped(value if isinstance(value, str) else json.dumps(value))
    return text if len(text) <= _CELL_LENGTH else f"{text[: _CELL_LENGTH - 1]}…"


def settings_of_all(records: Sequence[RunRecord]) -> list[Settings]:
    """Return `settings_of` each, with defaults for keys that only newer runs of the same pipeline have."""
    values = [settings_of(record) for record in records]
    every: dict[str, set[str]] = {}
    for record, found in zip(records, values, strict=True):
        every.setdefault(record.workload, set()).update(found)
    filled: dict[tuple[str, int], Settings] = {}  # runs with equal settings keep sharing one mapping
    for record, found in zip(records, values, strict=True):
        target, known = record.target.target, every[record.workload]
        if isinstance(target, OfWorkload) and len(found) < len(known):
            defaults = {key: value for key, value in _filled(target.config).items() if key in known}
            filled.setdefault((record.workload, id(found)), {**defaults, **found})
    return [
        filled.get((record.workload, id(found)), found) for record, found in zip(records, values, strict=True)
    ]


@lru_cache(maxsize=4096)
def _filled(config: str) -> dict[str, object]:
    """Return the settings with today's defaults; empty if today's schema does not accept them."""
    from slipway.pipeline.config import WorkloadConfig  # takes half a second, and few comparisons need it

    try:
        return dict(_flat_config(WorkloadConfig.model_validate_json(config).model_dump_json(by_alias=True)))
    except ValueError:  # includes pydantic's ValidationError: a key was removed, or the record is damaged
        return {}


@lru_cache(maxsize=4096)
def _flat_config(config: str) -> Settings:
    try:
        document = orjson.loads(config)
    except ValueError:  # a damaged record; its metrics can still be compared
        return {}
    return dict(_flat(document, "")) if isinstance(document, dict) else {}


def _flat(document: Mapping[str, object], prefix: str) -> Iterable[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _changed(records: Sequence[RunRecord], values: Sequence[Settings]) -> tuple[str, ...]:
    """Return the keys that differ between runs of the same pipeline; other pipelines' differ anyway."""
    counts: dict[str, int] = {}
    for workload in dict.fromkeys(record.workload for record in records):
        # Runs with equal settings share one mapping, which is checked only once.
        own = list(
            {
                id(found): found
                for record, found in zip(records, values, strict=True)
                if record.workload == workload and found
            }.values()
        )
        for key in dict.fromkeys(key for found in own for key in found):
            taken = [found.get(key, _ABSENT) for found in own]
            if taken.count(taken[0]) < len(taken):
                counts[key] = max(counts.get(key, 0), len({json.dumps(value) for value in taken}))
    return tuple(sorted(counts, key=lambda key: -counts[key]))


def _meant(by: str, metrics: Sequence[str], keys: Iterable[str]) -> str:
    """Return the metric, fact or key of that name; a key may be named by its last words."""
    keys = list(keys)
    if by in metrics or by in _FACTS or by in keys:
        return by
    ending = sorted(key for key in keys if key.endswith(f".{by}"))
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise UsageError(
            f"--by {by} fits {len(ending)} keys: {', '.join(ending)}; name one of them.",
            hint=f"name it whole: --by {ending[0]}",
        )
    near = nearest(by, [*metrics, *_FACTS, *keys, *short_names(keys).values()])
    told = f"; nearest: {near}" if near else ""
    raise UsageError(
        f"--by {by or repr(by)}: no run has a metric or key of that name{told}.",
        hint=f"metrics: {', '.join(metrics) or 'none'}; also {', '.join(_FACTS)}, any workload key",
    )


def _value(record: RunRecord, values: Settings, name: str) -> Any:
    if name in _FACTS:
        return getattr(record, name)
    return record.metrics[name] if name in record.metrics else values.get(name)


def _place(value: Any, sign: int) -> tuple[int, float, str]:
    """Return a sort key: numbers first, then text, then missing values and NaN."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (2, 0.0, "") if math.isnan(value) else (0, sign * value, "")
    return (2, 0.0, "") if value is None else (1, 0.0, value if isinstance(value, str) else json.dumps(value))

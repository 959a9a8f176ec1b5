"""Compares two runs: settings, code, data, results, times. Pure except for `read_fingerprints`."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.components.escaped_text import escaped
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.fingerprint.rerun_reasons import with_span
from slipway.pipeline.runs.comparison import Settings, settings_of_all
from slipway.pipeline.runs.graph import COMPONENT
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import OfWorkload, Origin
from slipway.pipeline.runs.typed_json import DocumentError, read_document
from slipway.pipeline.terminal.durations import seconds

Prints = Mapping[str, Fingerprint]

# In the order in which a reader needs them: the outcome, the changes, the cost.
SECTIONS = (
    "outcome",
    "metrics",
    "parameters",
    "code",
    "data",
    "schema",
    "baseline",
    "stack",
    "nodes",
    "options",
    "durations_s",
)
# The kinds of a fingerprint's parts. "upstream" is left out, because it repeats the upstream node's changes.
_KINDS = {
    "param": "parameters",
    "input": "parameters",
    "code": "code",
    "data": "data",
    "external": "baseline",
    "stack": "stack",
}
# Durations vary by this much between identical runs on a busy machine.
_DURATION_SHARE = 0.2
_DURATION_S = 0.5
_CELL_LENGTH = 40
_SHOWN_CHANGES = 20
_DIGEST_LENGTH = 8
_ABSENT = "-"


@dataclass(frozen=True)
class Change:
    """One difference between two runs.

    Attributes:
        section: one of SECTIONS.
        name: the name of the parameter, file, metric, node, ...
        old: the value in the first run: a number, a boolean or text; None if it has none.
        new: the value in the second run, likewise.
        nodes: the nodes that the change concerns, in the pipeline's order; empty if no particular one.
    """

    section: str
    name: str
    old: Any
    new: Any
    nodes: tuple[str, ...] = ()

    @property
    def change(self) -> float | None:
        """The difference `new - old` if both are numbers; None otherwise."""
        if self.section not in ("metrics", "durations_s") or self.old is None or self.new is None:
            return None
        return float(self.new - self.old)

    def to_json(self) -> dict[str, object]:
        """Return plain data; a parameter's value is parsed from its text."""
        read = _value if self.section == "parameters" else lambda found: found
        document = {"name": self.name, "old": read(self.old), "new": read(self.new)}
        if self.change is not None:
            document["change"] = self.change
        return document | ({"nodes": list(self.nodes)} if self.nodes else {})

    def cells(self, length: int = _CELL_LENGTH) -> tuple[str, str, str]:
        """Return old, new and a remark, as text; each value is cut to that many characters."""
        if self.change is not None:
            if self.section == "durations_s":
                return seconds(self.old), seconds(self.new), f"{self.change:+.1f} s"
            return _number(self.old), _number(self.new), f"{self.change:+.4g}"
        if self.section in ("code", "data", "schema", "baseline"):
            old, new = (_short(text or _ABSENT) for text in (self.old, self.new))
        else:
            old, new = _excerpts(_shown(self.old), _shown(self.new), length)
        return old, new, ", ".join(self.nodes) if len(self.nodes) <= 2 else f"{len(self.nodes)} nodes"


@dataclass(frozen=True)
class Difference:
    """Everything that differs between two runs.

    Attributes:
        changes: grouped by section.
        notes: what could not be compared, in words.
    """

    old: str
    new: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain data: the run ids, a list of changes for each section, the notes."""
        sections = {name: [c.to_json() for c in self.changes if c.section == name] for name in SECTIONS}
        return {"old": self.old, "new": self.new, **sections, "notes": list(self.notes)}

    def text(self) -> str:
        """Return a table with one line per change, by section; `No difference.` if there is none."""
        if not self.changes:
            return "\n".join(["No difference.", *self.notes])
        rows: list[tuple[str, str, str, str]] = [("", self.old, self.new, "")]
        for section in SECTIONS:
            found = [change for change in self.changes if change.section == section]
            if not found:
                continue
            rows.append((section.removesuffix("_s"), "", "", ""))
            rows += [(f"  {escaped(c.name)}", *c.cells()) for c in found[:_SHOWN_CHANGES]]
            if len(found) > _SHOWN_CHANGES:
                rows.append((f"  and {len(found) - _SHOWN_CHANGES} more (--json has all)", "", "", ""))
        widths = [max(len(row[column]) for row in rows if row[1]) for column in range(3)]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(r, [*widths, 0], strict=True)) for r in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), *self.notes])


def compare(
    old: RunRecord, new: RunRecord, old_prints: Prints | None, new_prints: Prints | None
) -> Difference:
    """Compare two runs.

    Args:
        old: the run to compare with.
        new: the run to explain.
        old_prints: the first run's fingerprints by node id; None if it kept none.
        new_prints: the second run's fingerprints, likewise.
    """
    changes = [*_outcome(old, new), *_rows("metrics", old.metrics, new.metrics), *_nodes(old, new)]
    changes += _rows("options", *_options(old, new))
    changes += _durations(old, new)
    notes = []
    if old_prints is None or new_prints is None:
        missing = [r.run_id for r, p in ((old, old_prints), (new, new_prints)) if p is None]
        notes.append(
            f"Parameters, code and data are not compared: {' and '.join(missing)} ended before its plan."
        )
    else:
        changes += _parts(old_prints, new_prints)
    ordered = sorted(changes, key=lambda change: SECTIONS.index(change.section))
    return Difference(old.run_id, new.run_id, tuple(ordered), tuple(notes))


def read_fingerprints(folder: Path) -> dict[str, Fingerprint] | None:
    """Return the stored fingerprints of a run, by node id; None if it ended before it had any.

    Raises:
        PipelineError: the file is damaged.
    """
    path = folder / "fingerprints.json"
    try:
        document = read_document(dict[str, str], path)
        return {node_id: Fingerprint.from_json(text) for node_id, text in document.items()}
    except FileNotFoundError:
        return None
    except DocumentError as error:
        raise DocumentError(error.message, hint="compare with another run") from error
    except PipelineError as error:
        raise DocumentError(f"{path} cannot be read: {error}", hint="compare with another run") from error


def _rows(section: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[Change]:
    for name in dict.fromkeys([*old, *new]):
        if not _same(old.get(name), new.get(name)):
            yield Change(section, name, old.get(name), new.get(name))


def _same(old: Any, new: Any) -> bool:
    is_nan = all(isinstance(value, float) and math.isnan(value) for value in (old, new))
    return bool(old == new) or is_nan


def _outcome(old: RunRecord, new: RunRecord) -> Iterator[Change]:
    yield from _rows("outcome", _outcomes(old), _outcomes(new))
    states = {node.id: _done(node) for node in new.nodes}
    for node in old.nodes:
        if node.id in states and _done(node) != states[node.id]:
            yield Change("outcome", node.id, _done(node), states[node.id])


def _outcomes(run: RunRecord) -> dict[str, object]:
    pushed = run.pushed["version"] if run.pushed else None
    return {"pipeline": run.workload, "state": run.state, "blessed": run.blessed, "pushed": pushed}


def _done(node: NodeRecord) -> str:
    # A cached result is the same result, so it is not a difference.
    return "complete" if node.state == "cached" else node.state


def _nodes(old: RunRecord, new: RunRecord) -> Iterator[Change]:
    yield from _rows("nodes", {n.id: n.type for n in old.nodes}, {n.id: n.type for n in new.nodes})


_NOT_OPTIONS = frozenset({"workload", "target", "output", "origin"})
# Sections of a workload that decide how its nodes run, and of which none is a node's parameter.
_OF_NO_NODE = frozenset({"nodes", "beam", "notify", "request_log", "track", "metadata", "cloud"})


def _options(*runs: RunRecord) -> list[dict[str, object]]:
    return [_options_of(run, values) for run, values in zip(runs, settings_of_all(runs), strict=True)]


def _options_of(run: RunRecord, settings: Settings) -> dict[str, object]:
    # A workload's other settings are listed with the parameters; its file and profile only here.
    origin = run.target.origin or Origin()
    told = {key: value for key, value in run.target.to_json().items() if key not in _NOT_OPTIONS}
    told |= {"workload file": origin.path or None, "profile": origin.profile}
    if isinstance(run.target.target, OfWorkload):
        told |= {key: each for key, each in settings.items() if key.partition(".")[0] in _OF_NO_NODE}
    # Unset options are left out, so that an option unknown to an earlier version is not a difference.
    return {key: json.dumps(value) for key, value in told.items() if value not in (None, False, {}, [])}


def _durations(old: RunRecord, new: RunRecord) -> Iterator[Change]:
    before = {node.id: node.wall_s for node in old.nodes if node.state == "complete"}
    for node in new.nodes:
        if node.state == "complete" and node.id in before:
            was_s = before[node.id]
            if abs(node.wall_s - was_s) > max(_DURATION_S, _DURATION_SHARE * was_s):
                yield Change("durations_s", node.id, was_s, node.wall_s)


def _parts(old: Prints, new: Prints) -> Iterable[Change]:
    """Return the differing parts of the nodes that both runs have; equal differences are merged."""
    told: dict[tuple[str, str, str | None, str | None], list[str]] = {}
    # Earlier versions did not note what inputs read: all of them would differ.
    kinds: Collection[str] = _KINDS if _note_inputs(old) and _note_inputs(new) else _KINDS.keys() - {"input"}
    for node_id in (node_id for node_id in new if node_id in old):
        before, now = with_span(old[node_id].parts), with_span(new[node_id].parts)
        for part in sorted(before.keys() | now.keys()):
            kind, _, name = part.partition(":")
            # The component's name is listed with the nodes.
            if kind in kinds and before.get(part) != now.get(part) and part != f"param:{COMPONENT}":
                section = "schema" if name.endswith(".pbtxt") else _KINDS[kind]
                name = f"input {name}" if kind == "input" else name
                told.setdefault((section, name, before.get(part), now.get(part)), []).append(node_id)
    return (Change(*key, nodes=tuple(node_ids)) for key, node_ids in told.items())


def _note_inputs(prints: Prints) -> bool:
    return any(part.startswith("input:") for each in prints.values() for part in each.parts)


def _value(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):  # not JSON, such as a mapping with bare keys
        return text


def _short(digest: str) -> str:
    """Cut a digest; the data to compare with has what it is before it, `blessed:` or `passed:`."""
    kind, colon, digest = digest.rpartition(":")
    return f"{kind}{colon}{digest[:_DIGEST_LENGTH]}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _shown(value: Any) -> str:
    if value is None:
        return _ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _number(value)
    return escaped(str(value))


def _excerpts(old: str, new: str, length: int) -> tuple[str, str]:
    """Cut both texts to a cell's length, if they are longer, so that the first difference stays visible."""
    if max(len(old), len(new)) <= length:
        return old, new
    pairs = enumerate(zip(old, new, strict=False))
    first = next((index for index, (was, now) in pairs if was != now), min(len(old), len(new)))
    start = max(first - length // 4, 0)
    return _cut(old, start, length), _cut(new, start, length)


def _cut(text: str, start: int, length: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"

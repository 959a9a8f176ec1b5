"""Begin and end times of a run and its nodes, from the run's events. Pure except for reading these."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from slipway.pipeline.runs.record import PRUNED, NodeRecord, RunRecord

_ENDED = ("complete", "failed")
# How the reason begins if a skipped node had run and was cut short: by Ctrl-C, another's failure, or a sweep.
_CUT_SHORT = ("interrupted", "ended because", PRUNED)


@dataclass(frozen=True)
class Times:
    """A begin and an end time, with time zones."""

    begin: datetime
    end: datetime


def run_times(record: RunRecord) -> Times:
    """Return when a run began, and when it ended for the last time if it was resumed."""
    begin = datetime.fromisoformat(record.started_at)
    ends = [_at(event) for event in _events(record) if event.get("run") == record.run_id]
    return Times(begin, max([begin + timedelta(seconds=record.wall_s), *ends]))


def node_times(record: RunRecord) -> dict[str, Times]:
    """Return when each node ran, in its last attempt; nodes that did not run have no entry."""
    found: dict[str, Times] = {}
    begun: dict[str, datetime] = {}
    for event in _events(record):
        node, state = str(event.get("node", "")), event.get("state")
        if state == "running":
            begun[node] = _at(event)
        elif node in begun and (state in _ENDED or _is_cut_short(event)):
            found[node] = Times(begun[node], max(begun[node], _at(event)))
    return found


def _is_cut_short(event: Mapping[str, object]) -> bool:
    return event.get("state") == "skipped" and str(event.get("why", "")).startswith(_CUT_SHORT)


def ran(record: RunRecord) -> list[tuple[NodeRecord, Times]]:
    """Return the nodes that ran, in topological order, with their times."""
    times = node_times(record)
    return [(node, times[node.id]) for node in record.nodes if node.id in times]


def _events(record: RunRecord) -> list[Mapping[str, object]]:
    try:
        lines = (record.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found: list[Mapping[str, object]] = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:  # a line truncated by a kill
            continue
        if isinstance(event, dict) and isinstance(event.get("at"), str):
            found.append(event)
    return found


def _at(event: Mapping[str, object]) -> datetime:
    at = datetime.fromisoformat(str(event["at"]))
    return at if at.tzinfo else at.replace(tzinfo=UTC)

"""When nodes ran, from the events of their run."""

import json
from datetime import UTC, datetime

import pytest

from slipway.pipeline.tracking.node_times import Times, node_times, ran, run_times


def at(seconds):
    return datetime.fromtimestamp(1795489200 + seconds, UTC)


def test_a_node_ran_from_the_begin_of_its_last_attempt_to_its_end(failed_run):
    record = failed_run()
    assert node_times(record) == {"Trainer": Times(at(1), at(2)), "Gate": Times(at(2), at(2.25))}
    assert [node.id for node, _ in ran(record)] == ["Trainer", "Gate"]
    assert run_times(record) == Times(at(0), at(2.5))


def test_a_run_without_events_has_the_times_of_its_record(make_run):
    record = make_run()
    assert node_times(record) == {}
    assert run_times(record) == Times(at(0), at(2.5))


def test_the_end_of_a_resumed_run_is_that_of_the_last_time(failed_run):
    record = failed_run()
    with (record.folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(f'\n{{"at": "2026-11-24T04:00:00", "run": "{record.run_id}", "state": "complete"}}\n')
    assert run_times(record).end == at(3600)


@pytest.mark.parametrize(
    ("why", "is_there"),
    [
        ("interrupted", True),
        ("ended because A failed (--fail-fast)", True),
        ("pruned after epoch 2, val_auc is 0.5 at best", True),
        ("its condition was not met", False),
    ],
)
def test_a_node_that_was_cut_short_ran_until_then(make_run, why, is_there):
    record = make_run()
    events = [("03:00:01", "running", "first run"), ("03:00:02", "skipped", why)]
    lines = [
        json.dumps({"at": f"2026-11-24T{time}+00:00", "node": "Trainer", "state": state, "why": each})
        for time, state, each in events
    ]
    (record.folder / "events.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert node_times(record) == ({"Trainer": Times(at(1), at(2))} if is_there else {})

"""The ids of a back-fill's runs. What it starts and follows is in tests/integration/cloud."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from slipway.pipeline.cloud.back_fill import _Backfill, span_read, span_run_id
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.services.service import JobState, Schedule, Submitted, TaskState
from slipway.pipeline.cloud.services.vertex_request import job_id
from slipway.pipeline.errors import UsageError


@pytest.mark.parametrize(
    ("span", "attempt", "run_id"),
    [
        ("2027-01-31", 1, "taxi-prod-back-fill-20270131"),
        ("2027-01-31", 2, "taxi-prod-back-fill-20270131-try-2"),
        (7, 1, "taxi-prod-back-fill-7"),
    ],
)
def test_id_is_made_of_schedule_span_and_try(span, attempt, run_id):
    assert span_run_id("taxi-prod", span, attempt=attempt) == run_id


def test_longest_id_reaches_vertex_ai_with_its_span():
    run_id = span_run_id("t" * 80, "2027-01-31", attempt=100)
    assert job_id(run_id) == run_id


@pytest.mark.parametrize("name", ["t" * 81, "Taxi", "1taxi", "taxi night", ""])
def test_name_that_would_not_reach_it_as_it_is_is_refused(name):
    with pytest.raises(UsageError, match="cannot be named"):
        span_run_id(name, 7, attempt=1)


@pytest.mark.parametrize(
    ("task", "properties", "span"),
    [
        ("Ingest", {"span": 20819.0}, 20819),
        ("Ingest", {"span": "20819"}, 20819),
        ("Ingest", {"span": ""}, None),
        ("Ingest", {"span": float("inf")}, None),
        ("Ingest", {}, None),
        ("Transform", {"span": 20819.0}, None),
    ],
)
def test_span_of_a_run_is_what_its_ingest_has_read(task, properties, span):
    examples = {"uri": "gs://b/e", "type": "Examples", "properties": properties}
    tasks = (TaskState("DataGate", "waiting"), TaskState(task, "complete", outputs={"examples": [examples]}))
    assert span_read(JobState("running", tasks=tasks)) == span


@pytest.mark.parametrize(
    ("chosen", "known"), [("prod", {None: 1, "prod": 1}), (None, {None: 1, "": 1})], ids=["prod", "none"]
)
def test_runs_of_a_schedule_of_another_profile_are_none_of_the_back_fill_s(chosen, known):
    """Of a schedule that was made before runs were labelled, the profile is not known."""
    examples = {"uri": "gs://b/e", "type": "Examples", "properties": {"span": 7}}
    tasks = (TaskState("Ingest", "complete", outputs={"examples": [examples]}),)
    schedule = Schedule(id="1", name="taxi", state="active", cron="", next_run=None, link="")
    for profile in (None, "", "prod", "dev"):
        run = (Submitted("r", "link"), JobState("complete", tasks=tasks, profile=profile))
        service = SimpleNamespace(
            schedules=lambda: [schedule], scheduled_runs=lambda of, workload, run=run: [run]
        )
        config = SimpleNamespace(
            name="taxi", cloud=SimpleNamespace(schedule=SimpleNamespace(max_concurrent_runs=1))
        )
        choice = CloudChoice(Path("taxi"), (), chosen)
        found = _Backfill(choice, service, SimpleNamespace(config=config), "taxi", [7])._scheduled
        assert len(found) == known.get(profile, 0), profile


@pytest.mark.parametrize(
    ("profile", "whose"),
    [("", "without a profile"), ("dev", "with the profile dev"), ("prod", ""), (None, "")],
)
def test_run_with_another_profile_that_has_its_id_is_not_taken_for_the_span_s(profile, whose):
    """As of `--name taxi-prod`, and of the profile prod of taxi. Earlier back-fills did not label theirs."""
    run = (Submitted("taxi-prod-back-fill-7", "link"), JobState("running", workload="taxi", profile=profile))
    config = SimpleNamespace(
        name="taxi", cloud=SimpleNamespace(schedule=SimpleNamespace(max_concurrent_runs=1))
    )
    service, target = SimpleNamespace(find=lambda run_id: run), SimpleNamespace(config=config)
    back_fill = _Backfill(CloudChoice(Path("taxi"), (), "prod"), service, target, "taxi-prod", [7])
    if not whose:
        assert back_fill._latest(7) == ("taxi-prod-back-fill-7", run)
        return
    with pytest.raises(UsageError, match=f"taxi-prod-back-fill-7 is a run {whose}, link"):
        back_fill._latest(7)

"""The ids of a back-fill's runs. What it starts and follows is in tests/integration/cloud."""

import pytest

from slipway.pipeline.cloud.back_fill import span_read, span_run_id
from slipway.pipeline.cloud.services.service import JobState, TaskState
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

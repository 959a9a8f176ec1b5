"""Which files Ingest reads in a run that Kubeflow started by a schedule."""

import json

import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.container.scheduled_input import fill_scheduled_span


def scheduled(pattern, *, at="1801364400", lag_days=0):  # 2027-01-31T03:00:00Z
    config = json.dumps({"splits": [{"name": "all", "pattern": pattern}]})
    values = {"scheduled_at": at, "lag_days": lag_days, "input_config": config, "rate": 0.1}
    return {"inputs": {"parameterValues": values}, "outputs": {}}


@pytest.mark.parametrize(
    ("pattern", "lag_days", "filled"),
    [
        ("{YYYY}-{MM}-{DD}/*.csv", 0, "2027-01-31/*.csv"),
        ("{YYYY}-{MM}-{DD}/*.csv", 31.0, "2026-12-31/*.csv"),  # the launcher gives every number as a float
        ("day-{SPAN:7}.csv", 1, "day-0020848.csv"),
    ],
)
def test_a_pattern_gets_the_day_of_the_schedule_minus_its_lag(pattern, lag_days, filled):
    given = scheduled(pattern, lag_days=lag_days)
    fill_scheduled_span(given)
    config = json.dumps({"splits": [{"name": "all", "pattern": filled}]})
    assert given["inputs"]["parameterValues"] == {"input_config": config, "rate": 0.1}


@pytest.mark.parametrize(
    "at", ["{{workflow.labels.scheduledworkflows.kubeflow.org/workflowEpoch}}", "", "2027-01-31", "9" * 30]
)
def test_a_time_that_was_not_filled_in_is_refused_in_words(at):
    with pytest.raises(ComponentError, match=r"the parameter scheduled_at is .*, which is no time") as caught:
        fill_scheduled_span(scheduled("{YYYY}-{MM}-{DD}.csv", at=at))
    assert "date +%s" in caught.value.hint


@pytest.mark.parametrize(
    "given",
    [
        {"outputs": {}},
        {"inputs": {"parameterValues": {"a": 1}}, "outputs": {}},
        # A component of one's own may have parameters of these names.
        {"inputs": {"parameterValues": {"scheduled_at": "noon"}}, "outputs": {}},
        {"inputs": {"parameterValues": {"scheduled_at": "noon", "lag_days": 2}}, "outputs": {}},
    ],
)
def test_other_tasks_are_left_as_they_are(given):
    before = json.dumps(given)
    fill_scheduled_span(given)
    assert json.dumps(given) == before

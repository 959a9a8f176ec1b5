"""The top of a run's page."""

import pytest

from slipway.pipeline.report.page_head import head, metric_facts
from slipway.pipeline.runs.record import RunRecord


def test_the_numbers_at_the_top_have_theirs_and_say_what_rows_are_worth():
    metrics = {"auc": 0.9, "mine": 2.0, "example_count": 36030.0}
    facts = metric_facts(metrics, {"auc": 0.8}, {"auc": (0.88, 0.92)}, effective_rows=312.4)

    assert [fact.interval for fact in facts] == ["[0.88, 0.92]", "", ""]
    assert (facts[-1].value, facts[-1].note) == ("36,030", "worth 312 by their weights")


def test_a_change_is_called_better_by_the_direction_of_its_metric():
    facts = metric_facts(
        {"auc": 0.9, "binary_crossentropy": 0.4, "mine": 2.0, "example_count": 10.0},
        {"auc": 0.8, "binary_crossentropy": 0.3, "mine": 1.0},
    )

    assert [(fact.name, fact.is_better) for fact in facts] == [
        ("auc", True),
        ("binary_crossentropy", False),
        ("mine", None),
        ("rows evaluated", None),
    ]
    assert facts[0].note == "+0.1 from the last blessed model"


def test_without_a_blessed_model_there_is_no_change():
    (fact,) = metric_facts({"auc": 0.9}, {})

    assert (fact.note, fact.is_better) == ("no blessed model to compare with", None)


@pytest.mark.parametrize("time", [[0.5], "half", {"goodput": "half"}])
def test_times_that_are_none_leave_the_goodput_out(time):
    record = RunRecord.from_json({"run_id": "r", "workload": "w", "training": {"time": time}})

    assert [fact.name for fact in head(record).facts] == ["wall time"]

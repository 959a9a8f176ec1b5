import json
from dataclasses import replace

import numpy as np
import pytest

from slipway.pipeline.watch.paired_metrics import PairedMetric
from slipway.pipeline.watch.version_comparison import Compared, DifferingRow, difference_of


def test_rows_without_a_finite_answer_are_counted_apart():
    champion = np.array([[0.1], [np.nan], [0.4], [0.9]])
    challenger = np.array([[0.1], [0.5], [0.6], [np.inf]])
    found = difference_of(champion, challenger, are_classes=True)
    assert (found.rows, found.not_finite, found.otherwise, found.share) == (4, 2, 1, 0.5)
    assert found.mean == pytest.approx(0.1)
    assert found.most == (2,)


def test_several_classes_differ_by_the_most_probable():
    champion = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
    challenger = np.array([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])
    found = difference_of(champion, challenger, are_classes=True)
    assert found.otherwise == 1
    assert found.quantiles[-1] == pytest.approx(0.2)
    assert found.most == (0, 1)
    assert difference_of(champion, challenger, are_classes=False).otherwise is None


METRICS = (
    PairedMetric("auc", 0.9, 0.8, (-0.15, -0.05)),
    PairedMetric("binary_accuracy", 0.8, 0.8, (-0.01, 0.01)),
    PairedMetric("mean_absolute_error", 0.4, 0.3, (-0.2, -0.05)),
)


def compared(metrics=(), **more):
    difference = difference_of(np.array([[0.25], [0.75]]), np.array([[0.75], [0.75]]), are_classes=True)
    row = DifferingRow("a.jsonl", 1, 0, [0.25], [0.75])
    return Compared("taxi", 7, 8, difference, (row,), {"rows": 3}, metrics=metrics, labelled=900, **more)


def test_difference_is_one_sentence():
    found = compared()
    assert found.text() == (
        "Of 2 logged rows of taxi, version 8 decides otherwise in 1 (50 %), and answers 0.25 apart from "
        "version 7 on average: 0.25 or less in half of them, 0.495 in 99 of 100, 0.5 at most.\n"
        "The rows that differ most:\n"
        "  a.jsonl line 1: 0.25, then 0.75\n"
        "Left out or incomplete: rows (3)."
    )
    assert (found.verdict, found.exit_code) == (None, 0)


def test_worse_in_one_metric_is_worse():
    found = compared(METRICS)
    assert found.sentence.endswith(
        "In 900 rows with a label the challenger is worse: auc 0.8000 instead of 0.9000 (difference "
        "-0.1500 to -0.0500); is better: mean_absolute_error 0.3000 instead of 0.4000 "
        "(difference -0.2000 to -0.0500); "
        "shows no difference: binary_accuracy 0.8000 instead of 0.8000 (difference -0.0100 to +0.0100)."
    )
    assert (found.verdict, found.exit_code) == ("worse", 3)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [each["verdict"] for each in told["metrics"]] == ["worse", "no difference shown", "better"]
    assert (compared(METRICS[1:]).verdict, compared(METRICS[1:]).exit_code) == ("better", 0)
    assert compared(METRICS[1:2]).verdict == "no difference shown"


def test_share_of_all_rows_is_a_number_that_people_read():
    all_of_them = difference_of(np.zeros((2, 1)), np.ones((2, 1)), are_classes=True)
    assert "decides otherwise in 2 (100 %)" in replace(compared(), difference=all_of_them).sentence

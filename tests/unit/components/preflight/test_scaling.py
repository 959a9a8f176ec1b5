import pytest

from slipway.components.preflight.advice import SliceVerdict
from slipway.components.preflight.finding import Finding
from slipway.components.preflight.question_and_answer import Question, Slice
from slipway.components.preflight.roofline import Estimate
from slipway.components.preflight.scaling import generations, scaling, scaling_lines, to_json


def verdict(chips, step_s, *, generation="v5e", wrong=""):
    where = Slice(
        name=f"{generation}-{chips}", generation=generation, devices=chips, hosts=max(1, chips // 4)
    )
    question = Question(slice=where, model="a.b", hyperparameters={}, features=(), label="y", batch_size=1000)
    found = Estimate(
        compute_s=step_s, memory_s=0, communication_s=0, batch_size=1000, chips=chips, price=None
    )
    findings = (Finding(rule=wrong, severity="error", message="", remedy=""),) if wrong else ()
    return SliceVerdict(
        question=question, answer=None, findings=findings, estimate=found, examples=None, example_bytes=2**20
    )


def test_more_chips_stop_paying_where_those_added_bring_less_than_half():
    rows = scaling([verdict(4, 0.3), verdict(1, 1.0), verdict(16, 0.15), verdict(64, 0.01)])

    assert [(row.name, row.pays) for row in rows] == [
        ("v5e-1", True),
        ("v5e-4", True),
        ("v5e-16", False),
        ("v5e-64", False),  # a larger one never pays after one that does not
    ]
    assert [row.added_share for row in rows[:3]] == [
        None,
        pytest.approx((1 / 0.3 - 1) / 3),
        pytest.approx((1 / 0.15 - 1 / 0.3) / 12),
    ]
    assert rows[2].speedup == pytest.approx(1 / 0.15)
    assert rows[2].chip_share == pytest.approx(1 / 0.15 / 16)


def test_exactly_half_pays():
    assert [row.pays for row in scaling([verdict(1, 1.0), verdict(3, 0.5)])] == [True, True]


def test_a_step_shorter_than_its_call_gains_nothing_by_more_chips():
    assert [row.speedup for row in scaling([verdict(1, 5e-5), verdict(4, 1e-5)])] == [1.0, 1.0]


def test_the_table_ends_with_where_it_stops_and_the_rule():
    lines = scaling_lines("v5e", [verdict(1, 1.0), verdict(4, 0.3), verdict(16, 0.15)])

    assert lines[0] == "estimate of v5e by slice, batch 1,000 on each:"
    assert lines[3].split() == [
        "v5e-4",
        "4",
        "1",
        "300",
        "ms",
        "compute",
        "3.33x",
        "83%",
        "78%",
        "3,333",
        "MiB/s",
        "yes",
    ]
    assert lines[4].split() == [
        "v5e-16",
        "16",
        "4",
        "150",
        "ms",
        "compute",
        "6.67x",
        "42%",
        "28%",
        "1,667",
        "MiB/s",
        "no",
    ]
    assert lines[-1] == (
        "more chips stop paying after v5e-4: each of the 12 that v5e-16 adds brings 28% (rule: each chip "
        "added brings at least 50% of what one of v5e-1 does; a step counts 100 µs at least, the time of its "
        "call)"
    )


def test_where_all_pay_the_table_says_up_to_which():
    lines = scaling_lines("v5e", [verdict(1, 1.0), verdict(4, 0.25)])

    assert lines[-1].startswith("more chips pay up to v5e-4 at least (rule: ")


def test_slices_that_cannot_divide_the_batch_are_not_compared_and_files_and_backend_do_not_matter():
    found = generations(
        [
            verdict(1, 1.0),
            verdict(4, 0.3, wrong="files"),
            verdict(8, 0.2, wrong="train_step"),
            verdict(16, 0.1, wrong="indivisible"),
            verdict(8, 1.0, generation="v6e"),
        ]
    )

    assert {name: [each.question.slice.name for each in own] for name, own in found.items()} == {
        "v5e": ["v5e-1", "v5e-4", "v5e-8"]
    }


def test_json_has_the_same_rows_and_the_sentence():
    (found,) = to_json([verdict(1, 1.0), verdict(4, 0.3)])

    assert found["generation"] == "v5e"
    assert [row["name"] for row in found["rows"]] == ["v5e-1", "v5e-4"]
    assert found["says"].startswith("more chips pay up to v5e-4")

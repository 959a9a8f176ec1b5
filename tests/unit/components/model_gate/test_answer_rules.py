"""A model that answers NaN or infinity to some rows is refused, whatever its metrics say."""

from slipway.components.model_gate.answer_rules import answer_checks
from slipway.components.model_gate.verdict import conclude


def test_answers_that_are_no_number_refuse_the_model():
    verdict = conclude(answer_checks({"": 3}, 4966.0), metrics={}, baseline_metrics={})
    assert not verdict.blessed
    assert verdict.reasons == (
        "model answers NaN or infinity to 3 of 4,966 rows, needs a number for every row "
        "(check what the model divides by or takes the logarithm of)",
    )


def test_each_output_is_named():
    [check] = answer_checks({"tip": 0, "cost": 1}, 20.0)
    assert check.reason.startswith("output cost answers NaN or infinity to 1 of 20 rows")


def test_finite_answers_need_no_check():
    assert answer_checks({"": 0}, 4966.0) == []

"""Cron expressions."""

import pytest

from slipway.pipeline.config.cron import cron_problem


@pytest.mark.parametrize("expression", ["0 3 * * *", "*/15 0-6/2 1,15 jan-mar MON-fri", "59 23 31 12 7"])
def test_what_crontab_takes_is_taken(expression):
    assert cron_problem(expression) == ""


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 3 * *", "not 4"),
        ("TZ=UTC 0 3 * * *", "not 6"),
        ("60 3 * * *", "'60' is not a valid minute: it is 0 to 59"),
        ("0 24 * * *", "'24' is not a valid hour"),
        ("0 0 0 * *", "'0' is not a valid day of the month"),
        ("0 0 * dez *", "'dez' is not a valid month"),
        ("0 0 * * 5-1", "the range runs backwards"),
        ("*/0 * * * *", "the step must be at least 1"),
        ("1,,2 * * * *", "'' is not a valid minute"),
        ("? * * * *", "'?' is not a valid minute"),
    ],
)
def test_what_is_no_cron_expression_is_named(expression, words):
    assert words in cron_problem(expression)

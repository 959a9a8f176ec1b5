"""Which texts are dates."""

import re

import pytest

from slipway.components.iso_dates import ISO_DATE


@pytest.mark.parametrize("text", ["2024-01-31", "2024-01-31T10:20:30Z", "2024-01-31 10:20:30.000000+0100"])
def test_date_may_have_a_time_behind_it(text):
    assert re.match(ISO_DATE, text)


@pytest.mark.parametrize("text", ["", "1/31/2024", "31.01.2024", "2024-1-5", "2024-01-31 x", "x 2024-01-31"])
def test_text_that_new_takes_for_a_missing_date_is_none(text):
    assert not re.match(ISO_DATE, text)

"""Ids of runs."""

from datetime import UTC, datetime

import pytest

from slipway.pipeline.runs.run_id import begin_of_id, new_run_id, parts_of


def test_id_after_the_last_of_a_second_has_the_next_second():
    assert new_run_id(after="20990101-235959-ffff").startswith("20990102-000000-")


def test_id_after_one_of_a_clock_that_was_fast_has_its_second_and_a_higher_number():
    made = new_run_id(after="20990101-235959-abcd")
    assert made.startswith("20990101-235959-")
    assert made > "20990101-235959-abcd"


def test_begin_of_an_id_sorts_before_the_ids_of_its_second():
    at_s = datetime(2099, 1, 1, 23, 59, 59, tzinfo=UTC).timestamp()
    assert "20990101-235958-ffff" < begin_of_id(at_s + 0.9) < "20990101-235959-0000"


def test_parts_are_the_time_and_the_number():
    assert parts_of("20990101-235959-abcd") == (datetime(2099, 1, 1, 23, 59, 59, tzinfo=UTC), 0xABCD)
    assert parts_of(new_run_id()) is not None


@pytest.mark.parametrize("name", ["", "zzz", "20990101-235959-abcde", "20990231-235959-abcd"])
def test_name_that_was_not_made_here_has_no_parts(name):
    assert parts_of(name) is None
    assert new_run_id(after=name) < "2099"

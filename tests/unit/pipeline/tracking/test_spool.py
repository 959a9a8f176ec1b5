"""The spool: what trackers still miss, also across processes that end."""

import pytest

from slipway.pipeline.tracking import spool
from slipway.pipeline.tracking.spool import Waiting


def test_an_entry_stays_until_no_tracker_is_left(tmp_path):
    entry = Waiting("20261124-030000-0000", 0, {"mlflow": ""})
    spool.put(tmp_path, entry)
    assert spool.all_waiting(tmp_path) == [entry]
    assert spool.waits_still(tmp_path, entry)
    spool.put(tmp_path, Waiting(entry.run_id))
    assert spool.all_waiting(tmp_path) == []
    assert not spool.waits_still(tmp_path, entry)
    spool.put(tmp_path, Waiting(entry.run_id))  # nothing to take out


def test_a_run_that_was_resumed_and_ended_again_is_another_entry(tmp_path):
    entry = Waiting("20261124-030000-0000", 0, {"mlflow": ""})
    spool.put(tmp_path, Waiting(entry.run_id, 1, {"mlflow": ""}))
    assert not spool.waits_still(tmp_path, entry)


@pytest.mark.parametrize("content", ["", "[]", '{"run_id": "../x"}', '{"why": {"mlflow": 1}, "run_id": "a"}'])
def test_what_is_damaged_or_of_another_run_is_left_out(tmp_path, content):
    (tmp_path / "tracking").mkdir()
    (tmp_path / "tracking" / "a.json").write_text(content, encoding="utf-8")
    assert spool.all_waiting(tmp_path) == []


def test_one_sends_at_a_time(tmp_path):
    with spool.alone(tmp_path) as first, spool.alone(tmp_path) as second:
        assert (first, second) == (True, False)
    with spool.alone(tmp_path) as third:
        assert third


def test_the_lock_is_not_taken_through_a_link(tmp_path):
    (tmp_path / "tracking").mkdir()
    (tmp_path / "tracking" / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), spool.alone(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_an_entry_in_words():
    assert Waiting("a", 0, {"mlflow": "answered 500", "other": ""}).text() == "a: mlflow answered 500, other"

"""What users have changed of a baseline, as it is read back."""

import errno
from types import SimpleNamespace

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan import baseline_changes
from slipway.pipeline.plan.baseline_changes import clear_baseline, retired_blessings

GOOD = '{"at": "2026-01-01", "action": "clear", "run_id": "", "reason": "", "retired": ["/a/1"]}'


@pytest.fixture
def changes(tmp_path):
    """The file of the changes; to be written."""
    path = tmp_path / "baselines" / "taxi.jsonl"
    path.parent.mkdir()
    return path


def test_last_change_says_which_blessings_are_retired(changes, tmp_path):
    assert retired_blessings(tmp_path, "taxi") == frozenset()
    changes.write_text(f"{GOOD}\n{GOOD.replace('/a/1', '/a/2')}\n", encoding="utf-8")
    assert retired_blessings(tmp_path, "taxi") == {"/a/2"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (GOOD[:-20], "it is not complete JSON"),
        (GOOD.replace("/a/1", "\xff"), "it is not complete JSON"),
        ("[]", "the whole is \\[\\], where a mapping belongs"),
        (GOOD.replace('["/a/1"]', "7"), "retired is 7, where a list belongs"),
    ],
)
def test_damaged_change_is_refused_with_file_and_line(changes, tmp_path, line, why):
    changes.write_text(f"{GOOD}\n{line}\n", encoding="latin-1")
    with pytest.raises(UsageError, match=rf"taxi.jsonl, line 2 cannot be read: {why}"):
        retired_blessings(tmp_path, "taxi")


class Store:
    """Stands for a metadata store with one blessing."""

    def __init__(self, error=None):
        self.written, self._error = 0, error
        properties = {"current_model_id": SimpleNamespace(int_value=7)}
        self.blessing = SimpleNamespace(uri="/a/9", custom_properties=properties)

    def put_artifacts(self, _artifacts):
        if self._error:
            raise self._error
        self.written += 1


@pytest.fixture
def clear(tmp_path, monkeypatch):
    """Clears the baseline of taxi in a store."""

    def call(store):
        monkeypatch.setattr(baseline_changes, "_blessings", lambda *_: (store, [store.blessing]))
        return clear_baseline(SimpleNamespace(name="taxi"), tmp_path, reason="why")

    return call


def test_change_is_added_to_the_earlier_ones(clear, changes, tmp_path):
    changes.write_text(GOOD, encoding="utf-8")  # as an editor may leave it
    store = Store()
    assert [each.reason for each in clear(store).changes] == ["", "why"]
    assert store.written == 1
    assert retired_blessings(tmp_path, "taxi") == {"/a/9"}
    assert list(changes.parent.iterdir()) == [changes]


def test_earlier_changes_stay_as_a_newer_version_wrote_them(clear, changes):
    newer = GOOD.replace('"reason"', '"by":  "ann", "reason"')
    changes.write_text(f"{newer}\n\n", encoding="utf-8")
    clear(Store())
    assert changes.read_text(encoding="utf-8").startswith(f"{newer}\n\n{{")


def test_link_to_the_changes_stays_one(clear, changes, tmp_path):
    elsewhere = tmp_path / "disk" / "taxi.jsonl"
    elsewhere.parent.mkdir()
    elsewhere.write_text(f"{GOOD}\n", encoding="utf-8")
    changes.symlink_to(elsewhere)
    clear(Store())
    assert changes.is_symlink()
    assert len(elsewhere.read_text(encoding="utf-8").splitlines()) == 2


def test_full_disk_leaves_the_store_and_the_record_as_they_were(clear, changes, monkeypatch):
    changes.write_text(f"{GOOD}\n", encoding="utf-8")
    store = Store()

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(baseline_changes.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        clear(store)
    assert store.written == 0
    assert changes.read_text(encoding="utf-8") == f"{GOOD}\n"
    assert list(changes.parent.iterdir()) == [changes]


def test_change_that_the_store_refuses_is_not_recorded(clear, changes):
    changes.write_text(f"{GOOD}\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="disk I/O error"):
        clear(Store(RuntimeError("disk I/O error")))
    assert changes.read_text(encoding="utf-8") == f"{GOOD}\n"
    assert list(changes.parent.iterdir()) == [changes]


def test_damaged_record_is_refused_before_the_store_is_changed(clear, changes):
    changes.write_text(f"{GOOD[:-20]}\n", encoding="utf-8")
    store = Store()
    with pytest.raises(UsageError, match="line 1 cannot be read"):
        clear(store)
    assert store.written == 0

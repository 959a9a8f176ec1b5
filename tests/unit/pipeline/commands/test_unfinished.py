"""The folder of `predict` while it is written, and what goes of killed ones."""

import contextlib
import errno
import os
import shutil
from pathlib import Path

import pytest

from slipway.pipeline.commands.unfinished import unfinished
from slipway.pipeline.errors import UsageError


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_has_its_name_when_it_is_done(tmp_path):
    with unfinished(tmp_path / "new" / "out") as partial:
        assert not (tmp_path / "new" / "out").exists()
        (partial / "summary.json").touch()
    assert _names(tmp_path / "new") == ["out"]
    assert _names(tmp_path / "new" / "out") == ["summary.json"]


def test_the_files_are_on_disk_before_the_folder_has_its_name(tmp_path, monkeypatch):
    on_disk = []

    def fsync(descriptor):
        assert not (tmp_path / "out").exists()
        on_disk.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    with unfinished(tmp_path / "out") as partial:
        (partial / "predictions-00000-of-00001.jsonl").write_text("{}")
        (partial / "summary.json").write_text("{}")
    assert sorted(on_disk) == sorted(path.stat().st_ino for path in (tmp_path / "out").iterdir())


def test_an_error_leaves_nothing(tmp_path):
    with contextlib.suppress(KeyboardInterrupt), unfinished(tmp_path / "out"):
        raise KeyboardInterrupt
    assert _names(tmp_path) == []


@pytest.mark.parametrize(
    "files", [[], ["predictions-00000-of-00002.jsonl", "predictions-00001-of-00002.report"]]
)
def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(tmp_path, files):
    left = tmp_path / ".earlier.0123abcd"
    left.mkdir()
    for name in files:
        (left / name).touch()
    with unfinished(tmp_path / "out") as first:
        (first / "predictions-00000-of-00001.jsonl").touch()
        with unfinished(tmp_path / "other"):
            assert first.exists()
    assert _names(tmp_path) == ["other", "out"]


def test_a_folder_of_somebody_elses_stays(tmp_path):
    (tmp_path / ".notes.0123abcd").mkdir()
    (tmp_path / ".notes.0123abcd" / "diary.txt").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".link.0123abcd").symlink_to(tmp_path / ".git")
    with unfinished(tmp_path / "out"):
        pass
    assert _names(tmp_path) == [".git", ".link.0123abcd", ".notes.0123abcd", "out"]


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(UsageError, match="already exists"), unfinished(tmp_path / "out"):
        pass


def test_of_two_for_the_same_folder_the_second_is_refused_before_it_predicts(tmp_path):
    with unfinished(tmp_path / "out") as first:
        (first / "summary.json").touch()
        with pytest.raises(UsageError, match="Another process"), unfinished(tmp_path / "out"):
            pytest.fail("predicts")
    assert _names(tmp_path) == ["out"]
    assert _names(tmp_path / "out") == ["summary.json"]


def test_a_folder_of_its_own_needs_no_lock_that_a_killed_process_would_leave(tmp_path):
    with unfinished(tmp_path / "20270101-1", is_own=True) as new:
        assert _names(tmp_path) == [new.name]
    with unfinished(tmp_path / "out") as new:
        assert _names(tmp_path) == sorted(["20270101-1", new.name, ".out.lock"])


def test_predictions_for_a_folder_that_was_filled_meanwhile_are_kept(tmp_path):
    def predicts():
        with unfinished(tmp_path / "out") as new:
            (new / "summary.json").touch()
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "mine").touch()

    with pytest.raises(UsageError, match="cannot be replaced") as found:
        predicts()
    [kept] = [path for path in tmp_path.iterdir() if path.name != "out"]
    assert found.value.hint == f"they are in {kept}"
    assert kept.name.startswith("out.")
    assert _names(kept) == ["summary.json"]


def test_predictions_that_cannot_be_renamed_at_all_are_named_and_no_leftover(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    def predicts():
        with unfinished(tmp_path / "out") as new:
            (new / "summary.json").touch()
            monkeypatch.setattr(Path, "rename", refused)

    with pytest.raises(UsageError, match=r"cannot be replaced .* Permission denied") as found:
        predicts()
    monkeypatch.undo()
    [kept] = tmp_path.iterdir()
    assert found.value.hint == f"they are in {kept}"
    with unfinished(tmp_path / "other"):
        pass
    assert (kept / "summary.json").exists()


def test_a_link_to_an_empty_folder_is_followed(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    with unfinished(tmp_path / "out") as new:
        (new / "summary.json").touch()
    assert _names(tmp_path) == ["disk", "out"]
    assert _names(tmp_path / "out") == ["summary.json"]


def busy(_path, _target):
    raise OSError(errno.EBUSY, "Device or resource busy")


def written(folder):
    for name in ("summary.json", "predictions-00000-of-00001.jsonl", "rejects-00000-of-00001.jsonl"):
        (folder / name).write_text(name)


def test_into_a_volume_of_a_container_the_files_are_copied_the_summary_last(tmp_path, monkeypatch):
    """Another disk begins there, and no folder can take its place."""
    (tmp_path / "out").mkdir()
    copied, copy = [], shutil.copyfile

    def copies(path, target):
        copied.append(target.name)
        copy(path, target)

    monkeypatch.setattr(shutil, "copyfile", copies)
    with unfinished(tmp_path / "out") as new:
        written(new)
        monkeypatch.setattr(Path, "rename", busy)
    assert copied == ["predictions-00000-of-00001.jsonl", "rejects-00000-of-00001.jsonl", "summary.json"]
    assert _names(tmp_path) == ["out"]
    assert sorted(path.read_text() for path in (tmp_path / "out").iterdir()) == sorted(copied)


def test_predictions_for_a_full_volume_are_kept_whole_beside_it(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    rename, copy = Path.rename, shutil.copyfile

    def fills(path, target):
        copy(path, target)
        if target.name.startswith("rejects"):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", fills)
    monkeypatch.setattr(Path, "rename", lambda path, to: (busy if to.name == "out" else rename)(path, to))
    with (
        pytest.raises(UsageError, match=r"complete.*No space left") as told,
        unfinished(tmp_path / "out") as new,
    ):
        written(new)
    assert _names(tmp_path / "out") == []
    kept = Path(told.value.hint.removeprefix("they are in "))
    assert len(_names(kept)) == 3


def test_a_link_that_leads_to_itself_is_refused(tmp_path):
    (tmp_path / "out").symlink_to("out")
    with pytest.raises(UsageError, match="already exists"), unfinished(tmp_path / "out"):
        pytest.fail("predicts")

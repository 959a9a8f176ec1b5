"""Checkpoints are whole or not there, and damage is seen."""

import errno
import json
from dataclasses import replace

import numpy as np
import pytest

from components.errors import ComponentError
from components.trainer.checkpoint import Checkpoint, CheckpointFolder


def checkpoint(epoch):
    variables = [np.full((3, 2), epoch, np.float32), np.array([7, epoch], np.uint32), np.int64(5 * epoch)]
    history = tuple({"epoch": n + 1, "loss": 1 / (n + 3)} for n in range(epoch))
    return Checkpoint(epoch=epoch, step=5 * epoch, fit_s=0.1 * epoch, history=history, variables=variables)


def same(found, expected):
    pairs = zip(found.variables, expected.variables, strict=True)
    return replace(found, variables=()) == replace(expected, variables=()) and all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs
    )


@pytest.fixture
def folder(tmp_path):
    """With three epochs behind it."""
    made = CheckpointFolder(tmp_path, job="job 1")
    for epoch in (1, 2, 3):
        made.save(checkpoint(epoch))
    return made


def names(folder):
    return sorted(file.name for file in folder.path.iterdir())


def test_empty_folder_means_the_beginning(tmp_path):
    assert CheckpointFolder(tmp_path, job="job 1").newest() == (Checkpoint(), [])


def test_newest_checkpoint_comes_back_as_it_went(folder):
    found, problems = folder.newest()
    assert same(found, checkpoint(3))
    assert problems == []


def test_two_checkpoints_are_kept_and_nothing_else(folder):
    (folder.path / "unfinished.epoch-00004.npz").write_text("killed here")
    folder.save(checkpoint(4))
    assert names(folder) == [f"epoch-0000{n}.{kind}" for n in (3, 4) for kind in ("json", "npz")]


@pytest.mark.parametrize("name", ["epoch-00003.json", "epoch-00003.npz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_any_flipped_bit_is_seen_and_the_one_before_is_taken(folder, name, share):
    content = bytearray((folder.path / name).read_bytes())
    content[int(share * len(content))] ^= 1
    (folder.path / name).write_bytes(content)
    found, problems = folder.newest()
    assert same(found, checkpoint(2))
    assert len(problems) == 1
    assert problems[0].startswith("epoch-00003.json cannot be used: ")


@pytest.mark.parametrize("name", ["epoch-00003.json", "epoch-00003.npz"])
@pytest.mark.parametrize("length", [0, 100, -1])
def test_truncated_file_is_seen_and_the_one_before_is_taken(folder, name, length):
    (folder.path / name).write_bytes((folder.path / name).read_bytes()[:length])
    found, problems = folder.newest()
    assert same(found, checkpoint(2))
    assert len(problems) == 1


def test_missing_variables_are_told(folder):
    (folder.path / "epoch-00003.npz").unlink()
    assert folder.newest()[1] == ["epoch-00003.json cannot be used: epoch-00003.npz is missing"]


def test_checkpoint_that_was_never_finished_is_not_worth_a_word(folder):
    (folder.path / "epoch-00003.json").unlink()
    found, problems = folder.newest()
    assert (found.epoch, problems) == (2, [])


def test_all_damaged_means_the_beginning_and_what_is_then_written_stays(folder):
    for file in folder.path.glob("*.json"):
        file.write_text("{}")
    found, problems = folder.newest()
    assert (found, len(problems)) == (Checkpoint(), 2)
    folder.save(checkpoint(1))
    assert same(folder.newest()[0], checkpoint(1))
    assert names(folder) == ["epoch-00001.json", "epoch-00001.npz"]


def test_checkpoint_of_another_job_is_not_gone_on_with(folder):
    other = CheckpointFolder(folder.path, job="job 2")
    found, problems = other.newest()
    assert found == Checkpoint()
    assert problems[0] == "epoch-00003.json cannot be used: it belongs to another training job"


def test_variables_that_would_run_code_when_read_are_refused(folder):
    """Also with right digests: who can write here can write those, too."""
    arrays = folder.path / "epoch-00003.npz"
    np.savez(arrays, np.array([object()], dtype=object), allow_pickle=True)
    file = folder.path / "epoch-00003.json"
    facts = json.loads(file.read_text())["checkpoint"]
    from components.trainer import checkpoint as module

    facts["variables"]["sha256"] = module._file_digest(arrays)
    file.write_text(json.dumps({"sha256": module._digest(facts), "checkpoint": facts}))
    found, problems = folder.newest()
    assert found.epoch == 2
    assert "allow_pickle=False" in problems[0]


def test_full_disk_is_told_and_the_checkpoint_before_stays(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("components.trainer.checkpoint.np.savez", full)
    with pytest.raises(ComponentError, match="epoch-00004 could not be written: No space left on device"):
        folder.save(checkpoint(4))
    monkeypatch.undo()
    assert same(folder.newest()[0], checkpoint(3))

"""Checkpoints are whole or not there, and damage is seen."""

import errno
import hashlib
import io
import json

import numpy as np
import pytest
from saved_checkpoints import change, checkpoint, filled, job_that_keeps, same, step_files

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint_files import Attempts, Checkpoint, CheckpointFolder
from slipway.components.trainer.checkpoint_storage import DiskStorage
from slipway.components.trainer.loop.early_stopping import Best


@pytest.fixture
def files(tmp_path):
    return DiskStorage(tmp_path)


@pytest.fixture
def folder(files):
    """With three epochs behind it."""
    return filled(files)


def test_empty_folder_means_the_beginning(files):
    assert CheckpointFolder(files, job="job 1").newest() == (Checkpoint(), [])


def test_newest_checkpoint_comes_back_as_it_went(folder):
    found, problems = folder.newest()
    assert same(found, checkpoint(3))
    assert problems == []


def test_two_checkpoints_are_kept_and_nothing_else(folder, tmp_path):
    folder.save(checkpoint(4))
    assert sorted(path.name for path in tmp_path.iterdir()) == step_files(15, 20)


def test_attempt_removes_what_one_that_was_killed_has_left_half_written(folder, files, tmp_path):
    (tmp_path / "unfinished.step-000000020.npz").write_text("killed here")
    assert sorted(files.names()) == step_files(10, 15)
    folder.begin_attempt(100.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attempts.json", *step_files(10, 15)]


def test_host_that_reads_leaves_alone_what_another_is_writing(folder, files):
    def write_while_another_reads(file):
        assert same(CheckpointFolder(files, job="job 1").newest()[0], checkpoint(3))
        file.write(b"written")

    files.write("step-000000020.npz", write_while_another_reads)
    assert files.read("step-000000020.npz") == b"written"


def test_best_checkpoint_stays_beside_the_newest_and_comes_back(files):
    folder = CheckpointFolder(files, job="job 1", keep=1)
    for epoch in (1, 2, 3, 4):
        folder.save(checkpoint(epoch, best=Best(epoch=min(epoch, 2), step=5 * min(epoch, 2), value=0.1)))
    assert sorted(files.names()) == step_files(10, 20)
    newest, _ = folder.newest()
    assert newest.best == Best(epoch=2, step=10, value=0.1)
    assert folder.read(newest.best.step).step == 10


@pytest.mark.parametrize("name", step_files(15))
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_any_flipped_bit_is_seen_and_the_one_before_is_taken(folder, files, name, share):
    def flip(content):
        place = int(share * len(content))
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]

    change(files, name, flip)
    found, problems = folder.newest()
    assert same(found, checkpoint(2))
    assert len(problems) == 1
    assert problems[0].startswith("step-000000015.json cannot be used: ")


@pytest.mark.parametrize("name", step_files(15))
@pytest.mark.parametrize("length", [0, 100, -1])
def test_truncated_file_is_seen_and_the_one_before_is_taken(folder, files, name, length):
    change(files, name, lambda content: content[:length])
    found, problems = folder.newest()
    assert same(found, checkpoint(2))
    assert len(problems) == 1


def test_missing_variables_are_reported(folder, files):
    files.remove("step-000000015.npz")
    assert folder.newest()[1] == ["step-000000015.json cannot be used: step-000000015.npz is missing"]


def test_checkpoint_that_was_never_finished_is_not_worth_a_word(folder, files):
    files.remove("step-000000015.json")
    found, problems = folder.newest()
    assert (found.step, problems) == (10, [])


def test_all_damaged_means_the_beginning_and_what_is_then_written_stays(folder, files):
    for name in step_files(10, 15)[::2]:
        change(files, name, lambda _: b"{}")
    found, problems = folder.newest()
    assert (found, len(problems)) == (Checkpoint(), 2)
    folder.save(checkpoint(1))
    assert same(folder.newest()[0], checkpoint(1))
    assert sorted(files.names()) == step_files(5)


def test_checkpoint_of_another_job_is_not_gone_on_with(folder, files):
    found, problems = CheckpointFolder(files, job="job 2").newest()
    assert found == Checkpoint()
    assert problems[0] == "step-000000015.json cannot be used: it belongs to another training job"


def test_variables_that_would_run_code_when_read_are_refused(folder, files):
    """Also with right digests: who can write here can write those, too."""
    from slipway.components.trainer import checkpoint_files as module

    arrays = io.BytesIO()
    np.savez(arrays, variable_0=np.array([object()], dtype=object), allow_pickle=True)
    change(files, "step-000000015.npz", lambda _: arrays.getvalue())
    facts = json.loads(files.read("step-000000015.json"))["checkpoint"]
    facts.update(arrays_sha256=hashlib.sha256(arrays.getvalue()).hexdigest(), variables=1, metrics=0)
    document = json.dumps({"sha256": module._digest(facts), "checkpoint": facts}).encode()
    change(files, "step-000000015.json", lambda _: document)
    found, problems = folder.newest()
    assert found.step == 10
    assert "allow_pickle=False" in problems[0]


def test_full_disk_is_reported_and_the_checkpoint_before_stays(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("slipway.components.trainer.checkpoint_files.np.savez", full)
    with pytest.raises(ComponentError, match="step-000000020 could not be written: No space left on device"):
        folder.save(checkpoint(4))
    monkeypatch.undo()
    assert same(folder.newest()[0], checkpoint(3))


def test_attempts_are_counted_from_the_first_one_on(files):
    folder = CheckpointFolder(files, job="job 1")
    assert folder.begin_attempt(100.0) == Attempts(began_at=100.0, count=1)
    assert folder.begin_attempt(160.0) == Attempts(began_at=100.0, count=2)
    assert CheckpointFolder(files, job="job 2").begin_attempt(200.0) == Attempts(began_at=200.0, count=1)
    change(files, "attempts.json", lambda content: content[:-1])
    assert folder.begin_attempt(300.0) == Attempts(began_at=300.0, count=1)


def test_the_best_epoch_of_each_kept_checkpoint_is_kept(files):
    made = CheckpointFolder(files, job="job 1")
    first, third = (Best(epoch=n, step=5 * n, value=1 / n) for n in (1, 3))
    made.save(checkpoint(1, best=first))
    made.save(checkpoint(2, best=first))
    later = CheckpointFolder(files, job="job 1")  # of a process that was started again
    later.save(checkpoint(3, best=third))
    newest = next(name for name in files.names() if name.endswith("15.npz"))
    files.write(newest, lambda file: file.write(b"torn"))
    resumed, problems = CheckpointFolder(files, job="job 1").newest()
    assert (resumed.step, resumed.best, len(problems)) == (10, first, 1)
    assert same(later.read(first.step), checkpoint(1, best=first))
    later.save(checkpoint(4, best=third))
    assert not any(name.startswith("step-000000005") for name in files.names())


def test_other_code_has_another_folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine").mkdir()
    module, layers = tmp_path / "mine" / "model.py", tmp_path / "mine" / "layers.py"
    module.write_text("from mine import layers")
    layers.write_text("UNITS = 8")
    once = job_that_keeps(str(tmp_path / "kept"), "mine.model.build_model").checkpoint_dir
    assert job_that_keeps(str(tmp_path / "kept"), "mine.model.build_model").checkpoint_dir == once
    layers.write_text("UNITS = 9")
    assert job_that_keeps(str(tmp_path / "kept"), "mine.model.build_model").checkpoint_dir != once

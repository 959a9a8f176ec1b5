"""Where checkpoints are kept: a folder on a disk or in an object store, of one training at a time."""

from dataclasses import replace

import pytest
from obstore.store import MemoryStore
from saved_checkpoints import change, checkpoint, filled, job_that_keeps, same, step_files

from slipway.components import s3_and_azure_store
from slipway.components.errors import ComponentError
from slipway.components.trainer import checkpoint_storage
from slipway.components.trainer.checkpoint_files import Checkpoint, CheckpointFolder
from slipway.components.trainer.checkpoint_storage import (
    alone,
    checkpoint_dir,
    forget_checkpoints,
    storage,
)
from slipway.components.trainer.settings.checkpoint import CheckpointSettings


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_object_store_keeps_checkpoints_as_a_disk_does(tmp_path):
    """TensorFlow's ram:// stands for gs://: the same calls. What lies there outlasts the test."""
    files = storage(f"ram:/{tmp_path}")
    assert CheckpointFolder(files, job="job 1").newest() == (Checkpoint(), [])
    folder = filled(files)
    assert same(folder.newest()[0], checkpoint(3))
    assert sorted(files.names()) == step_files(10, 15)
    change(files, "step-000000015.npz", lambda content: content[:-1])
    assert folder.newest()[1] == ["step-000000015.json cannot be used: step-000000015.npz is damaged"]
    files.remove("step-000000015.npz")
    files.remove("step-000000015.npz")
    with pytest.raises(FileNotFoundError):
        files.read("step-000000015.npz")
    assert folder.begin_attempt(100.0).count == 1


@pytest.mark.parametrize("scheme", ["s3", "minio", "az"])
def test_checkpoints_are_kept_where_tensorflow_has_no_file_system(scheme, monkeypatch):
    store = MemoryStore()
    monkeypatch.setattr(s3_and_azure_store, "open_store", lambda address: store)
    place = f"{scheme}://bucket/checkpoints/taxi/1"
    folder = filled(storage(place))
    assert same(folder.newest()[0], checkpoint(3))
    assert folder.begin_attempt(7.0).count == 1
    assert CheckpointFolder(storage(place), job="job 1").begin_attempt(8.0).count == 2
    assert storage(place).names() == ["attempts.json", *step_files(10, 15)]
    for name in storage(place).names():
        storage(place).remove(name)
    assert storage(place).names() == []
    with pytest.raises(FileNotFoundError):
        storage(place).read("attempts.json")


def test_refusal_of_such_a_store_is_an_error_that_the_training_expects(monkeypatch):
    monkeypatch.setattr(s3_and_azure_store, "open_store", lambda address: MemoryStore())
    files = storage("s3://bucket/checkpoints")

    def refuse(*_):
        raise ComponentError("s3://bucket: permission denied", hint="set AWS_REGION")

    monkeypatch.setattr(files._objects, "write", refuse)
    with pytest.raises(ComponentError, match="s3://bucket: permission denied set AWS_REGION"):
        CheckpointFolder(files, job="job 1").save(checkpoint(1))


def test_folder_on_disk_is_one_training_s_at_a_time(tmp_path):
    job = job_that_keeps(str(tmp_path))
    with alone(job):
        with (
            pytest.raises(ComponentError, match="is in use by another training of the same data"),
            alone(job),
        ):
            pass
        with alone(replace(job, checkpoint_dir=f"{tmp_path}/other")):
            pass
    with alone(job):
        pass
    assert [str(path) for path in tmp_path.iterdir()] == [job.checkpoint_dir]


@pytest.fixture
def store(monkeypatch):
    """Where jobs keep checkpoints in a store: a function of the run."""
    stores = {}
    monkeypatch.setattr(
        s3_and_azure_store, "open_store", lambda address: stores.setdefault(address, MemoryStore())
    )
    monkeypatch.setattr(checkpoint_storage, "SETTLE_S", 0.0)

    def claim(run):
        job = replace(job_that_keeps(None), checkpoint=CheckpointSettings(folder="s3://bucket/kept"))
        return replace(job, checkpoint_dir=checkpoint_dir(job, run=run))

    return claim


def kept(job):
    return CheckpointFolder(storage(job.checkpoint_dir), job="job 1")


def test_equal_runs_in_a_store_have_folders_of_their_own_and_take_over_what_is_there(store):
    first = store("run 1")
    kept(first).save(checkpoint(1))
    second = store("run 2")
    assert second.checkpoint_dir != first.checkpoint_dir
    assert kept(second).newest()[0].step == 5
    kept(second).save(checkpoint(3))

    assert store("run 1").checkpoint_dir == first.checkpoint_dir  # the next attempt at each
    assert store("run 2").checkpoint_dir == second.checkpoint_dir
    assert kept(store("run 3")).newest()[0].step == 15, "the newest of all"

    forget_checkpoints(first)
    assert kept(first).newest()[0] == Checkpoint()
    assert kept(second).newest()[0].step == 15
    assert store("run 2").checkpoint_dir == second.checkpoint_dir
    assert store("run 4").checkpoint_dir == first.checkpoint_dir  # nobody has it now


def test_of_runs_that_claim_a_folder_at_once_one_has_it(store, monkeypatch):
    folders = []
    monkeypatch.setattr(
        checkpoint_storage.time,
        "sleep",
        lambda _: folders or folders.append(None) or folders.append(store("b")),
    )
    first = store("a")
    assert first.checkpoint_dir != folders[1].checkpoint_dir


@pytest.mark.parametrize("folder", [None, "ram://b/checkpoints"])
def test_where_the_engine_or_a_store_keeps_checkpoints_nothing_is_locked(folder):
    job = job_that_keeps(folder)
    with alone(job), alone(job):
        pass

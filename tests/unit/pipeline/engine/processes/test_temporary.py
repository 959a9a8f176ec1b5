"""Temporary files go with their run, and nothing else does."""

import shutil
import tempfile
from pathlib import Path

import pytest

from slipway.pipeline.engine.processes.temporary import remove_left, temporary_folder


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The folder of the runs, with one in it; temporary files lie beside it."""
    (tmp_path / "system").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "system"))
    (tmp_path / "runs" / "r1").mkdir(parents=True)
    return tmp_path / "runs"


def test_folder_goes_with_its_run(runs):
    with temporary_folder(runs / "r1") as folder:
        (folder / "half").write_text("x")
        assert (runs / "r1" / "tmp").readlink() == folder
    assert not folder.exists()
    assert list((runs / "r1").iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next(runs):
    killed = temporary_folder(runs / "r1")
    folder = killed.__enter__()
    (folder / "half").write_text("x")
    remove_left(runs)
    assert not folder.exists()
    assert list((runs / "r1").iterdir()) == []
    del killed


def test_copy_of_the_runs_costs_a_run_at_work_nothing(runs, tmp_path):
    with temporary_folder(runs / "r1") as folder:
        copy = Path(shutil.copytree(runs, tmp_path / "copy", symlinks=True))
        remove_left(copy)
        assert folder.is_dir()
        assert list((copy / "r1").iterdir()) == []


@pytest.mark.parametrize("name", ["precious", "slipway-run-x/../precious"])
def test_link_to_anything_else_costs_that_nothing(runs, name):
    precious = runs.parent / "precious"
    precious.mkdir()
    (precious / "data").write_text("x")
    (runs / "r1" / "tmp").symlink_to(runs.parent / Path(name))
    remove_left(runs)
    assert (precious / "data").exists()


def test_what_a_killed_step_left_is_removed_as_well(runs):
    step = runs / "r1" / "steps" / "Trainer"
    step.mkdir(parents=True)
    killed = temporary_folder(step)
    folder = killed.__enter__()
    remove_left(runs)
    assert not folder.exists()
    assert list(step.iterdir()) == []
    del killed

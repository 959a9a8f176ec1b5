"""A lock is one process's at a time, and a dead one's is taken over."""

import errno

import pytest

from slipway.components import lock_file
from slipway.components.lock_file import held, locked_folder


def test_lock_is_one_holder_s_at_a_time_and_leaves_nothing(tmp_path):
    path = tmp_path / "lock"
    with held(path) as first:
        with held(path) as second:
            assert (first, second) == (True, False)
        with held(path) as third:
            assert not third, "who could not take it has not released it"
    with held(path) as after:
        assert after
    assert list(tmp_path.iterdir()) == []


def test_file_that_a_killed_process_left_is_taken_over(tmp_path):
    (tmp_path / "lock").touch()
    with held(tmp_path / "lock") as is_held:
        assert is_held


def test_lock_is_released_by_an_error(tmp_path):
    with pytest.raises(ValueError, match="inside"), held(tmp_path / "lock"):
        raise ValueError("inside")
    with held(tmp_path / "lock") as is_held:
        assert is_held


def test_file_that_its_holder_removed_meanwhile_is_not_taken(tmp_path, monkeypatch):
    path = tmp_path / "lock"

    def released_and_taken_by_another(*_):
        path.unlink()
        path.touch()

    monkeypatch.setattr(lock_file.fcntl, "flock", released_and_taken_by_another)
    with held(path) as is_held:
        assert not is_held
    assert path.exists()


def test_link_is_not_followed(tmp_path):
    (tmp_path / "mine").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic"), held(tmp_path / "lock"):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_file_system_without_locks_keeps_nobody_out(tmp_path, monkeypatch, number):
    def fails(*_):
        raise OSError(number, "no locks")

    monkeypatch.setattr(lock_file.fcntl, "flock", fails)
    with held(tmp_path / "lock") as is_held:
        assert is_held


def test_other_error_of_the_lock_is_raised(tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(lock_file.fcntl, "flock", fails)
    with pytest.raises(OSError, match="broken disk"), held(tmp_path / "lock"):
        pass


def test_folder_that_another_program_keeps_locked_is_waited_for_and_then_given_up(tmp_path):
    with locked_folder(tmp_path) as first, locked_folder(tmp_path, wait_s=0.05) as second:
        assert (first, second) == (True, False)
    with locked_folder(tmp_path, wait_s=0.05) as after:
        assert after

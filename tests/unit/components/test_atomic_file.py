"""A file is there whole or not at all, and nothing half written stays beside it."""

import errno
import os
from contextlib import suppress

import pytest

from slipway.components.atomic_file import whole_file


@pytest.mark.parametrize("survives", [False, True])
def test_file_is_replaced_when_it_is_written(tmp_path, survives):
    file = tmp_path / "model.weights.h5"
    file.write_text("before")
    with whole_file(file, survives_power_loss=survives) as partial:
        partial.write_text("after")
        assert file.read_text() == "before"
        assert partial.name.endswith(".weights.h5"), "Keras tells formats by the suffix"
    assert file.read_text() == "after"
    assert list(tmp_path.iterdir()) == [file]


def test_what_fails_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "run.json"
    file.write_text("before")
    with suppress(RuntimeError), whole_file(file) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_link_that_somebody_has_put_there_for_the_process_is_not_written_through(tmp_path):
    own, page = tmp_path / "own.txt", tmp_path / "page.html"
    own.write_text("before")
    (tmp_path / f"unfinished.{os.getpid()}.page.html").symlink_to(own)
    with whole_file(page) as partial:
        partial.write_text("page")
    assert own.read_text() == "before"
    assert page.read_text() == "page"
    assert not page.is_symlink()


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(OSError, match=r"No space left on device: .*a\.json") as error, whole_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(path)


def test_two_processes_with_the_same_id_as_in_two_containers_do_not_write_into_the_same_file(tmp_path):
    path = tmp_path / "file"
    with whole_file(path) as one:
        one.write_text("one")
        with whole_file(path) as other:
            other.write_text("other")
    assert path.read_text() == "one"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]

"""Checks that a directory can take versions, before there is one."""

import pytest

from slipway.components.pusher.destination import find_unwritable


def test_a_directory_that_can_be_made_or_is_there_takes_versions(tmp_path):
    assert find_unwritable(str(tmp_path)) == ""
    assert find_unwritable(str(tmp_path / "a/b/c")) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "/a/b"])
def test_a_file_is_no_directory_to_make_one_in(tmp_path, below):
    (tmp_path / "file").touch()
    assert find_unwritable(f"{tmp_path}/file{below}") == f"{tmp_path}/file is not a directory"


def test_a_file_system_that_takes_no_files_is_reported_whatever_its_permissions_say():
    assert find_unwritable("/proc/x").startswith("/proc cannot be written to: ")

"""Checks that a directory can take versions, before there is one."""

import pytest

from slipway.components.pusher.destination import find_other_workload, find_unwritable
from slipway.components.pusher.publish_to_folder import publish


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


@pytest.mark.parametrize(
    ("pushed_by", "workload", "other"),
    [
        ("fares", "taxi", "fares"),
        ("taxi", "taxi", ""),
        ("fares", "", ""),
        ("", "taxi", ""),
        (None, "taxi", ""),
    ],
)
def test_versions_of_another_workload_are_told_by_the_newest_one(tmp_path, pushed_by, workload, other):
    model, base = tmp_path / "model", tmp_path / "serving"
    model.mkdir()
    for by in ("older", pushed_by):
        (model / "saved_model.pb").write_bytes(str(by).encode())
        publish(model, base=base, provenance=None if by is None else {"workload": by})

    assert find_other_workload(str(base), workload) == other
    told = find_unwritable(str(base), workload=workload)
    assert told == (f"it holds the versions of the workload '{other}'" if other else "")


def test_place_without_versions_is_nobodys(tmp_path):
    assert find_other_workload(str(tmp_path / "none"), "taxi") == ""

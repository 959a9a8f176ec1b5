"""Checks that a directory can take versions, before there is one."""

import shutil
from types import SimpleNamespace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher import destination
from slipway.components.pusher.destination import (
    find_other_workload,
    find_rollback,
    find_unwritable,
    remedy_of_rollback,
)
from slipway.components.pusher.manifest import read_manifest
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
        ("taxi_trips", "taxi-trips", ""),  # as a profile for cloud runs has to name it
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


@pytest.mark.parametrize(
    ("pushed_by", "told"),
    [
        ("fares", "it holds the versions of the workload 'fares'"),
        ("taxi", ""),
        (ComponentError("gs://b/taxi: no such bucket.", hint="make it"), "no such bucket; make it"),
    ],
)
def test_versions_of_another_workload_in_a_bucket_are_told_before_the_run(monkeypatch, pushed_by, told):
    def store(base):
        if isinstance(pushed_by, ComponentError):
            raise pushed_by
        manifest = SimpleNamespace(provenance={"workload": pushed_by})
        return SimpleNamespace(numbers=lambda: [3, 7], manifest={7: manifest}.get)

    monkeypatch.setattr(destination, "version_store_at", store)
    assert find_unwritable("gs://b/taxi", workload="taxi") == told


def test_place_without_versions_is_nobodys(tmp_path):
    assert find_other_workload(str(tmp_path / "none"), "taxi") == ""


@pytest.fixture
def history(tmp_path):
    """Publishes models, each by its letter; with a version that it replaces, as a rollback does."""

    def call(model, *, instead_of=None, **more):
        folder = tmp_path / model
        folder.mkdir(exist_ok=True)
        (folder / "saved_model.pb").write_bytes(model.encode())
        again = {"version": 1, "instead_of": instead_of, "at": "2027-01-01", "by": "ann", **more}
        provenance = {"workload": "taxi", **({} if instead_of is None else {"republished": again})}
        version = publish(folder, base=tmp_path / "serving", provenance=provenance).version
        return version, read_manifest(tmp_path / "serving" / str(version)).model_digest

    return call


def test_models_that_rollbacks_took_out_of_service_are_found_until_the_next_push(history, tmp_path):
    base = str(tmp_path / "serving")
    assert find_rollback(base, "none") is None
    _, oldest = history("a")
    _, middle = history("b")
    last, newest = history("c")
    assert [find_rollback(base, each) for each in (oldest, middle, newest)] == [None] * 3

    again, _ = history("b", instead_of=last)
    assert find_rollback(base, newest)["instead_of"] == last
    assert [find_rollback(base, each) for each in (oldest, middle)] == [None] * 2

    history("a", instead_of=again)
    assert [find_rollback(base, each)["instead_of"] for each in (middle, newest)] == [again, last]
    assert find_rollback(base, oldest) is None

    history("d")
    assert [find_rollback(base, each) for each in (oldest, middle, newest)] == [None] * 3


def test_model_whose_version_was_removed_is_known_by_the_digest_that_the_rollback_noted(history, tmp_path):
    base = tmp_path / "serving"
    history("a")
    last, newest = history("b")
    history("a", instead_of=last, instead_of_model=newest)
    assert remedy_of_rollback(str(base), last).endswith(f": rollback --to {last}")
    shutil.rmtree(base / str(last))
    assert find_rollback(str(base), newest)["instead_of"] == last
    assert "rollback --to" not in remedy_of_rollback(str(base), last)


@pytest.mark.parametrize("replaced", [0, -1, 2**62])
def test_version_that_no_rollback_can_have_replaced_ends_the_search(history, tmp_path, replaced):
    history("a", instead_of=replaced)
    assert find_rollback(str(tmp_path / "serving"), "another") is None

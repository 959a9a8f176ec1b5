"""The versions in a directory; tests/integration/pusher/test_bucket.py has those in Cloud Storage."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher import publish_to_folder as publishing
from slipway.components.pusher.manifest import read_manifest
from slipway.components.pusher.publish_to_folder import remove_version
from slipway.components.pusher.version_store import version_store_at


def test_versions_are_those_that_a_server_would_load_in_their_order(pushed, base, tmp_path):
    (base / "99999999998").mkdir()
    (base / "99999999999").symlink_to(tmp_path / "model")
    (base / "99999999997").symlink_to("99999999997")
    (base / "v3").mkdir()
    (base / "v3" / "saved_model.pb").touch()
    assert version_store_at(str(base)).numbers() == [7, *pushed]
    assert version_store_at(str(base / "not there")).numbers() == []


def test_version_is_fetched_where_it_lies_when_it_is_whole(pushed, base):
    store = version_store_at(str(base))
    with store.fetched(pushed[0]) as folder:
        assert folder == base / str(pushed[0])
    assert store.base == str(base)
    assert store.problem(pushed[0]) == ""
    assert store.manifest(pushed[0]) == read_manifest(base / str(pushed[0]))
    assert store.manifest(7) is None


def test_damaged_version_is_refused(pushed, base):
    (base / str(pushed[0]) / "saved_model.pb").write_bytes(b"worst")
    problem = version_store_at(str(base)).problem(pushed[0])
    assert "saved_model.pb" in problem
    with pytest.raises(ComponentError) as error, version_store_at(str(base)).fetched(pushed[0]):
        pass
    assert str(error.value) == (
        f"Version {pushed[0]} in {base} is not used: {problem}.\nhint: choose another version, or push again"
    )


def test_version_that_is_removed_leaves_nothing_behind(pushed, base, monkeypatch):
    (base / ".staging-dead").mkdir()
    synced = []
    monkeypatch.setattr(publishing, "sync", lambda folder: synced.append((folder, numbers())))

    def numbers():
        return sorted(path.name for path in base.iterdir() if path.name.isdigit())

    remove_version(base, pushed[0])
    left = sorted(["7", *map(str, pushed[1:])])
    assert {path.name for path in base.iterdir()} == {".lock", *left}
    assert synced == [(base, left)], "the name is gone on disk before its files go"
    remove_version(base, pushed[0])  # it is gone, and that is all that was wanted
    assert numbers() == left


def test_version_loses_its_name_before_its_files(pushed, base, monkeypatch):
    def dies(path):
        assert path.name.startswith(".staging-")
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(publishing.shutil, "rmtree", dies)
    with pytest.raises(ComponentError, match="Input/output error"):
        remove_version(base, pushed[0])
    assert version_store_at(str(base)).numbers() == [7, *pushed[1:]]
    monkeypatch.undo()
    remove_version(base, pushed[1])
    assert not list(base.glob(".staging-*"))


def test_version_is_removed_in_its_turn(pushed, base, monkeypatch):
    monkeypatch.setattr(publishing, "LOCK_WAIT_S", 0.05)
    with publishing._turn(base), pytest.raises(ComponentError, match="held by another publisher"):
        remove_version(base, pushed[0])
    assert version_store_at(str(base)).numbers() == [7, *pushed]

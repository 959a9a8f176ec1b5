import pytest
from small_workload import small_workload

from slipway.components.project import PROJECT_ROOT
from slipway.components.pusher.manifest import Manifest
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring.request_log import log_settings, request_folder


def config(**log):
    return small_workload(request_log=log or None)


def test_nothing_is_logged_unless_it_is_asked_for(tmp_path):
    assert log_settings(config(), tmp_path, None) is None
    assert request_folder(config(), tmp_path) == tmp_path / "requests/toy"


def test_settings_follow_the_workload(tmp_path):
    found = log_settings(config(columns=["fare"], share=0.5, max_mb=32), tmp_path, Manifest({}))
    assert (found.folder, found.columns) == (str(tmp_path / "requests/toy"), ("fare",))
    assert (found.share, found.most_bytes) == (0.5, 32 * 2**20)
    assert log_settings(config(columns=["fare"], folder="/logs"), tmp_path, None).folder == "/logs"


def test_folder_is_the_same_from_whichever_folder_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert request_folder(config(columns=["fare"], folder="logs"), tmp_path) == PROJECT_ROOT / "logs"


def test_column_that_the_data_lacks_is_refused(tmp_path):
    manifest = Manifest({}, {"schema": {"columns": {"fare": "FLOAT"}}})
    with pytest.raises(UsageError, match="names 'fares'") as error:
        log_settings(config(columns=["fares"]), tmp_path, manifest)
    assert error.value.hint == "nearest: fare"

import json

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch.training_data import read_training, training_statistics


@pytest.fixture
def statistics(tmp_path):
    folder = tmp_path / "verdict/statistics"
    made = statistics_pb2.DatasetFeatureStatisticsList()
    made.datasets.add(num_examples=5)
    (folder / "Split-train").mkdir(parents=True)
    (folder / "Split-train/FeatureStats.pb").write_bytes(made.SerializeToString())
    return folder


def test_statistics_are_those_that_the_gate_has_kept(statistics, tmp_path, monkeypatch):
    class Record:
        def outputs_of(self, type_name):
            assert type_name == "schemas.DataVerdict"
            return [(None, {"uri": str(tmp_path / "verdict")})]

    monkeypatch.setattr("slipway.pipeline.runs.history.History.find", lambda _, name: name and Record())
    assert training_statistics(tmp_path, "run", 7).rows == 5
    (statistics / "profile.json").write_text(json.dumps({"rows": {"train": 50}}))
    assert training_statistics(tmp_path, "run", 7).rows == 50
    (tmp_path / "verdict").rename(tmp_path / "gone")
    with pytest.raises(UsageError, match="are gone"):
        training_statistics(tmp_path, "run", 7)


@pytest.mark.parametrize("run_id", ["", "20260101-000000-abcd"])
def test_version_of_an_unknown_run_has_none(tmp_path, run_id):
    with pytest.raises(UsageError, match="What version 7 was trained on is not known") as error:
        training_statistics(tmp_path, run_id, 7)
    assert "--reference" in error.value.hint


def test_folder_of_something_else_is_refused(statistics, tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_training(tmp_path)
    (statistics / "Split-train/FeatureStats.pb").write_bytes(b"\xff\xff")
    with pytest.raises(UsageError, match="holds no statistics"):
        read_training(statistics)

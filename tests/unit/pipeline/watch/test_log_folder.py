import json
import math
import os
import stat
from pathlib import Path

import pytest

from fuzzing.prediction_logs import example, prediction_log
from slipway.components.ingest.tfrecord import frame
from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch import log_folder as module
from slipway.pipeline.watch.late_labels import join
from slipway.pipeline.watch.log_folder import NO_TIME, open_logs
from slipway.pipeline.watch.requests import read_requests


@pytest.fixture
def folder(tmp_path):
    """Two rows of ours, and three of TensorFlow Serving in two files, one of them without a time."""
    at = {"logged_at": "2026-11-22T00:00:00Z", "logged_version": 7}
    lines = ({**at, "fare": fare, "id": fare, "logged_prediction": [0.5]} for fare in (1, 2))
    (tmp_path / "requests-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    examples = [example(fare=3.0, id=3, secret=b"x"), example(fare=4.0, id=4)]
    (tmp_path / "a.tfrecord").write_bytes(frame([prediction_log({"examples": examples}, [0.25, 0.75])]))
    without_time = prediction_log({"fare": [5.0], "id": [5]}, [1.0], at_s=0)
    (tmp_path / "b.tfrecord").write_bytes(frame([without_time, b"\xff"]))
    os.utime(tmp_path / "b.tfrecord", (1_795_392_000, 1_795_392_000))
    return tmp_path


def test_requests_to_tensorflow_serving_are_read_like_ours(folder):
    with open_logs(folder, ["fare", "id", "logged_version"]) as logs:
        assert [file.name for file in logs.files] == ["requests-1.jsonl", "a.tfrecord", "b.tfrecord"]
        own = logs.files[1].path.parent
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        assert b"secret" not in logs.files[1].path.read_bytes(), "only the columns that are named"
        found = read_requests(logs, {"fare": "float"}, 7)
        joined = join(logs, key="id", version=7, labels={"2": 1.0, "4": 0.0, "5": 1.0})
    assert found.table["fare"].to_pylist() == [1, 2, 3, 4, 5]
    assert found.at_ms.tolist() == [1_795_305_600_000] * 4 + [1_795_392_000_000]
    assert joined.answers.tolist() == [[0.5], [0.75], [1.0]]
    assert logs.left_out_counts == {NO_TIME: 1, "records that are no PredictionLog": 1}
    assert module.left_out_lines(logs.left_out_counts) == [
        "Left out or incomplete: records that are no PredictionLog (1); "
        "requests without a time, which have that of their file (1)."
    ]
    assert not own.exists()


@pytest.mark.parametrize("at_s", [253_402_300_800, 2**63 - 1])
def test_request_with_a_time_that_cannot_be_has_that_of_its_file(folder, at_s):
    log = prediction_log({"fare": [5.0], "id": [5]}, [1.0], at_s=at_s)
    (folder / "b.tfrecord").write_bytes(frame([log]))
    os.utime(folder / "b.tfrecord", (1_795_392_000, 1_795_392_000))
    with open_logs(folder, ["fare", "id"]) as logs:
        found = read_requests(logs, {"fare": "float"}, 7)
    assert found.at_ms.tolist()[-1] == 1_795_392_000_000
    assert logs.left_out_counts == {NO_TIME: 1}


def test_row_with_an_infinite_number_is_counted_and_not_taken_for_missing(folder):
    (folder / "b.tfrecord").write_bytes(
        frame([prediction_log({"fare": [5.0, math.inf], "id": [5, 6]}, [1.0, 1.0])])
    )
    with open_logs(folder, ["id", "fare"]) as logs:
        found = read_requests(logs, {"fare": "float"}, 7)
    assert found.table["fare"].to_pylist() == [1, 2, 3, 4, 5]
    assert logs.left_out_counts == {"rows with an infinite number, which JSON has not": 1}


def test_folder_without_them_is_as_it_is(folder):
    for name in ("a.tfrecord", "b.tfrecord"):
        (folder / name).unlink()
    with open_logs(folder, ["fare"]) as logs:
        assert (len(logs.files), logs.files[0].path.parent, logs.left_out_counts) == (1, folder, {})
    with open_logs(folder / "none", ["fare"]) as logs:
        assert not logs.files


def test_lines_in_a_file_that_is_named_like_theirs_are_read_once(folder):
    for name in ("a.tfrecord", "b.tfrecord"):
        (folder / name).unlink()
    (folder / "requests-1.jsonl").rename(folder / "requests-1.tfrecord.jsonl")
    with open_logs(folder, ["fare"]) as logs:
        assert [file.name for file in logs.files] == ["requests-1.tfrecord.jsonl"]
        assert logs.left_out_counts == {}


def test_full_disk_is_one_sentence(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_convert", full)
    with (
        pytest.raises(UsageError, match=r"a\.tfrecord cannot be read into .*: No space left") as error,
        open_logs(folder, ["fare"]),
    ):
        pass
    assert "TMPDIR" in error.value.hint
    assert not list(Path(folder).glob("slipway-*"))

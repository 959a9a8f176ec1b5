"""Rows in Python are answered by `slipway.load` as by `serve`, and as by `predict` those of a file."""

import json

import pandas as pd
import pytest
from small_workload import small_workload

import slipway
from slipway.components.errors import ComponentError
from slipway.pipeline.commands import load_from_python
from slipway.pipeline.commands.predict import predict
from slipway.pipeline.errors import UsageError

pytestmark = pytest.mark.slow

PREDICT = "/v1/models/toy:predict"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads a version of the workload `toy`."""
    monkeypatch.setattr(load_from_python.WorkloadChoice, "config", lambda _: small_workload())
    return lambda **options: slipway.load("toy", output=tmp_path / "output", **options)


@pytest.fixture
def predicted(tmp_path):
    """The lines that `predict` writes for a frame, as a file of Parquet."""

    def call(frame):
        frame.to_parquet(tmp_path / "rows.parquet")
        how = {"to": None, "version": None, "file_format": None, "beam_args": []}
        done = predict(small_workload(), tmp_path / "output", source=str(tmp_path / "rows.parquet"), **how)
        [file] = done.folder.glob("predictions-*")
        return [json.loads(line) for line in file.read_bytes().splitlines()]

    return call


def test_a_frame_with_empty_cells_is_answered_as_by_predict_and_serve(load, pushed, predicted, serve):
    pushed(0.3, classes=["no", "yes"])
    frame = pd.DataFrame({"fare": [2.0, 0.1, 7.7] * 200, "company": ["a", None, "c"] * 200, "tips": 1.0})
    answers = load().predict(frame)
    assert answers == predicted(frame)
    assert answers[0] == {"row": 0, "prediction": [pytest.approx(0.6)], "class": "yes"}
    rows = [{"fare": [fare], "company": [company or ""]} for fare, company, _ in frame.to_numpy().tolist()]
    status, said = serve().ask("POST", PREDICT, {"signature_name": "serve_raw", "instances": rows})
    assert status == 200
    assert [each["prediction"] for each in answers] == said["predictions"]
    assert [each["class"] for each in answers] == said["classes"]
    assert load().predict(rows) == answers


def test_several_outputs_are_answered_as_by_predict(load, pushed, predicted):
    pushed(2, heads=True, output_classes={"payment": ["cash", "card", "app"]})
    frame = pd.DataFrame({"fare": [0.5, 4.0], "company": ["a", None]})
    answers = load().predict(frame)
    assert [each["class"] for each in answers] == [{"payment": "cash"}, {"payment": "app"}]
    assert answers == predicted(frame)


def test_lists_of_any_length_are_answered_as_by_predict(load, pushed, predicted):
    pushed(2, lists=True, schema={"columns": {"tags": "BYTES", "prices": "FLOAT"}})
    frame = pd.DataFrame({"tags": [["a", "b"], [], None], "prices": [[1.0], [2.0, 3.0], []]})
    answers = load().predict(frame)
    assert [each["prediction"] for each in answers] == [[6.0], [10.0], [0.0]]
    assert answers == predicted(frame)


def test_the_version_that_is_named_answers_also_by_its_folder(load, pushed):
    first, second = pushed(2), pushed(3)
    row = {"fare": 1.5, "company": None}
    assert (load().version, load().predict([row])) == (second.version, [{"row": 0, "prediction": [4.5]}])
    assert load(version=first.version).predict([row]) == [{"row": 0, "prediction": [3.0]}]
    assert slipway.load(first.path).predict([row]) == [{"row": 0, "prediction": [3.0]}]


def test_a_version_that_is_not_what_its_manifest_says_is_not_loaded(load, pushed):
    version = pushed(2)
    with (version.path / "saved_model.pb").open("ab") as file:
        file.write(b"x")
    with pytest.raises(ComponentError, match=r"is not used: saved_model\.pb"):
        load()


def test_what_the_model_refuses_is_named_by_its_row(load, pushed):
    pushed(2)
    with pytest.raises(UsageError, match="Row 1: Input 'fare' must be of type float"):
        load().predict([{"fare": 1, "company": "a"}, {"fare": "x", "company": "a"}])

"""Counts of the rows that a model predicts, by outcome."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.predictor import predict_files as predicting
from slipway.components.predictor.input_columns import InputError
from slipway.components.predictor.predict_files import (
    BATCH_ROWS,
    REFUSED,
    Counts,
    InputTask,
    Logging,
    PredictFile,
    Rows,
    predict_files,
    rows_at_once,
)
from slipway.components.saved_model.loading import WrongInputError
from slipway.components.saved_model.signatures import Signature


class Answers:
    """A model that answers a row with the numbers that the row holds, and refuses a row without any."""

    def __init__(self, *outputs):
        self.signatures = {"serving_default": Signature(inputs={"examples": None}, outputs={})}
        self._outputs = outputs

    def call(self, _name, inputs):
        rows = [json.loads(row) for row in inputs["examples"]]
        if [] in rows:
            raise WrongInputError("fare is required")
        return {name: np.array(rows) for name in self._outputs}


@pytest.fixture
def report(monkeypatch, tmp_path):
    def call(rows, *outputs):
        monkeypatch.setattr(predicting, "LoadedModel", lambda _folder: Answers(*outputs))
        records = [json.dumps(row).encode() for row in rows]
        step = PredictFile("model", str(tmp_path), lambda _task: [Rows(records, np.arange(len(rows)), [])])
        step.setup()
        list(step.process(InputTask(0, "rows.csv", 1)))
        [path] = tmp_path.glob("*.report")
        return json.loads(path.read_text(encoding="utf-8"))

    return call


@pytest.mark.parametrize("outputs", [("a",), ("a", "b")])
def test_rows_with_no_number_for_an_answer_are_counted_once_each(report, tmp_path, outputs):
    found = report([[0.5, 0.5], [math.nan, math.nan], [math.inf, 1.0], [-1e308, 0.0]], *outputs)
    assert (found["predicted"], found["not_finite"]) == (4, 2)
    assert (tmp_path / "predictions-00000-of-00001.jsonl").read_text(encoding="utf-8").count("null") == (
        3 * len(outputs)
    )


@pytest.mark.parametrize(("row_bytes", "most"), [(10, BATCH_ROWS), (4 << 10, 256), (2 << 20, 1)])
def test_large_rows_such_as_images_are_answered_fewer_at_a_time(row_bytes, most):
    assert rows_at_once([b" " * row_bytes] * 3) == most


def test_rows_are_answered_in_batches_and_not_one_by_one(monkeypatch, tmp_path):
    calls = []

    class Counted(Answers):
        def call(self, name, inputs):
            calls.append(len(inputs["examples"]))
            return super().call(name, inputs)

    monkeypatch.setattr(predicting, "LoadedModel", lambda _folder: Counted("outputs"))
    count = 2 * BATCH_ROWS + 3
    rows = Rows([b"[%d]" % number for number in range(count)], np.arange(count), [])
    step = PredictFile("model", str(tmp_path), lambda _task: [rows])
    step.setup()
    list(step.process(InputTask(0, "rows.csv", 1)))
    assert calls == [BATCH_ROWS, BATCH_ROWS, 3]
    lines = (tmp_path / "predictions-00000-of-00001.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["prediction"] for line in lines] == [[number] for number in range(count)]


def test_columns_that_pass_through_are_written_beside_each_answer(monkeypatch, tmp_path):
    def example(**columns):
        from tensorflow.core.example.example_pb2 import Example

        found = Example()
        for name, values in columns.items():
            kind = {int: "int64_list", bytes: "bytes_list", float: "float_list"}[type(values[0])]
            getattr(found.features.feature[name], kind).value.extend(values)
        return found.SerializeToString()

    class Model(Answers):
        def call(self, _name, inputs):
            return {"outputs": np.zeros((len(inputs["examples"]), 1))}

    records = [
        example(id=[7], name=["ü".encode()], tags=[0.5, 1.5]),
        example(id=[b"8"], tags=[b"0.1"]),
        example(id=[b"p7"], name=[b"9"], tags=[b"1e999"]),
        example(id=[b"007"], tags=[b"nan", b"2"]),
        example(id=[b"18446744073709551616"]),
        example(
            id=[b"1_000"],
            tags=[b"1_0.5", b"007.5", b"12345678901234567891", b"-1.50", b"1e23"],
        ),
    ]
    monkeypatch.setattr(predicting, "LoadedModel", lambda _folder: Model("outputs"))
    rows = Rows(records, np.arange(6), [])
    kinds = {"name": str, "id": int, "tags": float}
    step = PredictFile("model", str(tmp_path), lambda _task: [rows], pass_through=kinds)
    step.setup()
    list(step.process(InputTask(0, "rows.csv", 1)))
    written = (tmp_path / "predictions-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["columns"] for line in written] == [
        {"name": "ü", "id": 7, "tags": [0.5, 1.5]},
        {"name": None, "id": 8, "tags": 0.1},
        {"name": "9", "id": "p7", "tags": "1e999"},
        {"name": None, "id": "007", "tags": ["nan", 2.0]},
        {"name": None, "id": "18446744073709551616", "tags": None},
        {
            "name": None,
            "id": "1_000",
            "tags": ["1_0.5", "007.5", "12345678901234567891", -1.5, 1e23],
        },
    ]


@pytest.mark.parametrize(
    ("outputs", "classes", "named"),
    [
        (("kind",), {"kind": ("a", "b")}, ["b", None, "a"]),
        (("kind", "size"), {"kind": ("a", "b")}, [{"kind": "b"}, {"kind": None}, {"kind": "a"}]),
        (
            ("kind", "size"),
            {"size": ("no", "yes"), "kind": ("a", "b")},
            [{"size": "yes", "kind": "b"}, {"size": None, "kind": None}, {"size": "no", "kind": "a"}],
        ),
    ],
)
def test_classes_are_named_by_output_where_there_are_several(monkeypatch, tmp_path, outputs, classes, named):
    monkeypatch.setattr(predicting, "LoadedModel", lambda _folder: Answers(*outputs))
    records = [json.dumps(row).encode() for row in ([0.2, 0.8], [math.nan, 1.0], [0.6, 0.4])]
    step = PredictFile("model", str(tmp_path), lambda _task: [Rows(records, np.arange(3), [])], classes)
    step.setup()
    list(step.process(InputTask(0, "rows.csv", 1)))
    written = (tmp_path / "predictions-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["class"] for line in written] == named


def test_counts_of_files_add_up():
    total = Counts(predicted=3, not_finite=1)
    total.add(Counts(predicted=4, not_finite=2))
    total.add(Counts(without_rows=["c.csv"]))
    assert (total.predicted, total.not_finite, total.without_rows) == (7, 3, ["c.csv"])


def test_file_without_rows_is_named(report):
    assert report([], "a")["without_rows"] == ["rows.csv"]
    assert report([[0.5]], "a")["without_rows"] == []


@pytest.fixture
def predicted(monkeypatch, tmp_path):
    """Predict files, each given by its rows, without Beam."""

    class Pipeline(list):
        def __init__(self, **_):
            super().__init__()

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda self, *_: None  # noqa: E731
        __or__ = lambda self, _: self  # noqa: E731

    def call(files):
        monkeypatch.setattr(predicting, "LoadedModel", lambda _folder: Answers("a"))
        monkeypatch.setattr(predicting.beam, "Pipeline", Pipeline)

        def read(task):
            records = [json.dumps(row).encode() for row in files[task.name]]
            return [Rows(records, np.arange(len(records)), [])]

        step = PredictFile("model", str(tmp_path), read)
        step.setup()
        for index, name in enumerate(files):
            list(step.process(InputTask(index, name, len(files))))
        return predict_files(list(files), model_folder=tmp_path, folder=tmp_path, read=read, beam_args=[])

    return call


def test_file_of_refused_rows_is_rejected_beside_one_whose_rows_have_answers(predicted, tmp_path):
    found = predicted({"a.csv": [[]], "b.csv": [[0.5], []]})
    assert (found.predicted, found.rejected) == (1, {REFUSED: 2})
    [told] = (tmp_path / "rejects-00000-of-00002.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(told)["detail"] == "fare is required"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a.csv": [], "b.csv": [[]], "c.csv": [[], []]}, "b.csv: the model refuses its only row: fare"),
        ({"a.csv": [[], []]}, "a.csv: the model refuses each of the first 2 rows: fare"),
        (
            {"a.csv": [[0.5]], "b.csv": [[]] * BATCH_ROWS + [[0.5]]},
            f"b.csv: the model refuses each of the first {BATCH_ROWS} rows: fare",
        ),
    ],
    ids=["all", "the only file", "many"],
)
def test_files_that_the_model_refuses_from_their_first_row_are_an_error(predicted, files, told):
    with pytest.raises(ComponentError, match=told):
        predicted(files)


def test_rejected_row_of_a_file_whose_name_is_not_utf_8_is_written(predicted, tmp_path):
    predicted({"donn\udce9es.csv": [[], [0.5]]})
    [told] = (tmp_path / "rejects-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(told)["file"] == "donn\udce9es.csv"


@pytest.mark.parametrize(("error", "is_input"), [(InputError, True), (ComponentError, False)])
def test_error_of_the_input_is_distinguished_from_one_of_the_model(monkeypatch, tmp_path, error, is_input):
    def read(_task):
        raise error("broken", hint="mend it")

    monkeypatch.setattr(predicting, "LoadedModel", lambda _folder: Answers("a"))
    step = PredictFile("model", str(tmp_path), read)
    step.setup()
    list(step.process(InputTask(0, "rows.csv", 1)))
    [path] = tmp_path.glob("*.report")
    told = {"error": "broken", "hint": "mend it", "is_input": is_input}
    assert json.loads(path.read_text(encoding="utf-8")) == told


def test_model_that_cannot_be_loaded_is_an_error_in_words(monkeypatch, tmp_path):
    def load(folder):
        raise ComponentError(f"{folder} cannot be loaded", hint="push the model again")

    monkeypatch.setattr(predicting, "LoadedModel", load)
    step = PredictFile("model", str(tmp_path), lambda _task: [])
    step.setup()
    list(step.process(InputTask(0, "rows.csv", 1)))
    [path] = tmp_path.glob("*.report")
    assert json.loads(path.read_text(encoding="utf-8"))["error"] == "model cannot be loaded"


@pytest.mark.parametrize(("left_out", "is_told"), [({}, False), ({"rows that are too long": 3}, True)])
def test_rows_that_the_log_lacks_are_told(caplog, left_out, is_told):
    log = SimpleNamespace(left_out_counts=left_out, close=lambda: None)
    step = PredictFile("model", "folder", lambda _task: [], logged=Logging(lambda: log, version=7))
    step.setup()
    step.teardown()
    assert ("lacks rows that are too long (3)" in caplog.text) == is_told


def test_full_disk_is_reported_and_the_begin_of_the_predictions_goes(report, tmp_path):
    predictions = tmp_path / "predictions-00000-of-00001.jsonl"
    predictions.symlink_to("/dev/full")

    assert report([[0.5]], "a") == {
        "error": f"{tmp_path} cannot be written: No space left on device",
        "hint": "make room there, or choose a folder with --to",
        "is_input": False,
    }
    assert not predictions.is_symlink()


def test_disk_without_room_even_for_that_report_is_an_error_in_words(predicted, tmp_path):
    for kind in ("jsonl", "report"):
        (tmp_path / f"predictions-00000-of-00001.{kind}").symlink_to("/dev/full")

    with pytest.raises(ComponentError) as caught:
        predicted({"a.csv": [[0.5]]})
    assert caught.value.message == f"{tmp_path} cannot be written"
    assert caught.value.hint == "make room there, or choose a folder with --to"

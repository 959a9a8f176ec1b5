import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small_workload import small_workload

import slipway
from slipway.components.pusher.version_store import UntrustedError
from slipway.components.saved_model.signatures import Signature, TensorInfo
from slipway.components.serving import live_model
from slipway.components.serving.limits import ROWS_AT_ONCE
from slipway.components.serving.live_model import Served
from slipway.pipeline.commands import load_from_python
from slipway.pipeline.commands.load_from_python import Loaded, load
from slipway.pipeline.errors import ConfigError, UsageError

INPUTS = {
    "fare": TensorInfo("float", (None, 1)),
    "seats": TensorInfo("int64", (None, 1)),
    "company": TensorInfo("string", (None, 1)),
    "tags": TensorInfo("string", (None, None)),
}
ROW = {"fare": 1.5, "seats": 2, "company": "a", "tags": ["x"]}


class Model:
    """Answers the fare, and keeps what it was asked."""

    def __init__(self):
        self.signatures = {"serve_raw": Signature(INPUTS, {"outputs": TensorInfo("float", (None, 1))})}
        self.asked = []

    def call(self, name, inputs):
        self.asked.append({name: array.tolist() for name, array in inputs.items()})
        return {"outputs": inputs["fare"]}


@pytest.fixture
def loaded():
    """Makes a loaded version; `asked` holds the inputs of its model's calls."""

    def make(**about):
        model = Model()
        made = Loaded(Served(7, model, **about))
        made.asked = model.asked
        return made

    return make


def test_a_row_of_plain_values_is_answered_as_predict_writes_it(loaded):
    about = loaded(classes={"": ("no", "yes")})
    assert about.predict([ROW, {**ROW, "fare": 0.25}]) == [
        {"row": 0, "prediction": [1.5], "class": "yes"},
        {"row": 1, "prediction": [0.25], "class": "no"},
    ]
    assert about.version == 7
    assert "class" not in loaded().predict([ROW])[0]


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame(
            {"fare": [1.5, np.nan], "seats": [2, np.nan], "company": ["a", np.nan], "tags": [["x"], None]}
        ),
        pd.DataFrame(
            {
                "fare": pd.array([1.5, None], dtype="Float64"),
                "seats": pd.array([2, None], dtype="Int64"),
                "company": pd.Categorical(["a", None]),
                "tags": [np.array(["x"]), pd.NA],
            },
            index=[9, 9],
        ),
        pa.table({"fare": [1.5, None], "seats": [2, None], "company": ["a", None], "tags": [["x"], None]}),
        [ROW, dict.fromkeys(ROW)],
        [{name: np.array(value) for name, value in ROW.items()}, dict.fromkeys(ROW, math.nan)],
        [{**ROW, "company": [b"a"], "fare": (1.5,), "seats": np.int64(2)}, {name: [None] for name in ROW}],
    ],
)
def test_rows_of_every_form_ask_the_same_and_what_is_missing_is_an_empty_cell(loaded, rows):
    about = loaded()
    first, second = about.predict(rows)
    assert first == {"row": 0, "prediction": [1.5]}
    assert math.isnan(second["prediction"][0])
    [asked] = about.asked
    assert asked["seats"] == [[2], [-(2**63)]]
    assert (asked["company"], asked["tags"]) == ([[b"a"], [b""]], [[b"x"], [b""]])


def test_columns_that_the_model_does_not_take_are_ignored(loaded):
    frame = pd.DataFrame([{**ROW, "tips": 3.0, 2019: "x"}])
    assert loaded().predict(frame) == [{"row": 0, "prediction": [1.5]}]


def test_many_rows_are_answered_in_order_and_none_is_too_few(loaded):
    rows = pd.DataFrame([ROW] * (2 * ROWS_AT_ONCE + 1)).assign(fare=range(2 * ROWS_AT_ONCE + 1))
    answers = loaded().predict(rows)
    assert [(each["row"], each["prediction"]) for each in answers] == [(n, [n]) for n in range(len(rows))]
    assert loaded().predict(rows.head(0)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seats": 2.5}, "Input 'seats' must be of type int64."),
        ({"seats": True}, "Input 'seats' must be of type int64."),
        ({"seats": "2"}, "Input 'seats' must be of type int64."),
        ({"company": 7}, "Input 'company' must be texts"),
        ({"company": pd.Timestamp("2026-01-01")}, "Input 'company' must be texts"),
        ({"fare": 1e39}, "Input 'fare' holds a number that float cannot hold."),
        ({"fare": [1.5, 2.5]}, "Input 'fare' has the shape [1, 2], but needs [any, 1]."),
        ({"company": "01.03.2026"}, "Input 'company' holds '01.03.2026', and held dates only in training"),
    ],
)
def test_a_row_that_serve_would_refuse_is_named_with_its_words(loaded, change, words):
    rows = [{**ROW, "company": "2026-03-01"}] * (ROWS_AT_ONCE + 40)
    rows[ROWS_AT_ONCE + 17] = {**rows[0], **change}
    about = loaded(dates={"company"})
    with pytest.raises(UsageError) as refused:
        about.predict(rows)
    assert refused.value.message.startswith(f"Row {ROWS_AT_ONCE + 17}: {words}")


@pytest.mark.parametrize("none", [None, [None]])
def test_no_row_may_lack_what_all_rows_had_in_training(loaded, none):
    about = loaded(needed=("seats", "tips"))
    with pytest.raises(UsageError, match=r"^Row 1 has no value in the column 'seats', which no row may lack"):
        about.predict([ROW, {**ROW, "seats": none}])
    with pytest.raises(UsageError, match="Row 1 has no value in the column 'seats'"):
        about.predict(pd.DataFrame([ROW, {**ROW, "seats": np.nan}]))


def test_a_column_that_is_missing_is_named_with_the_nearest_one(loaded):
    with pytest.raises(UsageError, match=r"^Row 1 lacks the column 'company' \(nearest: Company\)"):
        loaded().predict([ROW, {"Company": "a", 7: "x", **{k: v for k, v in ROW.items() if k != "company"}}])


@pytest.mark.parametrize("rows", [ROW, "rows.csv", [[1.5]], None, pd.Series(ROW)])
def test_rows_of_another_form_are_refused_in_words(loaded, rows):
    with pytest.raises(UsageError, match="of the type"):
        loaded().predict(rows)


def test_a_version_without_raw_columns_is_refused_before_it_is_asked():
    model = Model()
    model.signatures = {}
    with pytest.raises(UsageError, match="Version 7 takes no raw columns"):
        Loaded(Served(7, model))


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """Loads from a base with the versions 3 and 12; returns the base and number that are chosen."""
    monkeypatch.chdir(tmp_path)
    for number in (3, 12):
        (tmp_path / f"output/serving/toy/{number}").mkdir(parents=True)
        (tmp_path / f"output/serving/toy/{number}/saved_model.pb").touch()
    configs = []

    def config(choice):
        configs.append((str(choice.workload), [each.text for each in choice.sets], choice.profile))
        return small_workload().named_by(("toy",))

    monkeypatch.setattr(load_from_python.WorkloadChoice, "config", config)
    monkeypatch.setattr(
        live_model, "loaded", lambda store, number: Served(number, type("", (Model,), {"base": store.base})())
    )

    def call(*what, **options):
        found = load(*what, **options)
        return found._served.model.base, found.version

    call.configs = configs
    return call


def test_the_newest_version_is_loaded_or_the_one_that_is_named(chosen, tmp_path):
    base = str(tmp_path / "output/serving/toy")
    assert chosen("toy") == (base, 12)
    assert chosen("toy", version=3, sets=["push.keep=2"], profile="small") == (base, 3)
    assert chosen.configs == [("toy", [], None), ("toy", ["push.keep=2"], "small")]
    with pytest.raises(UsageError, match="has no version 4"):
        chosen("toy", version=4)
    with pytest.raises(UsageError, match="has no version"):
        chosen("toy", output="other")


def test_the_folder_of_a_version_needs_no_workload(chosen, tmp_path):
    assert chosen(tmp_path / "output/serving/toy/3") == (str(tmp_path / "output/serving/toy"), 3)
    assert chosen("output/serving/toy/12/", version=12) == ("output/serving/toy", 12)
    for wrong in ({"model": "output/serving/toy/4"}, {"model": "output/serving/toy/3", "version": 12}):
        with pytest.raises(UsageError, match="is not the folder of version"):
            chosen(**wrong)
    assert chosen.configs == []


def test_what_is_no_workload_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="nowhere"):
        load("nowhere")


def test_a_version_that_is_not_trusted_is_wrong_usage(chosen, monkeypatch):
    def refuse(*_):
        raise UntrustedError("Version 12 is not used")

    monkeypatch.setattr(live_model, "loaded", refuse)
    with pytest.raises(UsageError, match="Version 12 is not used"):
        chosen("toy")


def test_load_is_imported_when_it_is_asked_for():
    assert slipway.load is load
    assert slipway.Loaded is Loaded

"""The record of a sweep."""

import json

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.typed_json import DocumentError
from slipway.pipeline.sweep.record import Sweep, Trial, finite, new_sweep_id, read_sweep


def made(output, sweep_id, **facts):
    sweep = Sweep(sweep_id, "taxi", "taxi", ("a=1,2",), None, "grid", 2, "auc", False, output=output, **facts)
    sweep.save()
    return sweep


def test_what_was_written_is_read(tmp_path):
    trial = Trial({"a": "1"}, "run", "complete", 0.5, 2.0, curve=[(1, 0.5)])
    sweep = made(tmp_path, "20261123-000000-0001", prune_after=2, prune_by="val_auc", done=[trial])
    assert read_sweep("20261123-000000-0001", tmp_path) == sweep


def test_ids_sort_and_the_latest_is_found(tmp_path):
    made(tmp_path, "20991123-000000-0001")
    later = new_sweep_id(tmp_path)
    assert later > "20991123-000000-0001"
    made(tmp_path, later)
    assert read_sweep("latest", tmp_path).sweep_id == later


def test_an_unknown_sweep_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no sweep 'latest' in") as refused:
        read_sweep("latest", tmp_path)
    assert refused.value.hint.startswith("there is none yet")
    made(tmp_path, "20261123-000000-0001")
    made(tmp_path, "20261123-000000-0002")
    with pytest.raises(UsageError, match="'2026' fits 2 sweeps"):
        read_sweep("2026", tmp_path)


def test_a_record_that_names_another_folder_is_refused(tmp_path):
    """Going on with it would write there."""
    made(tmp_path, "20261123-000000-0001")
    record = tmp_path / "sweeps/20261123-000000-0001/sweep.json"
    record.write_text(record.read_text().replace("20261123-000000-0001", "../../outside"))
    with pytest.raises(DocumentError, match=r"sweep_id is '\.\./\.\./outside', not its folder's name"):
        read_sweep("latest", tmp_path)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"done": [{"params": {"a": "3"}}]}, "trial 1 has settings that the sweep does not try"),
        ({"done": [{"params": {}}]}, "trial 1 has settings that the sweep does not try"),
        (
            {"sets": ["a=log(1,2)"], "method": "random", "done": [{"params": {"a": "x"}}]},
            "trial 1 has settings",
        ),
        ({"trials": 3}, "it has 3 trials, and its grid 2 settings"),
        ({"sets": ["a=int(1,8)"]}, "it has 2 trials, and its grid no settings"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(tmp_path, changed, why):
    made(tmp_path, "20261123-000000-0001")
    record = tmp_path / "sweeps/20261123-000000-0001/sweep.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), **changed}))
    with pytest.raises(DocumentError, match=why):
        read_sweep("latest", tmp_path)


def test_record_that_was_cut_short_is_told_with_the_way_on(tmp_path):
    path = made(tmp_path, "20261123-000000-0001").folder / "sweep.json"
    path.write_text("")
    with pytest.raises(DocumentError, match="its 0 bytes are not complete JSON") as told:
        read_sweep("latest", tmp_path)
    assert told.value.hint == "begin the sweep anew: what its trials have made is cached"


def test_numbers_of_a_range_are_settings_of_it(tmp_path):
    sweep = made(tmp_path, "20261123-000000-0001")
    sweep.sets, sweep.method, sweep.done = ("a=log(1e-4,2)",), "random", [Trial({"a": "1.00001e-04"})]
    sweep.save()
    assert read_sweep("latest", tmp_path) == sweep


def test_the_earliest_of_equals_is_the_best(tmp_path):
    trials = [Trial({"a": text}, text, "complete", 0.5) for text in "12"]
    assert made(tmp_path, "20261123-000000-0001", done=trials).best is trials[0]
    assert made(tmp_path, "20261123-000000-0002").best is None


@pytest.mark.parametrize(("value", "expected"), [(None, None), (0.5, 0.5), (float("nan"), None)])
def test_only_numbers_are_judged(value, expected):
    assert finite(value) == expected

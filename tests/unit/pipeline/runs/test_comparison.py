"""Runs side by side: which columns, in which order."""

import json

import pytest
from small_workload import small_workload

from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.comparison import compare_runs, short_names
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import ModuleRun, RecordedRequest, WorkloadRun


def run(run_id, *, workload="taxi", auc=None, wall_s=10.0, **train):
    config = {"name": workload, "train": {"batch_size": 256, "hyperparameters": {}, **train}}
    asked = RecordedRequest(workload=workload, target=WorkloadRun(config=json.dumps(config)))
    metrics = {} if auc is None else {"example_count": 10.0, "auc": auc, "loss": 1 - auc}
    return RunRecord(run_id, workload, state="complete", metrics=metrics, wall_s=wall_s, target=asked)


def ids(found):
    return [each.run_id for each in found.runs]


def test_only_keys_that_differ_are_columns_those_with_most_values_first():
    found = compare_runs(
        [run("c", batch_size=1, seed=3), run("b", batch_size=1, seed=2), run("a", batch_size=2, seed=1)]
    )
    assert found.keys == ("train.seed", "train.batch_size")


def test_the_table_has_a_line_for_each_run_with_metrics_and_keys():
    runs = [run("new", auc=0.75, learning_rate=0.001), run("old", batch_size=512)]
    assert compare_runs(runs).text().splitlines() == [
        "run  state     took  auc     loss    batch_size  learning_rate  pushed",
        "new  complete  10 s  0.7500  0.2500  256         0.001",
        "old  complete  10 s  -       -       512         -",
    ]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        (None, ["d", "c", "b", "a"]),
        ("auc", ["b", "d", "a", "c"]),  # the best first; without it last
        ("loss", ["b", "d", "a", "c"]),  # the best is the least
        ("train.batch_size", ["c", "d", "a", "b"]),
        ("batch_size", ["c", "d", "a", "b"]),
        ("wall_s", ["d", "b", "a", "c"]),
    ],
)
def test_runs_are_sorted_by_metrics_keys_and_times(by, order):
    runs = [
        run("d", auc=0.8, batch_size=2, wall_s=1.0),
        run("c", batch_size=1, wall_s=4.0),
        run("b", auc=0.9, batch_size=10, wall_s=2.0),
        run("a", auc=0.7, batch_size=3, wall_s=3.0),
    ]
    assert ids(compare_runs(runs, by=by)) == order


@pytest.mark.parametrize(("bound", "order"), [("max", ["b", "a"]), ("min", ["a", "b"])])
def test_of_a_metric_of_one_s_own_the_threshold_says_which_is_the_best(bound, order):
    config = {"name": "taxi", "evaluate": {"thresholds": {"cost": {bound: 5.0}}}}
    asked = RecordedRequest(workload="taxi", target=WorkloadRun(config=json.dumps(config)))
    runs = [
        RunRecord(name, "taxi", state="complete", metrics={"cost": cost}, target=asked)
        for name, cost in (("a", 4.0), ("b", 3.0))
    ]
    assert ids(compare_runs(runs, by="cost")) == order


def test_what_is_no_number_comes_last():
    runs = [run("nan", auc=float("nan")), run("text", auc=0.5)]
    assert ids(compare_runs(runs, by="auc")) == ["text", "nan"]


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"--by acu: no run has .*; nearest: auc") as refused:
        compare_runs([run("a", auc=0.5)], by="acu")
    assert refused.value.hint.startswith("metrics: example_count, auc, loss; also started_at, wall_s")


def test_the_end_of_several_keys_is_refused():
    runs = [run("a", **{"decay": 1, "hyperparameters": {"decay": 2}})]
    with pytest.raises(UsageError, match=r"--by decay fits 2 keys: train.decay, train.hyperparameters.decay"):
        compare_runs(runs, by="decay")


def test_keys_of_different_pipelines_are_no_difference():
    assert compare_runs([run("b", seed=1), run("a", workload="digits", batch_size=3)]).keys == ()


def test_parameters_of_any_pipeline_are_compared():
    runs = [
        RunRecord(
            name,
            "m:p",
            target=RecordedRequest(
                workload="m:p", target=ModuleRun(pipeline="m:p"), parameters={"depth": depth}
            ),
        )
        for name, depth in (("b", "3"), ("a", "4"))
    ]
    assert compare_runs(runs).keys == ("depth",)


def test_json_has_every_metric_and_the_keys_that_differ():
    document = compare_runs([run("b", auc=0.5, seed=2), run("a", seed=1)]).to_json()
    assert document["metrics"] == ["example_count", "auc", "loss"]
    assert document["keys"] == ["train.seed"]
    assert [row["keys"] for row in document["runs"]] == [{"train.seed": 2}, {"train.seed": 1}]
    assert document["runs"][0]["metrics"] == {"example_count": 10.0, "auc": 0.5, "loss": 0.5}
    json.dumps(document)


def test_of_many_keys_the_table_shows_some_and_says_so():
    runs = [run(name, **{f"key_{at}": place for at in range(10)}) for place, name in enumerate("ab")]
    assert compare_runs(runs).text().splitlines()[-1] == "and 2 more keys (--json has all)"


def test_a_damaged_config_has_no_keys():
    record = run("a", auc=0.5)
    record.target = RecordedRequest(workload="taxi", target=WorkloadRun(config="{"))
    assert compare_runs([record]).keys == ()


def test_no_run_is_reported():
    assert compare_runs([]).text() == "No run fits."


def test_short_names_tell_keys_apart():
    assert short_names(["train.seed", "data.seed", "train.batch_size", "seed"]) == {
        "train.seed": "train.seed",
        "data.seed": "data.seed",
        "train.batch_size": "batch_size",
        "seed": "seed",
    }


def of_taxi(run_id, *, lacks="", **train):
    """A run with settings that are valid, but for the section `lacks`, which its Slipway did not know."""
    config = json.loads(small_workload(name="taxi", train=train).model_dump_json(by_alias=True))
    config.pop(lacks, None)
    return RunRecord(
        run_id, "taxi", target=RecordedRequest(workload="taxi", target=WorkloadRun(config=json.dumps(config)))
    )


def test_a_key_that_an_older_run_lacks_has_its_default():
    runs = [of_taxi("new"), of_taxi("old", lacks="statistics")]
    assert compare_runs(runs).keys == ()
    runs = [of_taxi("new", seed=7), of_taxi("old", lacks="statistics", seed=8)]
    assert compare_runs(runs).keys == ("train.seed",)


def test_every_header_of_the_table_is_taken_by_by():
    runs = [run(name, **{"seed": at, "hyperparameters": {"seed": 3}}) for at, name in enumerate("ab")]
    header = compare_runs(runs).text().splitlines()[0].split()
    assert header == ["run", "state", "took", "train.seed", "pushed"]
    assert ids(compare_runs(runs, by="train.seed")) == ["a", "b"]
    with pytest.raises(UsageError) as refused:
        compare_runs(runs, by="seed")
    assert refused.value.hint == "name it whole: --by train.hyperparameters.seed"


def test_headers_stay_on_their_line_and_give_a_terminal_no_orders():
    text = compare_runs([run("b", **{"a\x1b[2J\n": 1}), run("a", **{"a\x1b[2J\n": 2})]).text()
    assert text.splitlines()[0].split() == ["run", "state", "took", r"a\x1b[2J\n", "pushed"]


def test_a_metric_that_is_no_number_is_null_in_json():
    [row] = compare_runs([run("a", auc=float("nan"))]).to_json()["runs"]
    assert row["metrics"] == {"example_count": 10.0, "auc": None, "loss": None}


def test_an_empty_name_is_quoted():
    with pytest.raises(UsageError, match=r"--by '': no run has"):
        compare_runs([run("a", auc=0.5)], by="")


def test_text_of_several_lines_keeps_the_table():
    runs = [run("new", note="a\nb"), run("old", note="a")]
    assert compare_runs(runs).text().splitlines()[1:] == [
        "new  complete  10 s  a\\nb",
        "old  complete  10 s  a",
    ]

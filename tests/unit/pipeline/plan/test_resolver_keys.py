"""Which data and which model the resolvers would find."""

import pytest

from slipway.pipeline.plan.resolver_keys import (
    baseline_key,
    blessed_runs,
    joined,
    key_of_maker,
    key_of_models,
    reference_key,
)
from slipway.pipeline.runs.record import NodeRecord, RunRecord


def blessed_run(run_id, key, *, blessed=True, workload="taxi"):
    outputs = {"model": [{"uri": "m", "type": "Model", "properties": {}}]}
    found = NodeRecord("Baseline", type="Resolver", key="resolver", outputs=outputs)
    made = NodeRecord("Trainer", type="Trainer", key=key, outputs=outputs, execution_id=1)
    return RunRecord(run_id, workload, nodes=[found, made], blessed=blessed)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], "none"),
        ([blessed_run("2", "b"), blessed_run("1", "a")], "b@1"),
        ([blessed_run("2", "me"), blessed_run("1", "a")], "a@1"),
        ([blessed_run("2", "b", blessed=False), blessed_run("1", "a")], "a@1"),
        ([blessed_run("2", "b", blessed=None)], "none"),
        ([blessed_run("2", "b", workload="digits")], "none"),
        # Only its gate ran: who trained the model is in no record.
        ([RunRecord("2", "taxi", nodes=[], blessed=True), blessed_run("1", "a")], "a@1"),
    ],
)
def test_baseline_is_the_latest_blessed_model_other_than_the_candidate(runs, expected):
    assert baseline_key(runs, workload="taxi", candidate="me") == expected


def made(run, execution_id, *, state="complete"):
    run.nodes[1].execution_id, run.nodes[1].state = execution_id, state
    return run


def test_earlier_model_that_is_blessed_again_does_not_replace_a_later_one():
    """TFX's resolver takes the model that was made last, whenever it was blessed."""
    first = made(blessed_run("1", "a"), 5)
    second = made(blessed_run("2", "b"), 15)
    back = made(blessed_run("3", "a"), 5, state="cached")
    third = made(blessed_run("4", "c"), 25)
    back_again = made(blessed_run("5", "a"), 5, state="cached")
    assert baseline_key([back, second, first], workload="taxi", candidate="me") == "b@15"
    runs = [back_again, third, back, second, first]
    assert baseline_key(runs, workload="taxi", candidate="me") == "c@25"
    assert [run.run_id for run in blessed_runs(runs, workload="taxi")] == ["4", "2", "5", "3", "1"]


@pytest.mark.parametrize(("execution_id", "expected"), [(30, "a@30"), (10, "b@20")])
def test_model_of_a_run_that_was_resumed_after_a_later_one_is_the_latest_if_it_was_made_last(
    execution_id, expected
):
    resumed, later = made(blessed_run("1", "a"), execution_id), made(blessed_run("2", "b"), 20)
    first = made(blessed_run("0", "0"), 5)
    runs = [later, resumed, first]
    assert baseline_key(runs, workload="taxi", candidate="me", late=[resumed]) == expected
    found = [run.run_id for run in blessed_runs(runs, workload="taxi", late=[resumed])]
    assert found == (["1", "2", "0"] if execution_id == 30 else ["2", "1", "0"])


def test_model_that_was_trained_anew_with_the_same_settings_is_another_baseline():
    first, anew = made(blessed_run("1", "a"), 5), made(blessed_run("3", "a"), 15)
    keys = [baseline_key(runs, workload="taxi", candidate="me") for runs in ([first], [anew, first])]
    assert keys == ["a@5", "a@15"]
    assert baseline_key([anew, first], workload="taxi", candidate="a") == "none", "it is the candidate"


def test_runs_before_the_one_that_made_the_latest_model_are_not_read():
    runs = iter([made(blessed_run("3", "a"), 5, state="cached"), made(blessed_run("2", "b"), 15), None])
    assert baseline_key(runs, workload="taxi", candidate="me") == "b@15"


def test_artifact_is_known_by_the_first_node_that_made_one_of_its_type():
    assert key_of_maker(blessed_run("1", "a"), "Model") == "a"
    assert key_of_maker(blessed_run("1", "a"), "Schema") == ""


def test_any_of_several_models_may_be_the_blessed_one():
    run = blessed_run("1", "a")
    [made] = run.nodes[0].outputs["model"]
    run.nodes.insert(0, NodeRecord("Imported", type="Importer", key="i", outputs={"result": [made]}))
    assert key_of_models(run) == joined({"Trainer": "a", "Imported": "i"})
    candidate = joined({"Imported": "i", "Trainer": "b"})
    assert baseline_key([run], workload="taxi", candidate=candidate) == f"{key_of_models(run)}@1"
    assert baseline_key([run], workload="taxi", candidate=key_of_models(run)) == "none", "it is the candidate"


@pytest.mark.parametrize(("verdict", "expected"), [(1, "b@1"), (0, "a@1")])
def test_model_that_its_evaluator_blessed_is_a_baseline_whatever_else_refused_it(verdict, expected):
    run = blessed_run("2", "b", blessed=False)
    blessing = {"uri": "blessing", "type": "ModelBlessing", "properties": {"blessed": verdict}}
    run.nodes.append(NodeRecord("Evaluator", type="Evaluator", outputs={"blessing": [blessing]}))
    assert baseline_key([run, blessed_run("1", "a")], workload="taxi", candidate="me") == expected


def test_baseline_of_a_known_candidate_is_that_of_its_run_without_reading_further():
    newest = blessed_run("3", "me")
    newest.baseline = "a"
    runs = iter([newest, blessed_run("2", "b")])
    assert baseline_key(runs, workload="taxi", candidate="me") == "a"
    assert next(runs).run_id == "2"


def test_retired_model_is_no_baseline():
    def gated(run_id, key):
        run = blessed_run(run_id, key)
        blessing = {"uri": f"blessing/{run_id}", "type": "ModelBlessing", "properties": {}}
        run.nodes.append(NodeRecord("Gate", type="ModelGate", outputs={"blessing": [blessing]}))
        return run

    runs = [gated("3", "me"), gated("2", "b"), gated("1", "a")]
    runs[0].baseline = "b"
    retired = ["blessing/2"]
    assert baseline_key(runs, workload="taxi", candidate="me", retired=retired) == "a@1"
    retired += ["blessing/1", "blessing/3"]
    assert baseline_key(runs, workload="taxi", candidate="me", retired=retired) == "none"


def test_model_whose_own_baseline_was_retired_stays_one():
    run = blessed_run("2", "b")
    found = {"uri": "blessing/1", "type": "ModelBlessing", "properties": {}}
    run.nodes[0].outputs = {"model_blessing": [found]}
    assert baseline_key([run], workload="taxi", candidate="me", retired=["blessing/1"]) == "b@1"


def test_only_who_makes_a_model_counts():
    model, blessing = {"model": [{"type": "Model"}]}, {"blessing": [{"type": "ModelBlessing"}]}
    assert NodeRecord("Trainer", type="Trainer", outputs=model).makes("Model")
    assert not NodeRecord("Gate", type="ModelGate", outputs=blessing).makes("Model")
    assert not NodeRecord("Baseline", type="Resolver", outputs=model).makes("Model")


def passed(data, *, reference="", workload="taxi", gate_state="complete", span=0, blessed=None):
    """A run whose data gate came to a verdict about that data, and maybe its model gate as well."""
    properties = {"span": span}
    verdict = [{"type": "schemas.DataVerdict", "properties": properties}] if gate_state != "failed" else []
    verdict = {"verdict": verdict}
    statistics = {"statistics": [{"type": "ExampleStatistics"}]}
    nodes = [
        NodeRecord("StatisticsGen", key=data, outputs=statistics),
        NodeRecord("DataGate", state=gate_state, outputs=verdict),
    ]
    if blessed is not None:
        blessing = {"uri": f"blessing/{data}", "type": "ModelBlessing", "properties": {}}
        nodes.append(NodeRecord("ModelGate", type="ModelGate", outputs={"blessing": [blessing]}))
    return RunRecord(f"run-{data}", workload, nodes=nodes, reference=reference, blessed=blessed)


def gate_alone(run_id):
    """A run that judged what no node of it made; the verdict has no properties."""
    verdict = {"verdict": [{"type": "schemas.DataVerdict", "properties": {}}]}
    return RunRecord(run_id, "taxi", nodes=[NodeRecord("DataGate", state="complete", outputs=verdict)])


@pytest.mark.parametrize(
    ("runs", "key"),
    [
        ([], "none"),
        ([passed("now")], "none"),
        ([passed("now", reference="before")], "before"),
        ([passed("before")], "before"),
        ([passed("before"), passed("older")], "before"),
        ([passed("other", workload="digits"), passed("before")], "before"),
        ([passed("stopped", gate_state="failed"), passed("before")], "before"),
        ([passed("now", reference="before", gate_state="cached"), passed("later")], "before"),
        ([gate_alone("2"), passed("before")], "before"),
    ],
)
def test_reference_is_the_latest_other_data_that_passed(runs, key):
    assert reference_key(runs, workload="taxi", data="now") == key


def judged(run, execution_id):
    run.nodes[1].execution_id = execution_id
    return run


@pytest.mark.parametrize("wanted", ["passed", "span 3"])
@pytest.mark.parametrize(("execution_id", "key"), [(30, "resumed"), (10, "later")])
def test_data_of_a_run_that_was_resumed_after_a_later_one_passed_last_if_it_was_judged_last(
    execution_id, key, wanted
):
    resumed, later = judged(passed("resumed", span=3), execution_id), judged(passed("later", span=3), 20)
    runs = [later, resumed, judged(passed("first", span=3), 5)]
    assert reference_key(runs, workload="taxi", data="now", wanted=wanted, late=[resumed]) == key


def test_verdict_from_the_cache_is_as_old_as_when_it_was_made():
    """TFX's resolver takes the verdict that was made last, whenever it was taken from the cache again."""
    back = judged(passed("first", gate_state="cached"), 5)
    runs = [back, judged(passed("second"), 15), judged(passed("first"), 5)]
    assert reference_key(runs, workload="taxi", data="now") == "second"
    assert reference_key(runs, workload="taxi", data="first") == "second"


@pytest.mark.parametrize(
    ("runs", "retired", "key"),
    [
        ([], [], "none"),
        ([passed("refused", blessed=False), passed("before", blessed=True)], [], "before"),
        ([passed("unfinished"), passed("before", blessed=True)], [], "before"),
        ([passed("now", blessed=True, reference="before")], [], "before"),
        ([passed("now", blessed=True)], [], "none"),
        ([passed("bad", blessed=True), passed("before", blessed=True)], ["blessing/bad"], "before"),
        ([passed("bad", blessed=True)], ["blessing/bad"], "none"),
        # What it was compared with may be what was retired since.
        (
            [passed("now", blessed=True, reference="bad"), passed("before", blessed=True)],
            ["blessing/bad"],
            "before",
        ),
    ],
)
def test_reference_is_the_data_of_the_latest_blessed_model_that_still_counts(runs, retired, key):
    assert reference_key(runs, workload="taxi", data="now", wanted="blessed", retired=retired) == key


def test_reference_is_the_latest_data_of_the_span_that_was_named():
    runs = [passed("newest", span=12), passed("second", span=3), passed("first", span=3)]
    assert reference_key(runs, workload="taxi", data="now", wanted="span 3") == "second"
    assert reference_key(runs, workload="taxi", data="now", wanted="span 4") == "none"

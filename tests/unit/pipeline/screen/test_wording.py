"""What the screen says at the end of a run."""

from dataclasses import replace

import pytest
from two_node_run import record

from slipway.pipeline.commands import show
from slipway.pipeline.runs.record import WHY, NodeRecord
from slipway.pipeline.runs.run_target import (
    NOTHING,
    ImageRun,
    IrRun,
    ModuleRun,
    Origin,
    RecordedRequest,
    WorkloadRun,
)
from slipway.pipeline.screen.wording import (
    DONE_BEFORE,
    metrics_line,
    node_line,
    rerun_command,
    run_command,
    step_lines,
    summary,
    training_lines,
)


def text(run):
    return "\n".join(summary(run))


def test_what_a_gate_found_and_let_pass_is_said_by_the_run_that_looked():
    gate = NodeRecord("DataGate", state="complete")
    gate.outputs = {"verdict": [{"uri": "/v", "type": "schemas.DataVerdict", "properties": {}}]}
    run = record()
    run.nodes.insert(0, gate)
    phone = {"feature": "phone", "what": "5,412 values begin with +"}
    passed = [
        {
            "findings": [
                {"feature": "own gate's"},
                phone,
                *({"feature": "", "what": f"finding {n}"} for n in range(4)),
            ]
        }
    ]

    said = [line for line in summary(run, passed=passed) if line.startswith("Data: ")]
    gate.state = "cached"

    assert said == [
        "Data: phone: 5,412 values begin with +",
        "Data: finding 0",
        "Data: finding 1",
        "Data: and 2 more findings, in the report",
    ]
    assert not [line for line in summary(run, passed=passed) if line.startswith("Data: ")]


def test_pushed_run_says_where_first_and_what_next_last():
    run = record(
        pushed={"version": "17", "path": "/srv/17"}, blessed=True, metrics={"auc": 0.9512, "n": 49.0}
    )
    lines = text(run).splitlines()
    assert lines[0] == "Pushed: taxi version 17 -> /srv/17"
    assert "Metrics on the eval split: auc 0.9512, n 49" in lines
    assert "36 s: 1 ran, 1 cached; longest Trainer 8.0 s" in lines
    assert lines[-1] == "hint: python local_runner.py show run-1 --output /data/output"


def test_cached_push_after_a_rollback_is_reported_with_the_version_that_is_live():
    run = record(pushed={"version": "17", "path": "/srv/17", "live": "18"})
    outputs = {"pushed_model": [{"uri": "x", "type": "PushedModel", "properties": {}}]}
    run.nodes.append(NodeRecord("Pusher", state="cached", why="cached from run-0", outputs=outputs))
    first = text(run).splitlines()[0]
    assert first == "Pushed: taxi version 17 -> /srv/17 (cached from run-0; version 18 is live)"
    run.nodes[-1].state = "complete"
    assert text(run).splitlines()[0] == "Pushed: taxi version 17 -> /srv/17 (version 18 is live)"


def test_push_over_a_version_of_later_data_is_told():
    run = record(pushed={"version": "18", "path": "/srv/18", "over": "version 17, whose span 12 is later"})
    first = text(run).splitlines()[0]
    assert first == "Pushed: taxi version 18 -> /srv/18 (over version 17, whose span 12 is later)"


def test_cached_push_is_told_from_a_new_one_by_the_run_that_it_comes_from():
    run = record(pushed={"version": "17", "path": "/srv/17"})
    outputs = {"pushed_model": [{"uri": "x", "type": "PushedModel", "properties": {}}]}
    run.nodes.append(NodeRecord("Pusher", state="cached", why="cached from run-0", outputs=outputs))
    assert text(run).splitlines()[0] == "Pushed: taxi version 17 -> /srv/17 (cached from run-0)"
    run.nodes[-1].state = "complete"
    assert text(run).splitlines()[0] == "Pushed: taxi version 17 -> /srv/17"


def test_success_takes_at_most_six_lines():
    run = record(
        pushed={"version": "17", "path": "/srv/17"}, blessed=True, blessing_reasons=["a"], metrics={"a": 1}
    )
    assert len(text(run).splitlines()) <= 6


def test_how_fast_training_was_is_reported_by_the_run_that_trained_and_by_no_cached_one():
    run = record(training={"verdict": "compute-bound"})
    run.node("Trainer").outputs = {
        "model_run": [{"uri": "/data/model_run", "type": "ModelRun", "properties": {}}]
    }
    assert "Training: compute-bound" in text(run).splitlines()
    run.node("Trainer").state = "cached"
    assert "Training" not in text(run)


def test_refused_model_says_why_it_was_not_pushed():
    run = record("stopped", blessed=False, blessing_reasons=["auc 0.71, needs at least 0.94"])
    assert text(run).startswith("Not pushed: auc 0.71, needs at least 0.94.")


def test_refused_model_beside_one_that_was_pushed_is_reported_after_it():
    run = record("stopped", blessed=False, blessing_reasons=["Small did not bless the model"])
    run.pushed = {"version": "17", "path": "/srv/large/17"}
    first, second, *_ = text(run).splitlines()
    assert first.startswith("Pushed: ")
    assert second == "Not blessed: Small did not bless the model."


@pytest.fixture
def stopped():
    run = record("stopped")
    run.nodes[1] = NodeRecord("DataGate", state="failed", is_stop=True, error={"message": "2 findings"})
    origin = Origin("/work/churn/workload.yaml", ("train.epochs=1",), "dev")
    run.target = RecordedRequest(target=WorkloadRun(config="{}"), origin=origin)
    return run


def test_gate_that_stops_is_reported_in_its_own_words_with_the_command_that_passes_it_once(stopped):
    verdict = {"lines": ["tips (train): 3 rows below 0, limit 0"], "override": "accept_data"}
    said = list(summary(stopped, stops={"DataGate": verdict}))
    assert said == [
        "Stopped: DataGate, after 1 of 2 nodes. What is finished is kept.",
        "  DataGate: 2 findings",
        "    tips (train): 3 rows below 0, limit 0",
        "hint: python local_runner.py run /work/churn/workload.yaml --set train.epochs=1 --profile dev "
        f"--accept-data '{WHY}' --output /data/output   # lets it pass once, on the record",
    ]


def test_the_command_that_repeats_a_run_ends_where_that_run_ended(stopped):
    """A hint must not push what was run with --to to be pushed nowhere."""
    stopped.target = replace(stopped.target, end="ModelGate", beam_args=("--a=1",))
    ends = "--to ModelGate --beam --a=1"
    assert f"--bless 'why it is right' {ends} --output" in rerun_command(stopped, bless=WHY)
    assert f"{ends} --output" in run_command(stopped)


def test_hint_that_lets_a_run_pass_keeps_the_other_reason_that_it_had(stopped):
    stopped.overrides = {"bless": "the old one is broken"}
    [*_, hint] = summary(stopped, stops={"DataGate": {"override": "accept_data"}})
    assert f"--bless 'the old one is broken' --accept-data '{WHY}' --output" in hint
    refused = record("stopped", target=stopped.target, blessed=False, overrides={"accept_data": "a holiday"})
    hints = [line for line in summary(refused) if line.startswith("hint: ")]
    assert f"--accept-data 'a holiday' --bless '{WHY}' --output" in hints[0]


def test_long_verdict_is_cut_and_the_rest_is_shown_elsewhere(stopped):
    verdict = {"lines": [f"finding {number}" for number in range(300)], "override": "accept_data"}
    said = list(summary(stopped, stops={"DataGate": verdict}))
    assert len(said) <= 16
    assert "    the rest: python local_runner.py show run-1 --output /data/output" in said


STOP = {"DataGate": {"override": "accept_data", "findings": [{"edits": ["edit"]}]}}


def test_gate_that_stops_in_airflow_names_the_command_that_passes_it_there(stopped):
    stopped.in_steps, stopped.airflow = True, "airflow dags trigger churn --conf"
    hint = (
        """hint: airflow dags trigger churn --conf '{"accept_data": "why it is right"}'   """
        "# lets it pass once, on the record"
    )
    assert list(step_lines(stopped, "DataGate", stops=STOP))[-1] == hint
    assert list(summary(stopped, stops=STOP))[-1] == hint
    assert rerun_command(stopped) == "airflow dags trigger churn --conf '{}'"


def test_gate_that_stops_in_steps_of_another_program_names_the_step_that_begins_with_the_reason(stopped):
    stopped.in_steps = True
    said = list(step_lines(stopped, "DataGate", stops=STOP))[-1]
    assert said.startswith("hint: python local_runner.py step begin /work/churn/workload.yaml --set ")
    assert " --accept-data 'why it is right' --output /data/output" in said


def test_gate_that_stops_in_a_rehearsal_names_the_rehearsal_that_passes_it(stopped):
    rehearsed = ImageRun(config="{}", source=("", {}), image="i:1", root="/")
    stopped.target = RecordedRequest(target=rehearsed, again="python cloud_runner.py rehearse churn")
    said = list(summary(stopped, stops=STOP))
    assert said[-1] == (
        "hint: python cloud_runner.py rehearse churn --accept-data 'why it is right'   "
        "# lets it pass once, on the record"
    )
    assert not any("local_runner.py" in line for line in said)
    refused = record("stopped", blessed=False, target=stopped.target)
    assert "hint: python cloud_runner.py rehearse churn --bless 'why it is right'" in text(refused)


@pytest.mark.parametrize(
    ("airflow", "words"),
    [
        ("airflow dags trigger churn --conf", "clear the failed task and those after it in Airflow"),
        ("", "hint: python local_runner.py step node run-1 Trainer --output /data/output"),
    ],
)
def test_failure_in_steps_names_how_that_run_goes_on(airflow, words):
    run = record("failed", in_steps=True, airflow=airflow)
    run.nodes[1].state, run.nodes[1].error = "failed", {"message": "no", "hint": "", "where": ""}
    for said in (list(summary(run)), list(step_lines(run, "Trainer", stops={}))):
        assert words in said[-1]
        assert not any("resume" in line for line in said)


def test_failure_names_node_cause_place_log_and_the_command_to_go_on():
    run = record("failed")
    run.nodes[1].state, run.nodes[1].log = "failed", "logs/Trainer.log"
    run.nodes[1].error = {
        "message": "ValueError: no",
        "hint": "say yes",
        "where": "workloads/taxi/model.py:9",
    }
    said = text(run).splitlines()
    assert said[0] == "Failed: Trainer, after 1 of 2 nodes. What is finished is kept."
    assert said[1] == "  Trainer: workloads/taxi/model.py:9: ValueError: no"
    assert said[2] == "    hint: say yes"
    assert said[3] == "    log: /data/output/runs/run-1/logs/Trainer.log"
    assert said[-1] == "hint: python local_runner.py resume run-1 --output /data/output"
    assert len(said) <= 15


def test_failure_that_resume_would_meet_again_names_the_command_that_starts_earlier():
    error = {"message": "it changed", "hint": "train again", "where": "", "start": "Trainer"}
    run = record("failed", target=RecordedRequest(origin=Origin("/work/churn/workload.yaml")))
    run.nodes.append(NodeRecord("Pusher", state="failed", error=error))
    run_command = "python local_runner.py run /work/churn/workload.yaml --from Trainer --output /data/output"
    last = text(run).splitlines()[-1]
    assert last == f"hint: {run_command}   # resume would fail the same way; this runs again from Trainer"
    run.target = RecordedRequest(target=ModuleRun(pipeline="pkg:make"), parameters={"a": "1"})
    assert "run --pipeline pkg:make --set a=1 --from Trainer" in text(run).splitlines()[-1]
    run.target = RecordedRequest(target=IrRun(ir=True))
    assert "resume run-1" in text(run).splitlines()[-1]


def test_failed_run_with_set_also_names_the_command_to_run_with_another_value():
    origin = Origin("/work/churn/workload.yaml", ("train.batch_size=999999",), "dev")
    target = RecordedRequest(origin=origin, end="Trainer", beam_args=("--a=1",))
    run = record("failed", target=target, overrides={"accept_data": "seen"})
    run.nodes[1].state = "failed"
    again, resume = text(run).splitlines()[-2:]
    assert resume == (
        "hint: python local_runner.py resume run-1 --output /data/output   # keeps --set as it was"
    )
    assert again == (
        "hint: python local_runner.py run /work/churn/workload.yaml --set train.batch_size=999999 "
        "--profile dev --accept-data seen --to Trainer --beam --a=1 --output /data/output"
        "   # to change a --set; finished nodes are kept"
    )
    assert show.show_text(run).splitlines()[-2:] == [again, resume]


def test_resume_is_all_there_is_to_do_where_no_set_or_no_failure_was():
    origin = Origin("/work/churn/workload.yaml")
    failed = record("failed", target=RecordedRequest(origin=origin))
    failed.nodes[1].state = "failed"
    origin = replace(origin, sets=("train.epochs=3",))
    interrupted = record("interrupted", target=RecordedRequest(origin=origin))
    for run in (failed, interrupted):
        hints = [line for line in text(run).splitlines() if line.startswith("hint: ")]
        assert hints == ["hint: python local_runner.py resume run-1 --output /data/output"]


def test_interrupted_run_says_what_is_kept():
    assert text(record("interrupted")).startswith("Interrupted. 2 finished nodes are kept")


def test_pruned_run_says_why_and_how_to_train_on():
    run = record("pruned")
    for node in run.nodes[1:]:
        node.state, node.why = "skipped", "pruned after epoch 2, val_auc is 0.5 at best"
    said = text(run)
    assert said.startswith(
        f"{run.nodes[1].id}: pruned after epoch 2, val_auc is 0.5 at best. Its state is kept."
    )
    assert f"resume {run.run_id}" in said


def test_failed_node_shows_its_cause_on_its_line():
    node = NodeRecord(
        "Trainer", state="failed", wall_s=1.0, error={"message": "out of memory"}, why="first run"
    )
    assert node_line(node, width=7).endswith("out of memory")


def test_resumed_run_counts_what_it_did_itself():
    run = record()
    run.nodes[0].state, run.nodes[0].why = "complete", DONE_BEFORE
    assert "1 ran, 1 done before" in text(run)


def test_refused_model_is_shown_as_a_table_with_the_command_that_blesses_it():
    reasons = ["auc 0.71, needs at least 0.94", "auc 0.5 on pay=Cash, needs at least 0.8"]
    run = record("stopped", blessed=False, blessing_reasons=reasons)
    origin = Origin("/work/churn/workload.yaml")
    run.target = RecordedRequest(target=WorkloadRun(config="{}"), origin=origin)
    check = {"metric": "auc", "slice": "overall", "required": "at least 0.94", "got": 0.71, "passed": False}
    passed = [{**check, "passed": True, "slice": f"pay={number}"} for number in range(60)]
    said = list(summary(run, verdict={"checks": [*passed, check], "warnings": ["m 1, needs above 2"]}))
    assert said[0] == "Not pushed: auc 0.71, needs at least 0.94; and 1 more."
    assert said[1].split() == ["check", "slice", "required", "got", "baseline", "verdict"]
    assert said[2].split() == ["auc", "overall", "at", "least", "0.94", "0.7100", "FAILED"]
    assert "Warning: m 1, needs above 2." in said
    assert any(f"--bless '{WHY}'" in line for line in said)
    assert len(said) <= 24


def test_evaluator_that_fails_beside_a_baseline_from_before_a_move_names_the_link():
    run = record("failed")
    place = "artifacts/churn/Trainer/model/7"
    model = {"uri": f"/old/{place}", "type": "Model", "properties": {}}
    run.nodes.append(NodeRecord("Baseline", type="Resolver", state="complete", outputs={"model": [model]}))
    error = {"message": "the baseline model cannot be loaded", "hint": "", "where": ""}
    run.nodes.append(NodeRecord("Evaluator", type="Evaluator", state="failed", error=error))
    assert "    hint: ln -s /data/output /old" in summary(run)
    model["uri"] = f"/data/output/{place}"
    assert "ln -s" not in text(run)


def test_evaluator_that_fails_beside_a_baseline_names_how_to_retire_it():
    run = record("failed")
    model = {"uri": "m", "type": "Model", "properties": {}}
    run.nodes.append(NodeRecord("Baseline", type="Resolver", state="complete", outputs={"model": [model]}))
    error = {"message": "InvalidArgumentError: Feature: company is required", "hint": "", "where": ""}
    run.nodes.append(NodeRecord("Evaluator", type="Evaluator", state="failed", error=error))
    told = "    hint: python local_runner.py baseline --clear --output /data/output   # or --set RUN"
    assert any(line.startswith(told) for line in summary(run))
    run.target = RecordedRequest(again="python cloud_runner.py rehearse taxi")
    assert "baseline --clear" not in text(run)  # a rehearsal has a baseline of its own
    origin = Origin(path="/data/taxi.yaml", sets=("name=cabs",), profile="prod")
    run.target = RecordedRequest(origin=origin)
    told = "    hint: python local_runner.py baseline /data/taxi.yaml --set name=cabs --profile prod --clear"
    assert any(line.startswith(told) for line in summary(run))
    run.target = NOTHING
    run.nodes[2].outputs = {}
    assert "baseline --clear" not in text(run)


def test_evaluator_of_a_pipeline_of_ones_own_names_no_command_for_the_models_of_a_workload():
    run = record("failed")
    run.target = RecordedRequest(target=ModuleRun(pipeline="m:f"))
    model = {"uri": "m", "type": "Model", "properties": {}}
    run.nodes.append(NodeRecord("Baseline", type="Resolver", state="complete", outputs={"model": [model]}))
    error = {"message": "the baseline model cannot be loaded", "hint": "", "where": ""}
    run.nodes.append(NodeRecord("Evaluator", type="Evaluator", state="failed", error=error))
    assert any(
        line.endswith("or of other columns or another label, cannot be compared.") for line in summary(run)
    )
    assert "baseline --clear" not in text(run)


def test_tuned_values_and_smaller_forms_are_reported_one_a_line():
    form = {"kind": "litert_int8", "size_bytes": 54321, "change": {"accuracy": -0.0012, "loss": 0.03}}
    assert list(training_lines({"tuned": {"units": 32, "rate": 0.01}, "exports": [form]})) == [
        "tuned     units 32, rate 0.01",
        "export    litert_int8 54 kB, accuracy -0.0012, loss +0.03",
    ]
    assert list(training_lines({})) == []
    [said] = training_lines({"exports": [{**form, "change": {"accuracy": 0.5}, "no_number": ["loss"]}]})
    assert said == "export    litert_int8 54 kB, accuracy +0.5, loss is no number"


def test_small_metrics_and_those_near_one_are_not_rounded_to_whole_numbers():
    metrics = {"example_count": 4966.0, "auc": 0.99998, "mean_squared_error": 4e-05, "hinge": 0.0}
    told = "example_count 4966, auc 1.0000, mean_squared_error 4e-05, hinge 0"
    assert metrics_line(metrics) == told
    assert metrics_line({"mean_squared_error": float("nan")}) == "mean_squared_error nan"

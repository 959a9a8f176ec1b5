"""A gate that says no: not a fault, but an end with a verdict."""

import json

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


@pytest.fixture(scope="module")
def stopped(toy_of_module):
    """The run that a gate stopped."""
    return toy_of_module.run("gate")


def test_run_ends_with_code_3_and_what_waits_for_the_gate_does_not_run(stopped, toy_of_module):
    assert stopped.returncode == 3
    record = toy_of_module.record()
    assert (record.state, record.exit_code) == ("stopped", 3)
    assert {node.id: node.state for node in record.nodes} == {
        "Make": "complete",
        "Gate": "failed",
        "Push": "skipped",
    }
    assert record.node("Push").why == "Gate stopped the run"


def test_screen_tells_the_verdict_and_no_traceback(stopped):
    assert "Stopped: Gate, after 1 of 3 nodes. What is finished is kept." in stopped.stderr
    assert "  Gate: 1 finding in the toys" in stopped.stderr
    assert "    tips: 3 rows below 0, limit 0" in stopped.stderr
    assert "Traceback" not in stopped.stderr


def test_gate_is_not_asked_again_however_many_retries_it_has(stopped, toy_of_module):
    assert len(toy_of_module.lines("attempts-gate")) == 1


def test_verdict_is_kept_although_the_outputs_of_a_failed_node_are_removed(stopped, toy_of_module):
    run_id = toy_of_module.record().run_id
    path = toy_of_module.output / "runs" / run_id / "verdicts" / "Gate.json"
    assert json.loads(path.read_text())["lines"][0] == "tips: 3 rows below 0, limit 0"
    shown = toy_of_module.command("show", run_id)
    assert "stopped   Gate: 1 finding in the toys" in shown.stdout
    assert "    tips: 3 rows below 0, limit 0" in shown.stdout


def test_stopped_run_is_not_resumed(stopped, toy_of_module):
    resumed = toy_of_module.command("resume")
    assert resumed.returncode == 2
    assert "is stopped: there is nothing to resume" in resumed.stderr


def test_nothing_goes_on_from_an_earlier_result_behind_a_gate_that_is_still_asked(toy):
    (toy.folder / "version").write_text("1")
    (toy.folder / "well").touch()
    assert toy.run("gate_before_kept").returncode == 0
    (toy.folder / "version").write_text("2")
    (toy.folder / "well").unlink()
    assert toy.run("gate_before_kept").returncode == 3
    assert toy.lines("made") == ["kept 1", "last 1 1"], "nothing was made of what the gate refuses"
    assert {node.id: node.state for node in toy.record().nodes} == {
        "Gate": "failed",
        "Kept": "skipped",
        "Last": "skipped",
    }
    assert toy.record().node("Last").why == "Gate stopped the run"


def test_override_of_a_workload_is_refused_for_another_pipeline(toy):
    refused = toy.run("gate", "--accept-data", "why not")
    assert refused.returncode == 2
    assert "--accept-data belongs to the gates of a workload" in refused.stderr


def test_override_without_a_reason_is_refused(toy):
    refused = toy.command("run", "taxi", "--bless", " ")
    assert refused.returncode == 2
    assert "--bless needs a reason" in refused.stderr

"""A run in steps that another program takes: begun, run node by node, finished."""

import threading

import pytest

from slipway.pipeline.commands import run as running
from slipway.pipeline.commands.run import resume
from slipway.pipeline.engine.stepwise_run import begin, finish, run_node
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.plan.run_request import requested
from slipway.pipeline.plan.state_folders import states_of_step

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


class Steps:
    """Takes the steps of one run of a toy pipeline."""

    def __init__(self, toy, name, watcher, warm, **options):
        self.toy, self.watcher, self.warm = toy, watcher, warm
        asked = requested("", pipeline=f"toy_pipeline:{name}", output=toy.output)
        self.run_id = begin(asked, display=watcher, warm=warm, **options).run_id

    def node(self, node_id):
        """Runs a node; returns the exit code of its step."""
        return run_node(self.run_id, node_id, output=self.toy.output, display=self.watcher, warm=self.warm)[1]

    def finish(self):
        """Closes the run; returns how it ended."""
        record = finish(self.run_id, output=self.toy.output, display=self.watcher)
        return record.state, record.exit_code

    def states(self):
        """The state of each node, as kept."""
        return {node.id: node.state for node in self.toy.record().nodes}


@pytest.fixture
def steps(in_process, watcher, warm):
    """Begins a run."""
    return lambda name, **options: Steps(in_process, name, watcher, warm, **options)


def test_gate_stops_a_run_in_steps_and_lets_it_go_on_once_all_is_well(steps, in_process):
    run = steps("gate")
    assert in_process.command("runs").stdout.split()[2] == "running"
    with pytest.raises(PipelineError, match="Push cannot run: Gate is not done in run"):
        run.node("Push")
    assert run.node("Make") == 0
    assert run.node("Gate") == 3
    assert run.finish() == ("stopped", 3)
    assert run.states() == {"Make": "complete", "Gate": "failed", "Push": "skipped"}
    # Not tried again by the engine: who takes the steps decides that.
    assert len(in_process.lines("attempts-gate")) == 1

    in_process.get_well()
    assert run.node("Gate") == 0
    assert run.node("Push") == 0
    assert run.node("Push") == 0  # done, so left as it is
    assert run.finish() == ("complete", 0)
    assert in_process.lines("pushed") == ["good"]
    assert in_process.record().node("Gate").attempts == 2

    # What steps have made is in the cache of every run.
    again = steps("gate")
    assert again.states() == {"Make": "cached", "Gate": "cached", "Push": "cached"}
    assert again.finish() == ("complete", 0)


def test_node_that_a_dag_lacks_is_told_as_that_and_not_to_be_run_by_hand(steps):
    run = steps("gate", airflow="airflow dags trigger toy --conf")
    with pytest.raises(PipelineError, match="Push cannot run: Gate is not done in run") as refused:
        run.node("Push")
    assert "if the DAG has no task Gate, the workload file has changed since" in refused.value.hint


def test_failed_node_keeps_its_error_and_the_run_is_not_resumed_by_another_way(steps, in_process):
    run = steps("faults")
    assert run.node("Raise") == 1
    assert in_process.node("Raise").error["message"] == "ValueError: the toy is broken"
    assert run.node("Kill") == 1
    assert "SIGKILL" in in_process.node("Kill").error["message"]
    assert run.finish() == ("failed", 1)
    assert in_process.node("After").why == "Raise failed"
    with pytest.raises(UsageError, match="run step by step by another program") as caught:
        resume(run.run_id, output=in_process.output, jobs=None)
    for failed in ("Raise", "Kill"):
        assert f"python local_runner.py step node {run.run_id} {failed} --output" in caught.value.hint


def test_steps_taken_at_the_same_time_all_find_their_way_into_the_record(steps, in_process):
    run = steps("sleepers")
    codes = []
    threads = [
        threading.Thread(target=lambda i=i: codes.append(_in_a_process(in_process, run.run_id, f"Sleep{i}")))
        for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    assert [run.states()[f"Sleep{i}"] for i in range(3)] == ["complete", "complete", "waiting"]
    assert run.finish() == ("interrupted", 130)
    assert in_process.node("Sleep2").why == "its step did not run"


def test_step_that_is_told_to_end_lets_its_node_save_and_can_be_taken_again(steps, in_process):
    run = steps("hang")
    assert run.node("Make") == 0
    process = in_process.start("step", "node", run.run_id, "Hang")
    in_process.begins("hangs")
    process.terminate()
    process.communicate()
    assert process.returncode == 130
    assert in_process.lines("saved") == ["saved"]
    assert (in_process.node("Hang").state, in_process.node("Hang").why) == ("skipped", "interrupted")
    in_process.get_well()
    assert run.node("Hang") == 0


def test_step_beside_one_of_an_equal_run_keeps_its_state_apart_and_goes_on_with_it(steps, in_process):
    one, other = steps("remember"), steps("remember")
    assert (one.node("Make"), other.node("Make")) == (0, 0)
    key = in_process.node("Remember").key
    with states_of_step(in_process.output, key=key, node_id="Remember", run_id=one.run_id) as states:
        folder = states.folder(key, "Remember")
        folder.mkdir(parents=True)
        (folder / "attempts").write_text("xxx")
        assert other.node("Remember") == 1
    assert other.node("Remember") == 1
    assert (folder / "attempts").read_text() == "xxx"
    in_process.get_well()
    assert other.node("Remember") == 0
    assert list(folder.parent.iterdir()) == [folder]
    assert [line.split()[1] for line in in_process.lines("remembered")] == ["1", "2", "3"]


def _in_a_process(toy, run_id, node_id):
    process = toy.start("step", "node", run_id, node_id)
    process.communicate()
    return process.returncode


def test_condition_that_is_not_met_is_no_failure(steps, in_process):
    run = steps("features")
    assert run.node("Make") == 0
    assert run.node("IfNo") == 0
    assert run.node("NeedsNo") == 0
    assert run.node("MayUseNo") == 0
    assert run.states() | {"IfNo": "skipped", "NeedsNo": "skipped", "MayUseNo": "complete"} == run.states()


def test_gate_of_a_run_that_airflow_has_begun_names_airflow_s_command(steps, in_process, capsys):
    run = steps("gate", airflow="airflow dags trigger toys --conf")
    run.node("Make")
    assert running.run_node(run.run_id, "Gate", output=in_process.output) == 3
    passes = """airflow dags trigger toys --conf '{"accept_data": "why it is right"}'"""
    assert f"hint: {passes}   # lets it pass once" in capsys.readouterr().err
    assert running.finish(run.run_id, output=in_process.output) == 3
    assert passes in capsys.readouterr().err


def test_steps_of_a_run_that_is_not_there_are_refused(in_process):
    refused = in_process.command("step", "finish", "")
    assert refused.returncode == 2
    assert "`step begin` did not succeed" in refused.stderr

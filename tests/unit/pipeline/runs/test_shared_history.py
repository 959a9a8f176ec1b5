"""Several processes write one run's record, each its own node."""

import threading

import pytest

from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.runs.shared_history import SharedHistory


@pytest.fixture
def run(tmp_path):
    """A run of two nodes."""
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.nodes = [NodeRecord(id="A"), NodeRecord(id="B")]
    history.save(record)
    return record


def test_two_writers_that_read_the_same_record_keep_each_other_s_node(run, tmp_path):
    writers = {name: SharedHistory(tmp_path, name) for name in "AB"}
    read = {name: history.find(run.run_id) for name, history in writers.items()}
    for name, state in (("A", "complete"), ("B", "failed")):
        read[name].node(name).state = state
        writers[name].save(read[name])
    assert [node.state for node in History(tmp_path).find(run.run_id).nodes] == ["complete", "failed"]


def test_run_that_was_closed_goes_on_when_a_node_is_written(run, tmp_path):
    run.state, run.exit_code = "failed", 1
    History(tmp_path).save(run)
    SharedHistory(tmp_path, "A").save(run)
    now = History(tmp_path).find(run.run_id)
    assert (now.state, now.exit_code) == ("running", None)


def test_writer_waits_while_another_is_alone_with_the_record(run, tmp_path):
    done = threading.Event()
    history = SharedHistory(tmp_path, "A")
    writer = threading.Thread(target=lambda: (history.save(run), done.set()))
    with SharedHistory(tmp_path).alone(run.run_id):
        writer.start()
        assert not done.wait(0.2)
    writer.join()
    assert done.is_set()

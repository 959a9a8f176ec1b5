import pytest

from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.killed_run import last_attempt, take_up
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord

GRAPH = Graph("toy", (Node("Gen", "Gen", ()), Node("Train", "Train", ("Gen",))))
PRINTS = {name: Fingerprint({"node:id": name, "code:model.py": "v1"}) for name in ("Gen", "Train")}
PUBLISHED = {"Train": {"state": "complete", "execution_id": 7, "outputs": {}}}


@pytest.fixture
def journal(tmp_path):
    """Of a run whose engine was killed while Train ran."""
    history = History(tmp_path)
    record = history.new_run("toy")
    record.nodes = [
        NodeRecord("Gen", state="complete", key=PRINTS["Gen"].key, upstream=[]),
        NodeRecord("Train", state="running", key=PRINTS["Train"].key, upstream=["Gen"]),
    ]
    history.save_fingerprints(record.run_id, PRINTS)
    return Journal(record, history, 0.0)


def taken(journal, *, graph=GRAPH, now=PRINTS):
    take_up(journal, PUBLISHED, graph, lambda node, kept: kept == now[node.id])
    return journal.history.recall(PRINTS["Train"].key)


def test_what_was_published_after_the_engine_was_killed_is_a_result(journal):
    found = taken(journal)
    assert (found["execution_id"], found["run_id"]) == (7, journal.record.run_id)


def test_what_may_have_been_made_by_other_code_is_none(journal):
    """Whether it changed before the node began, nobody knows: the key stands for what it had been."""
    changed = Fingerprint({"node:id": "Train", "code:model.py": "v2"})
    assert taken(journal, now={**PRINTS, "Train": changed}) is None


@pytest.mark.parametrize(("gates", "is_taken"), [((), False), (("Gen",), True)])
def test_what_was_made_from_a_result_that_was_not_cached_is_none(journal, gates, is_taken):
    journal.record.node("Gen").why = "model.py changed; not cached: its code or data changed while it ran"
    node = Node("Train", "Train", ("Gen",), gates=gates)
    assert (taken(journal, graph=Graph("toy", (GRAPH["Gen"], node))) is not None) is is_taken


@pytest.mark.parametrize("kept", [{}, {"Train": Fingerprint({"node:id": "another"})}])
def test_what_has_no_fingerprint_of_its_key_is_none(journal, kept):
    journal.history.save_fingerprints(journal.record.run_id, kept)
    assert taken(journal, now={"Train": kept.get("Train")}) is None


def test_a_node_that_the_pipeline_no_longer_has_is_left_alone(journal):
    assert taken(journal, graph=Graph("toy", (GRAPH["Gen"],))) is None


@pytest.mark.parametrize(("resumed", "attempt"), [(1, ""), (2, ".1"), (11, ".10")])
def test_a_resumed_run_was_last_at_work_under_the_id_before(journal, resumed, attempt):
    journal.record.resumed = resumed
    assert last_attempt(journal.record) == f"{journal.record.run_id}{attempt}"

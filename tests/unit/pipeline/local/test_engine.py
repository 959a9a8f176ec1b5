"""The engine with a server that answers as it is told."""

from unittest.mock import Mock

import pytest

from pipeline.fingerprint import Fingerprint
from pipeline.local.engine import Engine
from pipeline.local.graph import Graph, Node
from pipeline.local.history import History
from pipeline.local.outcome import exit_code
from pipeline.local.plan import Decision
from pipeline.local.record import NodeRecord
from pipeline.local.server import ServerLostError

LOST = ServerLostError("The process that starts the nodes was ended by SIGKILL.", hint="see engine.log")


class Server:
    """Ends each node that is started as it is told; then it is gone.

    Args:
        results: of the starts, in their order; an error is raised in place of an answer.
    """

    def __init__(self, *results):
        self._results = list(results)
        self._messages = []

    def send(self, op, **values):
        if op == "start":
            result = self._results.pop(0)
            if isinstance(result, Exception):
                raise result
            ended = {"event": "exited", "code": 1, "peak_bytes": 0, "result": result}
            self._messages.append({**ended, "node": values["node"]})

    def receive(self, timeout_s):
        if not self._messages and not self._results:
            raise LOST
        messages, self._messages = self._messages, []
        return messages


@pytest.fixture
def ended(tmp_path):
    """Runs A, which may be tried again, and B behind it; returns the record."""

    def run(*results):
        history = History(tmp_path)
        record = history.new_run("toy", {"output": str(tmp_path)})
        record.nodes = [NodeRecord("A"), NodeRecord("B", upstream=["A"])]
        nodes = (Node("A", "A", (), retries=2, backoff_s=60.0), Node("B", "B", ("A",)))
        prints = {node.id: Fingerprint({"param:x": f'"{node.id}"'}) for node in nodes}
        decisions = {node.id: Decision(node.id, "run", "") for node in nodes}
        Engine(
            record=record,
            graph=Graph("toy", nodes),
            decisions=decisions,
            prints=prints,
            server=Server(*results),
            history=history,
            display=Mock(),
            jobs=1,
        ).run()
        return record

    return run


FAILED = {"state": "failed", "message": "no", "hint": "", "where": ""}


def test_server_that_dies_while_a_node_waits_for_its_next_try_fails_the_run(ended):
    record = ended(FAILED)
    assert (record.node("A").state, record.node("A").error["message"]) == ("failed", LOST.message)
    assert (record.node("B").state, record.node("B").why) == ("skipped", "A failed")
    assert exit_code(record) == 1


def test_server_that_is_gone_between_two_nodes_fails_the_one_that_was_due(ended):
    done = {"state": "complete", "execution_id": 1, "outputs": {}}
    record = ended(done, LOST)
    assert (record.node("A").state, record.node("B").state) == ("complete", "failed")
    assert record.node("B").error == {"message": LOST.message, "hint": "see engine.log", "where": ""}

"""What becomes of the results of nodes; test_scheduler.py runs whole pipelines with the cached ones."""

import pytest

from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.result_store import CachedResults, Results
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.plan.make_plan import Plan
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord

GRAPH = Graph("toy", (Node("A", "A", ()), Node("B", "B", ())))
PRINT = Fingerprint({"param:x": "1"})
FILES = {"f": (1, 2, "x")}


@pytest.fixture
def results(tmp_path):
    history = History(tmp_path)
    record = history.new_run("toy")
    record.nodes = [NodeRecord(name, execution_id=7) for name in GRAPH.ids]
    decisions = {"A": Decision("A", "run", ""), "B": Decision("B", "skip", "not met", is_unmet=True)}
    prints = {"A": PRINT, "B": Fingerprint({"param:x": "2"})}
    return CachedResults(Journal(record, history, 0.0), Plan(GRAPH, prints, decisions, "", ""))


def with_state(results, node_id="A"):
    folder = results.state_folder(node_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_result_is_kept_under_the_key_of_its_node_whose_state_is_no_longer_needed(results):
    entry, state = results.record.node("A"), with_state(results)
    results.keep(entry, FILES)
    kept = results.history.recall(PRINT.key)
    assert (kept["node"], kept["run_id"], kept["files"]) == ("A", results.record.run_id, FILES)
    assert entry.key == PRINT.key
    assert not state.exists()


@pytest.mark.parametrize(
    ("state", "execution_id", "read"),
    [
        ("complete", 7, {"B": 7}),
        ("skipped", None, {"B": None}),
        ("running", 7, {"B": 7}),  # in a killed run that is taken up
        ("running", None, {}),
        ("waiting", None, {}),
    ],
)
def test_result_tells_which_executions_it_was_made_of(results, state, execution_id, read):
    """What a condition leaves out does not wait for all that it would have read."""
    before, entry = results.record.node("B"), results.record.node("A")
    before.state, before.execution_id, entry.upstream = state, execution_id, ["B"]
    results.keep(entry, FILES)
    assert results.history.recall(PRINT.key)["read"] == read


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ({"finds_baseline": True}, "Model"),
        ({"finds_reference": "blessed"}, "ExampleStatistics"),
        ({"finds_reference": "passed"}, "ExampleStatistics"),
    ],
)
@pytest.mark.parametrize(("earlier", "is_kept"), [("2", False), ("3", True)], ids=["the same", "another"])
def test_what_a_resolver_finds_of_the_same_made_before_is_no_answer_for_later_runs(
    tmp_path, rule, kind, earlier, is_kept
):
    """With --no-cache it finds the model that is trained anew; the key stands for the one before that."""
    history = History(tmp_path)
    graph = Graph(
        "toy",
        (
            Node("Latest", "Resolver", (), is_resolver=True, outputs={"model": "Model"}, **rule),
            Node("Maker", "Maker", (), outputs={"made": kind}),
        ),
    )
    prints = {"Latest": PRINT, "Maker": Fingerprint({"param:x": "2"})}
    found = {"model": [{"uri": "it", "type": "Model", "properties": {}}]}
    before = history.new_run("toy")
    key = Fingerprint({"param:x": earlier}).key
    before.nodes = [NodeRecord("Maker", state="complete", key=key, outputs=found)]
    history.save(before)
    record = history.new_run("toy")
    record.nodes = [NodeRecord("Latest", type="Resolver", execution_id=7, outputs=found), NodeRecord("Maker")]
    CachedResults(Journal(record, history, 0.0), Plan(graph, prints, {}, "", "")).keep(record.nodes[0], {})
    assert (history.recall(PRINT.key) is not None) is is_kept


def test_condition_that_was_not_met_is_kept_in_words_and_known_from_earlier_runs(results):
    assert results.begin() == {"B"}
    entry = results.record.node("A")
    entry.why = "its condition was not met"
    results.leave_out(entry)
    assert results.history.recall(PRINT.key)["unmet"] == "its condition was not met"


@pytest.mark.parametrize("changes", [[], ["model.py changed"]])
def test_state_of_a_failed_node_is_gone_on_with_unless_its_code_changed(results, changes):
    state = with_state(results)
    results.changes_since = lambda _node_id: changes
    results.fail(results.record.node("A"))
    assert state.exists() is not bool(changes)


def test_what_was_made_of_the_result_of_changed_code_is_not_kept_under_a_key_of_the_code_before(tmp_path):
    """Else it would be taken once the code is put back, beside a result that `--no-cache` had left behind."""
    graph = Graph(
        "toy",
        (
            Node("Transform", "Transform", ()),
            Node("Gate", "Gate", ("Transform",)),
            Node("Trainer", "Trainer", ("Transform",)),
            Node("Evaluator", "Evaluator", ("Trainer",)),
            Node("Waits", "Waits", ("Gate",), gates=("Gate",)),
        ),
    )
    history = History(tmp_path)
    record = history.new_run("toy")
    record.nodes = [NodeRecord(name, execution_id=7) for name in graph.ids]
    prints = {name: Fingerprint({"node:id": name}) for name in graph.ids}
    results = CachedResults(
        Journal(record, history, 0.0),
        Plan(graph, prints, {}, "", ""),
        lambda node_id: ["model.py changed"] if node_id == "Transform" else [],
    )
    state = with_state(results, "Evaluator")
    for name in ("Transform", "Gate", "Trainer", "Waits"):
        results.keep(record.node(name), {})
    results.fail(record.node("Evaluator"))

    assert [name for name in graph.ids if history.recall(prints[name].key)] == ["Waits"]
    assert record.node("Trainer").why == "; not cached: Transform's code or data changed while that ran"
    assert not state.exists()


def test_uncached_results_leave_nothing_behind(tmp_path):
    results, entry = Results(), NodeRecord("a/b", why="no")
    assert results.begin() == set()
    results.keep(entry, FILES)
    results.leave_out(entry)
    results.fail(entry)
    assert results.state_folder("a/b") is None
    assert list(tmp_path.iterdir()) == []
    assert entry == NodeRecord("a/b", why="no")


def test_what_a_step_made_of_the_result_of_changed_code_is_not_kept_either(tmp_path):
    """The step before it was another process, of which only the record tells."""
    history = History(tmp_path)
    graph = Graph("toy", (Node("Transform", "A", ()), Node("Trainer", "B", ("Transform",))))
    plan = Plan(graph, {"Transform": PRINT, "Trainer": Fingerprint({"param:x": "2"})}, {}, "", "")
    record = history.new_run("toy")
    record.nodes = [NodeRecord(name, execution_id=7, state="complete") for name in graph.ids]
    CachedResults(Journal(record, history, 0.0), plan, lambda _node_id: ["model.py changed"]).keep(
        record.nodes[0], {}
    )
    history.save(record)

    record = history.find(record.run_id)
    CachedResults(Journal(record, history, 0.0), plan).keep(record.nodes[1], {})
    assert history.recall(plan.prints["Trainer"].key) is None
    assert record.node("Trainer").why == "; not cached: Transform's code or data changed while that ran"

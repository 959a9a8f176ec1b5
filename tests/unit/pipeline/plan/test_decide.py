"""What runs, what is reused, and why."""

from dataclasses import replace

import pytest

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.plan.decide import Decision, Known, decide
from slipway.pipeline.runs.graph import Graph, Node

#   Ingest -> Transform -> Trainer -> Evaluator <- Baseline (a resolver)
GRAPH = Graph(
    "taxi",
    (
        Node("Baseline", "Resolver", (), is_resolver=True),
        Node("Ingest", "CsvExampleGen", ()),
        Node("Transform", "Transform", ("Ingest",)),
        Node("Trainer", "Trainer", ("Transform",)),
        Node("Evaluator", "Evaluator", ("Trainer", "Baseline")),
    ),
)
RESULT = {"run_id": "run-1", "execution_id": 1, "outputs": {}}


def fingerprints(**changed):
    """Fingerprints of GRAPH; `changed` names another version of a node's code."""
    prints = {}
    for node in GRAPH.nodes:
        parts = {f"code:{node.id.lower()}.py": changed.get(node.id, "1")}
        parts |= {f"upstream:{up}": prints[up].key for up in node.upstream}
        prints[node.id] = Fingerprint(parts)
    return prints


def decisions(now, before, *, gone=(), forced=(), selected=None):
    results = {prints.key: {**RESULT, "node": node_id} for node_id, prints in before.items()}

    def missing(entry):
        return "its model is gone" if entry["node"] in gone else ""

    return decide(
        GRAPH,
        prints=now,
        known=Known(results.get, missing, before),
        selected=set(GRAPH.ids) if selected is None else selected,
        forced=forced,
    )


def running(decided):
    return {node_id for node_id, decision in decided.items() if decision.action == "run"}


def test_first_run_runs_everything():
    decided = decisions(fingerprints(), {})
    assert running(decided) == set(GRAPH.ids)
    assert decided["Ingest"].why == "first run"


def test_unchanged_rerun_reuses_everything_and_says_from_where():
    decided = decisions(fingerprints(), fingerprints())
    assert running(decided) == set()
    result = {**RESULT, "node": "Trainer"}
    assert decided["Trainer"] == Decision("Trainer", "reuse", "cached from run-1", result)


def test_changed_model_code_reruns_the_trainer_and_what_follows_only():
    decided = decisions(fingerprints(Trainer="2"), fingerprints())
    assert running(decided) == {"Trainer", "Evaluator"}
    assert decided["Trainer"] == Decision("Trainer", "run", "trainer.py changed")
    assert decided["Evaluator"] == Decision("Evaluator", "run", "Trainer runs")


def test_node_whose_own_code_and_upstream_changed_tells_its_own_change():
    decided = decisions(fingerprints(Transform="2", Trainer="2"), fingerprints())
    assert decided["Trainer"].why == "trainer.py changed"


def test_lost_result_runs_again_with_all_that_hangs_on_it():
    decided = decisions(fingerprints(), fingerprints(), gone=["Trainer"])
    assert running(decided) == {"Trainer", "Evaluator"}
    assert decided["Trainer"].why == "its model is gone"


def test_result_that_nobody_kept_is_made_again_though_nothing_changed():
    prints = fingerprints()
    known = Known({}.get, lambda _entry: "", prints)
    decided = decide(GRAPH, prints=prints, known=known, selected=set(GRAPH.ids), forced=())
    assert decided["Ingest"] == Decision("Ingest", "run", "no earlier result is kept")


def test_resolver_that_looks_again_makes_no_node_run():
    assert running(decisions(fingerprints(), fingerprints(), forced=["Baseline"])) == {"Baseline"}


def test_forced_nodes_run_whatever_is_cached():
    decided = decisions(fingerprints(), fingerprints(), forced=GRAPH.ids)
    why = "requested (--no-cache or --from)"
    assert decided == {name: Decision(name, "run", why, is_forced=True) for name in GRAPH.ids}


def test_node_that_may_not_be_taken_from_the_cache_runs_and_says_why():
    graph = Graph("one", (Node("N", "N", (), uncached="its pipeline has enable_cache=False"),))
    prints = {"N": Fingerprint({"node:id": "N"})}
    known = Known({prints["N"].key: RESULT}.get, lambda entry: "", prints)
    decided = decide(graph, prints=prints, known=known, selected={"N"}, forced=())
    assert (decided["N"].action, decided["N"].why) == ("run", "its pipeline has enable_cache=False")


@pytest.mark.parametrize("forced", [(), GRAPH.ids])
def test_resumed_run_keeps_what_it_has_done_itself_whatever_may_be_cached(forced):
    nodes = tuple(replace(node, uncached="its pipeline has enable_cache=False") for node in GRAPH.nodes)
    prints = fingerprints()
    results = {prints["Ingest"].key: RESULT, prints["Transform"].key: {**RESULT, "run_id": "run-0"}}
    known = Known(results.get, lambda entry: "", prints, resumed="run-1")
    decided = decide(Graph("taxi", nodes), prints=prints, known=known, selected=set(GRAPH.ids), forced=forced)
    assert running(decided) == set(GRAPH.ids) - {"Ingest"}


#   Latest (a resolver, of what Ingest makes) -> Trainer; nothing but that ties it to Ingest
ROLLING = Graph(
    "rolling",
    (
        Node("Latest", "Resolver", (), is_resolver=True, found="spans 1", looks_at=("Ingest",)),
        Node("Trainer", "Trainer", ("Latest",)),
        Node("Ingest", "CsvExampleGen", ()),
    ),
)


@pytest.mark.parametrize(
    ("gone", "runs"), [("", set()), ("Ingest", {"Ingest", "Latest", "Trainer"}), ("Trainer", {"Trainer"})]
)
def test_what_follows_a_resolver_runs_where_its_answer_may_change(gone, runs):
    prints = {node.id: Fingerprint({"node:id": node.id}) for node in ROLLING.nodes}
    results = {key.key: RESULT for node_id, key in prints.items() if node_id != gone}
    known = Known(results.get, lambda entry: "", prints)
    decided = decide(ROLLING, prints=prints, known=known, selected=set(ROLLING.ids), forced=())
    assert running(decided) == runs


@pytest.mark.parametrize("unmet", ["", "its condition was not met"])
def test_result_of_what_a_node_made_before_it_ran_again_is_not_taken_with_its_new_one(unmet):
    """As after a `--no-cache` that failed behind the Trainer: the Evaluator had judged another model."""
    prints = fingerprints()
    results = {prints[name].key: RESULT for name in GRAPH.ids}
    results[prints["Trainer"].key] = {"run_id": "run-2", "execution_id": 7, "outputs": {}}
    results[prints["Evaluator"].key] = {**RESULT, "unmet": unmet, "read": {"Trainer": 4, "Baseline": 5}}
    known = Known(results.get, lambda _entry: "", prints)
    decided = decide(GRAPH, prints=prints, known=known, selected=set(GRAPH.ids), forced=())
    assert running(decided) == {"Evaluator"}
    assert decided["Evaluator"].why == "Trainer ran again in run-2"
    results[prints["Evaluator"].key]["read"]["Trainer"] = 7
    decided = decide(GRAPH, prints=prints, known=known, selected=set(GRAPH.ids), forced=())
    assert not running(decided), "what a resolver found counts, and not that it looked again"


def test_nodes_after_the_last_one_asked_for_are_skipped():
    selected = GRAPH.select(start=None, end="Transform")
    decided = decisions(fingerprints(), {}, selected=selected)
    assert decided["Trainer"] == Decision("Trainer", "skip", "excluded (--to)")
    assert running(decided) == {"Ingest", "Transform"}


def test_nodes_before_the_first_one_asked_for_are_reused():
    selected = GRAPH.select(start="Trainer", end=None)
    decided = decisions(fingerprints(), fingerprints(), selected=selected, forced=selected)
    assert running(decided) == {"Trainer", "Evaluator"}
    assert decided["Ingest"].action == "reuse"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (3, "p0 1 -> 2; p1 1 -> 2; p2 1 -> 2"),
        (4, "p0 1 -> 2; p1 1 -> 2; p2 1 -> 2; and 1 more"),
        (6, "p0 1 -> 2; p1 1 -> 2; p2 1 -> 2; and 3 more"),
    ],
)
def test_long_list_of_reasons_is_cut_with_its_count(changed, why):
    before = Fingerprint({f"param:p{i}": "1" for i in range(changed)})
    now = Fingerprint({f"param:p{i}": "2" for i in range(changed)})
    graph = Graph("one", (Node("N", "N", ()),))
    known = Known(lambda _key: None, lambda _entry: "", {"N": before})
    decided = decide(graph, prints={"N": now}, known=known, selected={"N"}, forced=())
    assert decided["N"].why == why


def test_condition_that_was_not_met_is_known_until_something_upstream_runs():
    graph = Graph("two", (Node("Up", "Up", ()), Node("Cond", "Cond", ("Up",))))
    prints = {name: Fingerprint({"param:a": name}) for name in graph.ids}
    done = {"run_id": "r1", "execution_id": 1, "outputs": {}}
    kept = {prints["Up"].key: done, prints["Cond"].key: {**done, "unmet": "its condition was not met"}}
    known = Known(kept.get, lambda _entry: "", {})
    same = decide(graph, prints=prints, known=known, selected=graph.ids, forced=())
    assert same["Cond"] == Decision("Cond", "skip", "its condition was not met, as in r1", is_unmet=True)
    again = decide(graph, prints=prints, known=known, selected=graph.ids, forced=("Up",))
    assert (again["Cond"].action, again["Cond"].is_unmet) == ("run", False)


def test_node_whose_needed_input_is_left_out_is_left_out_whatever_else_ran_again():
    """Else it would run as far as the plan knows, and with it what can do without it."""
    last = Node("Last", "Last", ("Needs",), optional=("Needs",))
    graph = Graph(
        "four", (Node("Cond", "C", ()), Node("Up", "U", ()), Node("Needs", "N", ("Cond", "Up")), last)
    )
    prints = {name: Fingerprint({"param:a": name}) for name in graph.ids}
    kept = {prints[name].key: {**RESULT, "unmet": "left out" * (name == "Cond")} for name in ("Cond", "Last")}
    known = Known(kept.get, lambda _entry: "", {})
    decided = decide(graph, prints=prints, known=known, selected=graph.ids, forced=("Up",))
    assert decided["Needs"] == Decision("Needs", "skip", "Cond was skipped", is_unmet=True)
    assert (decided["Up"].action, decided["Last"].action) == ("run", "reuse")


#   Statistics -> Gate (judges, gives nothing) -> Transform
GATED = Graph(
    "gated",
    (
        Node("Statistics", "StatisticsGen", ()),
        Node("Gate", "DataGate", ("Statistics",)),
        Node("Transform", "Transform", ("Gate",), gates=("Gate",)),
    ),
)


def test_gate_that_judges_anew_makes_nothing_run_again_that_only_waits_for_it():
    prints = {node.id: Fingerprint({f"code:{node.id}": "1"}) for node in GATED.nodes}
    results = {prints[name].key: RESULT for name in ("Statistics", "Transform")}
    known = Known(results.get, lambda entry: "", prints)
    decided = decide(GATED, prints=prints, known=known, selected=set(GATED.ids), forced=())
    assert running(decided) == {"Gate"}

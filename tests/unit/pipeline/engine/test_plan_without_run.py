"""The graph of a request, and what is refused before there is a run."""

from dataclasses import replace

import pytest
from fingerprints import fingerprints

from slipway.pipeline.config import WorkloadChoice
from slipway.pipeline.engine import plan_without_run
from slipway.pipeline.engine.local_run import execute
from slipway.pipeline.engine.plan_without_run import check_nodes, plan_kept, plan_only
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import workload_request
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History, result_of
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import ModuleRun
from slipway.pipeline.screen.display import RunDisplay

GRAPH = Graph("taxi", (Node("Ingest", "Ingest", ()), Node("Trainer", "Trainer", ("Ingest",))))


@pytest.fixture
def asked(project, tmp_path):
    path = project / "workloads/taxi/workload.yaml"
    return workload_request(WorkloadChoice(path), output=tmp_path, beam_args=())


@pytest.fixture
def compiles(monkeypatch):
    """How often a graph was compiled, which takes TFX's import."""
    done = []

    def find_graph(request, **_):
        done.append(request)
        return GRAPH

    monkeypatch.setattr(plan_without_run, "find_graph", find_graph)
    return done


def _run_of(output):
    history = History(output)
    record = history.new_run("taxi")
    record.nodes = [NodeRecord(node_id, state="complete") for node_id in GRAPH.ids]
    history.save(record)


@pytest.mark.parametrize("option", ["start", "end"])
def test_a_name_that_is_no_node_is_refused_before_there_is_a_run(asked, monkeypatch, compiles, option):
    monkeypatch.setattr(plan_without_run, "known_graph", lambda request, history: GRAPH)
    begun = []
    display = RunDisplay()
    display.begins = begun.append
    with pytest.raises(UsageError, match=r"No node 'Trainr'\. Closest: 'Trainer'\."):
        execute(replace(asked, **{option: "Trainr"}), display=display)
    assert (begun, compiles) == ([], [])
    assert not (asked.output / "runs").exists()


def test_a_name_of_the_latest_run_is_taken_without_compiling(asked, compiles):
    _run_of(asked.output)
    check_nodes(replace(asked, start="Trainer"), History(asked.output))
    assert compiles == []


def test_a_run_that_has_just_begun_is_passed_over(asked, compiles):
    _run_of(asked.output)
    history = History(asked.output)
    history.save(history.new_run("taxi"))
    check_nodes(replace(asked, end="Trainer"), history)
    assert compiles == []


def test_a_name_that_the_latest_run_does_not_have_is_looked_up_and_told(asked, compiles, capfd):
    _run_of(asked.output)
    with pytest.raises(UsageError, match="No node 'Tuner'"):
        check_nodes(replace(asked, start="Tuner"), History(asked.output))
    assert len(compiles) == 1
    assert capfd.readouterr().err == "taxi: looks up Tuner\n"


def test_without_names_nothing_is_looked_up(asked, compiles):
    check_nodes(asked, History(asked.output))
    check_nodes(replace(asked, start="Any", target=ModuleRun(pipeline="my:pipeline")), History(asked.output))
    assert compiles == []


def test_what_may_not_be_cached_is_kept_to_be_compared_with_all_the_same(asked, monkeypatch):
    graph = Graph("taxi", (Node("Ingest", "Ingest", (), uncached="its pipeline has enable_cache=False"),))
    monkeypatch.setattr(plan_without_run, "find_graph", lambda request, **_: graph)
    history = History(asked.output)
    key = fingerprints(graph, roots=asked.code_roots, memo=None, baseline="")["Ingest"].key
    history.remember(key, result_of(NodeRecord("Ingest"), RunRecord("run-0", "taxi"), files={}))
    assert plan_only(asked, history).decisions["Ingest"].action == "run"
    assert plan_kept(asked, history).decisions["Ingest"].source["run_id"] == "run-0"

"""Graph: what may start, what a selection holds, and that it survives JSON."""

import json

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.graph import Graph, Node, ready
from slipway.pipeline.runs.typed_json import typed

GRAPH = Graph(
    "toy",
    (
        Node("Ingest", "CsvExampleGen", ()),
        Node("Schema", "SchemaGen", ("Ingest",)),
        Node("Stats", "StatisticsGen", ("Ingest",), retries=2, timeout_s=9.5, params={"a.b": "1"}),
        Node("Train", "Trainer", ("Schema", "Stats"), optional=("Stats",), outputs={"model": "Model"}),
        Node("Push", "Pusher", ("Train",), code=("a.b",), data=("x/*",), files=("/f",)),
    ),
)


def test_a_graph_is_the_same_after_json():
    assert typed(Graph, json.loads(json.dumps(GRAPH.to_json()))) == GRAPH


def test_without_limits_all_nodes_are_selected():
    assert GRAPH.select(start=None, end=None) == set(GRAPH.ids)


def test_from_selects_the_node_and_what_follows():
    assert GRAPH.select(start="Stats", end=None) == {"Stats", "Train", "Push"}


def test_to_selects_the_node_and_what_it_needs():
    assert GRAPH.select(start=None, end="Stats") == {"Ingest", "Stats"}


def test_from_and_to_select_what_lies_between():
    assert GRAPH.select(start="Stats", end="Train") == {"Stats", "Train"}


def test_from_and_to_on_different_branches_are_refused():
    with pytest.raises(UsageError, match="--to Schema does not depend on --from Stats"):
        GRAPH.select(start="Stats", end="Schema")


def test_an_unknown_node_is_refused_with_the_closest_name_and_all_names():
    with pytest.raises(UsageError, match=r"No node 'Trian'. Closest: 'Train'") as error:
        GRAPH.select(start="Trian", end=None)
    assert error.value.hint == "nodes: Ingest, Schema, Stats, Train, Push"
    with pytest.raises(UsageError, match=r"No node 'zzz'. Closest: "):
        GRAPH.select(start=None, end="zzz")


def test_first_only_nodes_without_upstream_are_ready():
    assert ready(GRAPH, waiting=set(GRAPH.ids), done=set(), unmet=set()) == ["Ingest"]


def test_branches_are_ready_together_in_topological_order():
    assert ready(GRAPH, waiting={"Stats", "Schema", "Train"}, done={"Ingest"}, unmet=set()) == [
        "Schema",
        "Stats",
    ]


def test_a_node_waits_for_every_upstream_node():
    assert ready(GRAPH, waiting={"Train"}, done={"Ingest", "Stats"}, unmet=set()) == []


def test_a_node_waits_for_what_lies_before_an_earlier_result():
    done = {"Stats", "Schema"}  # taken from an earlier run, while Ingest runs again
    assert ready(GRAPH, waiting={"Train"}, done=done, unmet=set()) == []
    assert ready(GRAPH, waiting={"Train"}, done={"Ingest", *done}, unmet=set()) == ["Train"]


def test_a_node_that_runs_or_is_done_is_not_ready_again():
    assert ready(GRAPH, waiting=set(), done={"Ingest"}, unmet=set()) == []


def test_a_node_does_without_an_optional_input_whose_condition_was_not_met():
    assert ready(GRAPH, waiting={"Train"}, done={"Ingest", "Schema"}, unmet={"Stats"}) == ["Train"]


def test_a_node_cannot_do_without_a_needed_input_whose_condition_was_not_met():
    assert ready(GRAPH, waiting={"Train"}, done={"Ingest", "Stats"}, unmet={"Schema"}) == []

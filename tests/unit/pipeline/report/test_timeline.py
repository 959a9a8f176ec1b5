from slipway.pipeline.report.timeline import critical_path, timeline
from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.screen.wording import DONE_BEFORE


def node(name: str, start: float | None, took: float, upstream: tuple[str, ...] = (), **more) -> NodeRecord:
    values = {"state": "complete", "started_s": start, "wall_s": took, "upstream": list(upstream)}
    return NodeRecord(name, **(values | more))


def test_critical_path_goes_back_over_the_needed_node_that_ended_last():
    nodes = [node("a", 0, 1), node("b", 0, 5), node("c", 5, 2, ("a", "b")), node("d", 1, 1, ("a",))]

    assert critical_path(nodes) == ["b", "c"]


def test_cached_nodes_and_those_of_an_earlier_attempt_take_no_time():
    nodes = [
        node("a", None, 0, state="cached"),
        node("b", 3, 9, why=DONE_BEFORE),
        node("c", 0, 2, ("a", "b")),
    ]

    line = timeline(nodes)

    assert [bar.node_id for bar in line.bars] == ["c"]
    assert (line.span_s, line.busy_s) == (2, 2)


def test_no_node_makes_an_empty_timeline():
    assert timeline([]).bars == ()

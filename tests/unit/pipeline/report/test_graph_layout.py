import graphlib
import itertools

import pytest

from slipway.pipeline.report.graph_layout import BOX_WIDTH_PX, lay_out


def test_each_node_stands_below_all_that_it_needs():
    needs = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d", "a"]}

    boxes = {box.node_id: box for box in lay_out(needs).boxes}

    assert all(boxes[node].y > boxes[up].y for node, ups in needs.items() for up in ups)


def test_an_edge_that_follows_from_others_is_not_drawn():
    drawing = lay_out({"a": [], "b": ["a"], "c": ["a", "b"]})

    assert [(edge.source, edge.target) for edge in drawing.edges] == [("a", "b"), ("b", "c")]


def test_boxes_of_one_layer_do_not_overlap():
    boxes = sorted(lay_out({name: [] for name in "abcd"}).boxes, key=lambda box: box.x)

    assert len({box.y for box in boxes}) == 1
    assert all(right.x - left.x > BOX_WIDTH_PX for left, right in itertools.pairwise(boxes))


def test_a_source_stands_right_above_who_needs_it():
    boxes = {b.node_id: b for b in lay_out({"a": [], "b": ["a"], "late": [], "c": ["b", "late"]}).boxes}

    assert boxes["late"].y == boxes["b"].y


def test_nodes_that_are_not_there_are_left_out():
    assert [box.node_id for box in lay_out({"a": ["gone"]}).boxes] == ["a"]


def test_a_circle_is_refused():
    with pytest.raises(graphlib.CycleError):
        lay_out({"a": ["b"], "b": ["a"]})


def test_nothing_makes_an_empty_drawing():
    assert lay_out({}).boxes == ()

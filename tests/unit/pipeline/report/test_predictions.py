import pytest

from slipway.components.model_gate.prediction_counts import PredictionCounts as Counted
from slipway.pipeline.report.page import _environment as page_environment
from slipway.pipeline.report.predictions import SIDE_PX, predictions


def told(*rows):
    counted = Counted()
    for label, prediction in rows:
        counted.add(label, prediction)
    return counted.to_json()


def points(text):
    return [tuple(map(float, point.split(","))) for point in text.split()]


BINARY = told(([0.0], [0.1]), ([1.0], [0.4]), ([0.0], [0.6]), ([1.0], [0.9]))


def test_the_roc_curve_goes_from_corner_to_corner_by_way_of_the_counts():
    roc = points(predictions({"candidate": BINARY}).binary.roc.points)

    half = SIDE_PX / 2
    assert roc == [(0, SIDE_PX), (0, half), (half, half), (half, 0), (SIDE_PX, 0)]


def test_precision_is_drawn_over_recall_from_the_surest_answer_on():
    curve = points(predictions({"candidate": BINARY}).binary.precision_recall.points)

    half = SIDE_PX / 2
    assert curve[0] == (half, 0)
    assert curve[-1] == (SIDE_PX, half)


def test_a_threshold_counts_what_lies_at_it_as_a_yes():
    found = predictions({"candidate": told(([1.0], [0.5]), ([0.0], [0.5]), ([0.0], [0.49]))}).binary.even

    counts = (found.true_positives, found.false_positives, found.false_negatives, found.true_negatives)
    assert counts == (1, 1, 0, 1)
    assert (found.precision, found.recall, found.false_positive_rate) == (0.5, 1.0, 0.5)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.f1 == pytest.approx(2 / 3)


def test_calibration_compares_the_mean_answer_with_the_share_of_ones():
    rows = [([float(n < 8)], [0.75]) for n in range(10)] + [([0.0], [0.25])] * 10
    found = predictions({"candidate": told(*rows)}).binary

    assert [(dot.rows, dot.prediction, dot.label) for dot in found.calibration] == [
        (10, 0.25, 0.0),
        (10, 0.75, 0.8),
    ]
    assert found.calibration_error == pytest.approx((10 * 0.25 + 10 * 0.05) / 20)


def test_one_class_alone_has_no_curve_and_no_division_by_zero():
    found = predictions({"candidate": told(([0.0], [0.1]), ([0.0], [0.9]))}).binary

    assert (found.roc.points, found.precision_recall.points, found.even.recall) == ("", "", None)


def test_the_last_blessed_model_is_drawn_beside_it():
    found = predictions({"candidate": BINARY, "baseline": BINARY})

    assert found.has_baseline
    assert found.binary.roc.before == found.binary.roc.points
    assert not predictions({"candidate": BINARY}).binary.roc.before


def test_the_matrix_stands_by_label_and_the_worst_class_comes_first():
    rows = [([0.0], [0.9, 0.1, 0.0])] * 3 + [([2.0], [0.1, 0.8, 0.1])] * 2 + [([2.0], [0.0, 0.1, 0.9])]
    found = predictions({"candidate": told(*rows)}).classes

    assert (found.labels, found.matrix) == (("0", "1", "2"), ((3, 0, 0), (0, 0, 0), (0, 2, 1)))
    assert [(c.label, c.rows, c.recall, c.precision) for c in found.classes] == [
        ("2", 3, pytest.approx(1 / 3), 1.0),
        ("0", 3, 1.0, 1.0),
    ]
    assert found.mistakes == (("2", "1", 2),)


def test_labels_that_are_no_class_are_counted_beside_the_matrix():
    rows = [([0.0], [0.9, 0.1])] * 3 + [([-1.0], [0.1, 0.9])] * 2
    found = predictions({"candidate": told(*rows)})

    assert (found.rows, found.no_class, found.classes.matrix) == (3, 2, ((3,),))
    assert "<p>3 rows of the eval split; 2 more have a label that is none of the classes.</p>" in page(found)


def page(found):
    return str(page_environment().get_template("predictions.html.j2").module.predictions_part(found))


def test_page_says_where_metrics_are_weighted_and_its_counts_are_not():
    plain, weighted = (predictions({"candidate": BINARY}, has_weights=each) for each in (False, True))

    assert "whatever its weight" not in page(plain)
    assert "<p>4 rows of the eval split. Each counts once here, whatever its weight; the metrics" in page(
        weighted
    )


def test_classes_are_called_by_their_names_in_the_order_of_their_numbers():
    rows = [([0.0], [0.9, 0.1, 0.0])] * 3 + [([2.0], [0.1, 0.8, 0.1])] * 2
    counted = {"candidate": told(*rows)}

    found = predictions(counted, ["zebra", "ape", "cat"]).classes

    assert (found.labels, found.matrix) == (("zebra", "ape", "cat"), ((3, 0, 0), (0, 0, 0), (0, 2, 0)))
    assert [each.label for each in found.classes] == ["cat", "zebra"]
    assert found.mistakes == (("cat", "ape", 2),)


def test_names_for_some_of_the_classes_only_name_none():
    counted = {"candidate": told(([2.0], [0.1, 0.8, 0.1]))}

    assert predictions(counted, ["zebra", "ape"]).classes.labels == ("1", "2")


def test_the_two_classes_of_a_probability_have_names_where_there_are_two():
    assert predictions({"candidate": BINARY}, ["stays", "leaves"]).binary.names == ("stays", "leaves")
    assert predictions({"candidate": BINARY}, ["a", "b", "c"]).binary.names == ("0", "1")
    assert predictions({"candidate": BINARY}).binary.names == ("0", "1")


def test_many_classes_are_listed_and_not_drawn():
    rows = [([float(n)], [float(n == k) for k in range(120)]) for n in range(120)]
    found = predictions({"candidate": told(*rows)}).classes

    assert (found.labels, len(found.classes), found.left_out) == ((), 100, 20)


def test_rare_mistakes_beyond_the_listed_cells_count_for_the_classes_nevertheless():
    """The 80 classes of 8,000 rows: half of each is right, and each of its mistakes occurs once or twice."""
    rows = [
        ([float(k)], [float(wanted == (k if n % 2 else (k + 1 + n) % 80)) for wanted in range(80)])
        for k in range(80)
        for n in range(100)
    ]
    counted = told(*rows)
    assert counted["left_out"] > 700
    found = predictions({"candidate": counted}).classes

    assert {(each.rows, each.recall) for each in found.classes} == {(100, 0.5)}
    assert {each.precision for each in found.classes} == {0.5}
    assert (len(found.classes), found.left_out) == (80, 0)


def test_numbers_are_compared_in_ten_groups_of_as_many_rows():
    rows = [([2.0 * n + (-1) ** n], [2.0 * n]) for n in range(1000)]
    found = predictions({"candidate": told(*rows)}).numbers

    assert len(found.groups) == 10
    assert all(dot.rows == 100 for dot in found.groups)
    assert found.groups[0].prediction == pytest.approx(99.0)
    assert found.groups[0].label == pytest.approx(99.0)
    assert all(0 <= dot.high <= dot.y <= dot.low <= SIDE_PX for dot in found.groups)


def test_the_spread_of_labels_far_from_zero_is_that_of_the_labels():
    rows = [([1e6 + (-1) ** n], [1e6 + n]) for n in range(1000)]
    found = predictions({"candidate": told(*rows)}).numbers

    assert [dot.spread for dot in found.groups] == pytest.approx([1.0] * 10)


def test_a_verdict_without_answers_shows_none():
    assert predictions({}) is None
    assert predictions({"candidate": {}}) is None

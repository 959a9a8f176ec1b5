import pytest

from slipway.pipeline.report.trend import training_trend, trend


def test_one_value_is_no_trend():
    assert trend("auc", [0.5]) is None
    assert trend("auc", [0.5, float("nan")]) is None


def test_a_long_course_keeps_its_ends_and_few_points():
    found = trend("loss", list(range(1000)))

    points = found.points.split()
    assert len(points) <= 61
    assert (points[0], points[-1]) == ("0.0,40.0", "200.0,0.0")
    assert (found.first, found.last, found.count) == ("0", "999", 1000)


def test_as_many_runs_as_the_index_takes_are_all_shown():
    assert len(trend("loss", list(range(60))).points.split()) == 60


@pytest.mark.parametrize(
    ("names", "drawn"),
    [
        (("loss", "val_auc", "val_loss"), "val_loss"),
        (("loss", "auc", "val_auc", "val_mse"), "val_auc"),
        (("auc", "loss"), "loss"),
        (("auc", "mse"), "auc"),
    ],
)
def test_the_loss_on_the_eval_split_is_drawn_or_what_comes_closest(names, drawn):
    found = training_trend([{"epoch": at, **dict.fromkeys(names, at / 2)} for at in (1, 2)])
    assert found.name == drawn


def test_a_name_with_one_number_gives_way_to_the_next():
    epochs = [{"val_loss": 0.5, "loss": 1.0}, {"val_loss": None, "loss": 2.0}, "no record"]
    assert training_trend(epochs).name == "loss"


@pytest.mark.parametrize("epochs", [None, 7, "text", [], [3], {"epoch": 1}, [{"loss": True}, {"loss": "x"}]])
def test_what_is_no_history_has_no_course(epochs):
    assert training_trend(epochs) is None

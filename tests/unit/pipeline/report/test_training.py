import json
from pathlib import Path

from slipway.pipeline.report.training import curves, training
from slipway.pipeline.runs.history import History


def test_train_and_eval_of_a_metric_share_a_picture():
    (curve,) = curves(
        [{"epoch": 1, "loss": 1.0, "val_loss": 0.5}, {"epoch": 2, "loss": 0.0, "val_loss": 0.5}]
    )

    assert (curve.train, curve.evaluated) == ("0.0,0.0 300.0,120.0", "0.0,60.0 300.0,60.0")
    assert curve.last == "train 0, eval 0.5"


def test_what_is_not_finite_is_left_out_of_a_curve():
    (curve,) = curves([{"epoch": 1, "loss": float("nan")}, {"epoch": 2, "loss": 3.0}])

    assert curve.train == "0.0,0.0"[:4] + "120.0"
    assert curves([{"epoch": 1, "loss": float("inf")}]) == ()


def test_a_long_training_keeps_its_last_point():
    (curve,) = curves([{"epoch": n, "loss": float(n)} for n in range(1, 1002)])

    assert len(curve.train.split()) <= 402
    assert curve.train.endswith("300.0,0.0")


def test_an_epoch_whose_metric_is_no_number_says_so(trained, tmp_path):
    """Rather than nothing, as of one that was not measured."""
    epochs = [{"epoch": 1, "loss": 0.25, "val_loss": None}, {"epoch": 2, "loss": 0.5}]
    (tmp_path / "history.json").write_text(json.dumps({"epochs": epochs}), encoding="utf-8")
    assert training(trained).epochs[1:] == (("1", "0.25", "no number"), ("2", "0.5", ""))


def test_the_files_of_the_trainer_and_the_tuner_are_read(trained):
    found = training(trained)

    assert found.facts == (("steps", "1,200"),)
    assert found.hyperparameters == (
        ("model", "m.build"),
        ("learning_rate", "0.1 (tuned)"),
        ("units", "[8]"),
    )
    assert found.trials == (("trial_id", "score"), ("2", "0.9"), ("0", "0.8"))
    assert found.epochs == (("epoch", "loss"), ("1", "0.25"))


def test_a_run_without_training_tells_nothing(tmp_path):
    assert training(History(tmp_path).new_run("taxi")) is None


def test_what_device_and_processor_were_used_is_reported(trained):
    [at] = {item["uri"] for items in trained.nodes[0].outputs.values() for item in items}
    measured = {
        "speed": {"input_waiting_share": 0.25},
        "time": {"useful_s": 4.0, "wall_s": 10.0},
        "machine": {"cpu_s": 15.0},
    }
    Path(at, "result.json").write_text(json.dumps(measured), encoding="utf-8")

    facts = dict(training(trained).facts)

    assert facts["device busy"] == "30% of the time: steps without input wait"
    assert facts["CPU cores used"] == "1.5 on average"

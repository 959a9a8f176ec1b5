"""The training job checks itself and survives its file."""

import dataclasses
import hashlib
import json

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings

FARE = Feature(name="fare", dtype="float32")
LABEL = Feature(name="big_tip", dtype="int64")


@pytest.fixture
def job():
    return TrainingJob(
        train_files=("a.gz", "b.gz"),
        eval_files=("c.gz",),
        features=(FARE, LABEL),
        label="big_tip",
        model="workloads.taxi.model.build_model",
        hyperparameters={"hidden_units": [8, 4]},
        batch_size=32,
        epochs=2,
        seed=7,
        output_dir="out",
    )


def test_job_comes_back_from_its_file_as_it_went(job, tmp_path):
    file = tmp_path / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    assert TrainingJob.load(file) == job


def test_identity_is_what_is_trained_and_not_where_its_files_go(job):
    moved = dataclasses.replace(job, output_dir="other", checkpoint_dir="kept")
    assert moved.identity == job.identity
    for change in ({"seed": 8}, {"epochs": 3}, {"train_files": ("d.gz",)}, {"hyperparameters": {}}):
        assert dataclasses.replace(job, **change).identity != job.identity


def test_another_metric_of_the_best_epoch_makes_another_training(job):
    saved_more_often = dataclasses.replace(job, checkpoint=CheckpointSettings(steps=5, keep=9))
    assert saved_more_often.identity == job.identity
    by_area = dataclasses.replace(job, checkpoint=CheckpointSettings(best_metric="val_auc", best_goal="max"))
    wrong_way = dataclasses.replace(
        job, checkpoint=CheckpointSettings(best_metric="val_auc", best_goal="min")
    )
    assert len({by_area.identity, wrong_way.identity, job.identity}) == 3


def test_groups_make_another_training_where_they_decide_what_is_held_out(job):
    stops = dataclasses.replace(job, early_stopping=EarlyStoppingSettings(patience=1))
    for one, is_the_same in ((job, True), (stops, False)):
        assert (dataclasses.replace(one, group="person").identity == one.identity) is is_the_same


def test_identity_and_file_know_pretrained_weights_only_where_there_are_some(job):
    values = json.loads(job.to_json())
    for name in ("output_dir", "checkpoint_dir", "log_dir", "checkpoint", "watch", "group", "pretrained"):
        del values[name]
    assert job.identity == hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    one, moved, other = (
        dataclasses.replace(job, pretrained={"path": path, "sha256": digest}).identity
        for path, digest in (("a.h5", "1"), ("gs://b/a.h5", "1"), ("a.h5", "2"))
    )
    assert one == moved
    assert len({one, other, job.identity}) == 3
    older = {
        name: value
        for name, value in json.loads(job.to_json()).items()
        if name not in ("pretrained", "group")
    }
    assert TrainingJob.from_json(json.dumps(older)) == job


def test_inputs_are_all_features_but_the_label(job):
    assert job.inputs == {"fare": FARE}


def test_the_weight_is_no_input(job):
    weight = Feature(name="w", dtype="float32")
    weighed = dataclasses.replace(job, features=(FARE, LABEL, weight), weight="w", class_weights={"1": 2.0})
    assert weighed.inputs == {"fare": FARE}
    assert weighed.identity != job.identity
    assert TrainingJob.from_json(weighed.to_json()) == weighed


def test_several_outputs_have_a_label_each_and_none_is_an_input(job):
    other = Feature(name="cost", dtype="float32")
    heads = dataclasses.replace(job, features=(FARE, LABEL, other), label={"tip": "big_tip", "cost": "cost"})
    assert heads.labels == ("big_tip", "cost")
    assert heads.inputs == {"fare": FARE}
    assert TrainingJob.from_json(heads.to_json()) == heads
    with pytest.raises(ComponentError, match="label 'tips' is not a transformed feature"):
        dataclasses.replace(heads, label={"tip": "tips", "cost": "cost"})
    with pytest.raises(ComponentError, match="class weights need one label, but there are 2"):
        dataclasses.replace(heads, class_weights="balanced")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weight": "w"}, "weight 'w' is not a transformed feature; there are big_tip, fare"),
        ({"weight": "big_tip"}, "the label 'big_tip' cannot be the weight as well"),
        (
            {"features": (FARE, LABEL, Feature(name="w", dtype="float32", shape=(2,))), "weight": "w"},
            r"weight 'w' is float32 \[2\], but must be one number per row",
        ),
        ({"features": (FARE, LABEL), "weight": "fare"}, "has only the label 'big_tip' and no feature"),
        ({"class_weights": "equal"}, r"class_weights \('equal'\) is a mapping or balanced"),
        ({"class_weights": {"01": 2.0}}, "class_weights names '01', which is not a code of a class"),
        ({"batch_size": 0}, r"batch_size \(0\) must be a whole number >= 1"),
        ({"batch_size": "32"}, r"batch_size \('32'\)"),
        ({"batch_size": True}, r"batch_size \(True\)"),
        ({"epochs": 1.5}, r"epochs \(1.5\)"),
        ({"seed": -1}, r"seed \(-1\) must be a whole number >= 0"),
        ({"train_files": ()}, "no train_files"),
        ({"label": "tips"}, "'tips' is not a transformed feature; there are big_tip, fare"),
        ({"features": (FARE, FARE, LABEL)}, "a feature twice"),
        ({"features": (LABEL,)}, "only the label 'big_tip'"),
        ({"model": "build_model"}, "not the dotted path"),
        ({"model": "workloads/taxi/model.py"}, "not the dotted path"),
    ],
)
def test_wrong_value_is_refused_with_name_and_rule(job, change, words):
    with pytest.raises(ComponentError, match=words):
        dataclasses.replace(job, **change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_sise": 1}, "batch_sise"),
        ({"train_files": "a.gz"}, "train_files of the training job must be a list"),
        ({"model": 3}, "model of the training job must be a string"),
        ({"checkpoint_dir": 3}, "checkpoint_dir of the training job must be a string or null, not 3"),
        ({"hyperparameters": []}, "hyperparameters of the training job must be a mapping"),
        ({"features": [3]}, "a feature has the keys"),
    ],
)
def test_wrong_file_is_refused_by_key(job, change, words):
    with pytest.raises(ComponentError, match=words):
        TrainingJob.from_json(json.dumps({**json.loads(job.to_json()), **change}))


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"seed": 1'])
def test_text_that_is_no_job_is_refused(text):
    with pytest.raises(ComponentError, match="the training job"):
        TrainingJob.from_json(text)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ComponentError, match="there is no training job"):
        TrainingJob.load(tmp_path / "job.json")

"""The workload file: what it means, how profiles and --set change it, and how each mistake is told."""

# ruff: noqa: E501  (in the tables of messages, one mistake a line reads best)

import difflib
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from counted import lines_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from small_workload import MINIMAL

from slipway.components.model_gate.threshold_rules import Threshold
from slipway.pipeline.config import WorkloadConfig, load_workload, read_assignments
from slipway.pipeline.config.json_schema import workload_schema
from slipway.pipeline.errors import ConfigError

ROOT = Path(__file__).resolve().parents[4]
TAXI = Path("workloads/taxi/workload.yaml")


# What is right.


def test_every_key_but_the_required_ones_has_a_default(load):
    config = load()
    assert config.description == ""
    assert config.data.format == "csv"
    assert config.data.split == {"train": 2, "eval": 1}
    assert config.schema_path is None
    assert config.transform.label == "tips"
    assert (config.train.batch_size, config.train.epochs, config.train.seed) == (256, 10, 42)
    assert config.train.hyperparameters == {}
    assert config.evaluate.metrics == ("auc", "binary_accuracy")
    assert (config.evaluate.slices, config.evaluate.thresholds) == ((), {})
    assert config.push.destination is None
    assert (config.nodes, config.metadata, config.profiles) == ({}, None, {})


def test_every_value_is_read_with_its_type(load, root):
    config = load(
        MINIMAL
        + """\
  hyperparameters: {rate: 0.1, units: [64, 32], name: x, deep: true, none: null}
  epochs: 3
schema: trips.pbtxt
evaluate:
  metrics: [auc]
  slices: [[hour], [hour, day]]
  thresholds: {auc: {min: 0, max: 1, max_drop: 0.5}}
push: {destination: out/models, sign: {key: signing.pem}, verify_key: signing.pub}
nodes: {Trainer: {retries: 2, timeout_s: 60, backoff_s: 0.5}, Pusher: {}}
metadata: {type: mysql, database: mlmd, user: me, password_env: DB_PASSWORD}
"""
    )
    assert config.train.hyperparameters == {
        "rate": 0.1, "units": [64, 32], "name": "x", "deep": True, "none": None,
    }  # fmt: skip
    assert config.schema_path == str(root / "trips.pbtxt")
    assert config.push.destination == str(root / "out/models")
    assert config.push.sign.key == str(root / "signing.pem")
    assert config.push.verify_key == str(root / "signing.pub")
    assert config.evaluate.slices == (("hour",), ("hour", "day"))
    assert config.evaluate.thresholds["auc"] == Threshold(min=0.0, max=1.0, max_drop=0.5)
    assert config.nodes["Trainer"].model_dump() == {"retries": 2, "timeout_s": 60.0, "backoff_s": 0.5}
    assert config.nodes["Pusher"].model_dump() == {"retries": 0, "timeout_s": None, "backoff_s": 1.0}
    assert (config.metadata.host, config.metadata.port) == ("localhost", 3306)


def test_configuration_is_frozen(load):
    config = load()
    with pytest.raises(ValidationError, match="frozen"):
        config.train.epochs = 3


def test_configuration_survives_the_way_to_another_process(load):
    config = load(MINIMAL + "schema: trips.pbtxt\nprofiles: {dev: {train: {epochs: 1}}}\n", profile="dev")
    again = WorkloadConfig.model_validate_json(config.model_dump_json())
    assert again.model_dump() == config.model_dump()
    assert "profiles" not in config.model_dump()


def test_splits_of_other_kinds_survive_the_way_to_another_process(load):
    text = MINIMAL.replace("label: tips", "label: tips\n  split_by: {files: {train: a, eval: b}}")
    config = load(text)
    assert WorkloadConfig.model_validate_json(config.model_dump_json()).model_dump() == config.model_dump()


def test_paths_may_lie_in_the_home_folder(load, root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    paths = ["data.source=~/in.csv", "push.destination=~/models", "schema=~/trips.pbtxt"]
    config = load(sets=paths)
    assert config.data.source == str(root / "in.csv")
    assert config.push.destination == str(root / "models")
    assert config.schema_path == str(root / "trips.pbtxt")
    (root / "statistics/Split-train").mkdir(parents=True)
    gate = load(sets=["data_gate.reference=~/statistics"]).data_gate
    assert gate.reference == str(root / "statistics")


@pytest.mark.parametrize("folder", ["s3://bucket/a//b", "az://bucket/./a", "s3://bucket/a/.."])
def test_destination_in_a_store_has_no_empty_or_dotted_parts(load, folder):
    with pytest.raises(ConfigError, match=r"push\.destination.* must not hold '//', '\.' or '\.\.'"):
        load(sets=[f"push.destination={folder}"])


def test_destination_with_a_scheme_stays_as_written(load):
    assert load(sets=["push.destination=gs://bucket/models"]).push.destination == "gs://bucket/models"


def test_workload_of_the_taxi_is_right_in_every_profile():
    for profile in (None, "dev", "prod"):
        config = load_workload(TAXI, profile=profile, root=ROOT)
        assert config.name == "taxi"
        assert config.evaluate.thresholds["auc"].min == 0.94
        assert config.train.epochs == (1 if profile == "dev" else load_workload(TAXI, root=ROOT).train.epochs)


# Profiles and --set.


def test_profile_lies_over_the_file_key_by_key_and_set_over_both(load):
    text = MINIMAL + "  epochs: 5\n  batch_size: 8\nprofiles: {dev: {train: {epochs: 1, seed: 7}}}\n"
    config = load(text, profile="dev", sets=["train.seed=9", "train.seed=10"])
    assert (config.train.epochs, config.train.batch_size, config.train.seed) == (1, 8, 10)
    assert load(text).train.epochs == 5


def test_empty_mapping_and_empty_list_empty_what_lies_below(load):
    text = (
        MINIMAL
        + "  hyperparameters: {units: 3}\nevaluate: {slices: [[a]], thresholds: {auc: {min: 0.5}}}\n"
        + "profiles: {dev: {evaluate: {thresholds: {}}}}\n"
    )
    config = load(text, sets=["train.hyperparameters={}", "evaluate.slices=[]", "evaluate={thresholds: {}}"])
    assert (config.train.hyperparameters, config.evaluate.slices, config.evaluate.thresholds) == ({}, (), {})
    assert load(text, profile="dev").evaluate.thresholds == {}
    rate = ["train.hyperparameters={}", "train.hyperparameters.rate=1"]
    assert load(text, sets=rate).train.hyperparameters == {"rate": 1}
    assert load(text, sets=["train.hyperparameters={rate: 1}"]).train.hyperparameters == {
        "units": 3,
        "rate": 1,
    }


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("train.batch_size=512", {"train": {"batch_size": 512}}),
        (
            "train.hyperparameters.learning_rate=1e-3",
            {"train": {"hyperparameters": {"learning_rate": 0.001}}},
        ),
        ("train.hyperparameters={units: [1, 2]}", {"train": {"hyperparameters": {"units": [1, 2]}}}),
        ("train.hyperparameters.formula=a=b", {"train": {"hyperparameters": {"formula": "a=b"}}}),
        ("evaluate.metrics=[auc]", {"evaluate": {"metrics": ["auc"]}}),
        ("description=null", None),
        ("description='1.10'", {"description": "1.10"}),
        ("data.source=gs://b/x.csv", {"data": {"source": "gs://b/x.csv"}}),
        ("name=other", {"name": "other"}),
        (" train.epochs = 2 ", {"train": {"epochs": 2}}),
        ("nodes.Trainer.retries=1", {"nodes": {"Trainer": {"retries": 1}}}),
    ],
)
def test_set_value_is_yaml(load, lines_of, assignment, value):
    if value is None:  # a text key refuses null
        assert lines_of(sets=[assignment]) == ["--set description=null: must be text, found nothing"]
        return
    dumped = load(sets=[assignment]).model_dump(mode="json")

    def assert_within(part, whole):
        for key, expected in part.items():
            if isinstance(expected, dict):
                assert_within(expected, whole[key])
            else:
                assert whole[key] == expected

    assert_within(value, dumped)


def test_lists_and_scalars_are_replaced_not_merged(load):
    text = (
        MINIMAL
        + "evaluate: {metrics: [auc, recall], slices: [[a], [b]]}\nprofiles: {p: {evaluate: {slices: [[c]]}}}\n"
    )
    assert load(text, profile="p").evaluate.slices == (("c",),)


@pytest.mark.parametrize(
    ("assignment", "line"),
    [
        ("train.batch_size=0", "--set train.batch_size=0: must be at least 1; the default is 256"),
        ("train.batch_siz=1", "--set train.batch_siz: unknown key; nearest: batch_size"),
        ("batch_size=1", "--set batch_size: unknown key; nearest: train.batch_size"),
        ("epochs=1", "--set epochs: unknown key; nearest: train.epochs"),
        (
            "train.profile_steps=20:10",
            "--set train.profile_steps='20:10': counts from 1, and the first step comes",
        ),
        ("train.profile_steps=0:5", "--set train.profile_steps='0:5': counts from 1"),
        ("train.epochs=no", "--set train.epochs='no': must be a whole number, found text; the default is 10"),
        ("train=3", "--set train=3: must be keys with values, such as {key: value}, found a number"),
        ("data.label=1.10", "--set data.label=1.10: must be text, found a number; put it in quotes"),
        (
            "data.split={train: 1}",
            "--set data.split: must hold 'eval'; write for example {train: 2, eval: 1}",
        ),
        ("data.split=[1]", "--set data.split: must be keys with values, such as {key: value}, found a list"),
        ("data.split.train=0", "--set data.split.train=0: must be at least 1"),
        (
            "train.batch_size",
            "--set train.batch_size: must be key=value, for example --set train.batch_size=512",
        ),
        ("=1", "--set =1: must be key=value"),
        ("train..seed=1", "--set train..seed=1: must be key=value"),
        ("\x1b[31m", "--set '\\x1b[31m': must be key=value"),
        ("\x1b[31m=1", "--set '\\x1b[31m': unknown key; there are: name, description"),
        (
            "train.epochs=[1",
            "--set train.epochs:1: the list in [ ] is not closed, or a comma is missing (column 1)",
        ),
        ("train.epochs=!!int 1", "--set train.epochs:1: text that begins with ! is a tag"),
        ("profiles.x={}", "--set profiles.x: profiles cannot be set; choose one with --profile NAME"),
        (
            "train.checkpoint={best_metric: val_auc, best_goal: min, serve_best: true}",
            "--set train.checkpoint: train.checkpoint.best_goal = 'min': must be max: of val_auc higher is better",
        ),
        (
            "train.checkpoint.best_goal=max",
            "--set train.checkpoint.best_goal='max': must be min: of val_loss",
        ),
        (
            "tune={metric: val_auc, goal: min, search: {rate: {choices: [1, 2]}}}",
            "--set tune: tune.goal = 'min': must be max: of val_auc higher is better",
        ),
        (
            "train.checkpoint={best_metric: val_gain}",
            "--set train.checkpoint: train.checkpoint.best_goal: must be max or min: nothing is known of",
        ),
        (
            "tune={metric: val_gain, search: {rate: {choices: [1, 2]}}}",
            "--set tune: tune.goal: must be max or min: nothing is known of val_gain; write max where",
        ),
        ("data.columns=[a, b]", "--set data.columns: does not name the label, 'tips'; add it"),
        ("train.model_parallel=2", "train.model_parallel is 2, but train.layout divides no variable along"),
        ("train.layout={'(': [null]}", "train.layout: '(' is not a regular expression"),
        (
            "train.input.bucket_by_length={words: [9, 5]}",
            "train.input.bucket_by_length.words ([9, 5]) must list whole numbers",
        ),
        (
            "train.model=work.model.bild",
            "--set train.model='work.model.bild': work/model.py has no function bild; nearest: build",
        ),
        ("schema=none.pbtxt", "--set schema='none.pbtxt': does not exist; null infers it from the data"),
        (
            "data_gate.reference=last_bless",
            "--set data_gate.reference='last_bless': must be last_blessed, last_passed, none, span N or a folder, "
            "and there is no such folder",
        ),
        (
            "data_gate.reference=work",
            "--set data_gate.reference='work': must be last_blessed, last_passed, none, span N or a folder, and "
            "that folder holds no statistics (Split-*/FeatureStats.pb)",
        ),
        (
            "data_gate.serving_statistics=nowhere",
            "--set data_gate.serving_statistics='nowhere': there is no such folder",
        ),
        (
            "metadata.type=mysql",
            '--set metadata.type: metadata.database: missing; add for example "database: mlmd"',
        ),
    ],
)
def test_wrong_set_is_reported_as_it_was_given(lines_of, assignment, line):
    found = lines_of(sets=[assignment])
    assert any(each.startswith(line) for each in found), found


def test_secret_pasted_into_set_or_file_is_not_repeated(lines_of):
    for key in ("password", "password_env"):
        text = MINIMAL + f"metadata: {{type: mysql, database: d, user: u, {key}: hunter2!}}\n"
        for lines in (lines_of(text), lines_of(sets=[f"metadata.{key}=hunter2!"])):
            assert f"metadata.{key}" in "\n".join(lines)
            assert "hunter2" not in "\n".join(lines)
        with pytest.raises(ConfigError) as caught:
            read_assignments([f"metadata.{key}=*hunter2"])
        assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("text", ["data.span=", "data.span= "])
def test_set_without_a_value_as_from_an_unset_variable_is_refused_not_taken_for_the_default(text):
    with pytest.raises(
        ConfigError, match=r"--set data.span: has no value; is a variable of the shell unset\?"
    ):
        read_assignments([text])


@pytest.mark.parametrize("value", ["/mnt/disk #1", "#1", "[a, b] # c"])
def test_set_whose_end_yaml_would_leave_out_as_a_comment_is_refused(value):
    with pytest.raises(
        ConfigError, match=r"--set data\.source: what follows the # would be left out"
    ) as caught:
        read_assignments([f"data.source={value}"])
    assert caught.value.hint.endswith(f"""--set 'data.source="{value}"'""")


@pytest.mark.parametrize("value", ["/mnt/disk#1", '"/mnt/disk #1"', "['a #1', \"b #2\"]"])
def test_set_with_a_sign_that_begins_no_comment_is_taken(value):
    read_assignments([f"data.source={value}"])


def test_number_is_shown_as_it_was_written_but_not_all_of_a_long_one(lines_of):
    [line] = lines_of(sets=[f"train.epochs=1.10{'0' * 9000}"])
    assert line.startswith("--set train.epochs=1.100")
    assert len(line) < 200


@pytest.mark.parametrize(
    "setting",
    [
        "notify={webhook_env: 'https://hooks.example/hunter2'}",
        "notify='https://hooks.example/hunter2'",
        "notify={when: ['HTTPS://hooks.example/hunter2'], command: [x]}",
        "notify={webhook: 'https://hooks.example/hunter2'}",
        "track.mlflow='https://user:hunter2@mlflow.example'",
        "track.mlflow='user:hunter2@mlflow.example'",
        "track.mlflow='ftp://user:hunter2@mlflow.example'",
        "cloud.kubeflow={token_env: 'hunter2!', endpoint: 'https://kubeflow.example'}",
    ],
)
def test_address_of_a_webhook_is_not_repeated_wherever_it_is_pasted(lines_of, setting):
    lines = lines_of(sets=[setting])
    assert lines
    assert "hunter2" not in "\n".join(lines)


def test_long_value_with_many_colons_is_refused_and_not_searched_for_a_password_forever(lines_of):
    [line] = lines_of(MINIMAL + f"notify: {'59:' * 300_000}59\n")
    assert "notify" in line


def test_unknown_profile_is_reported_with_those_there_are(lines_of):
    text = MINIMAL + "profiles: {dev: {}, prod: {}}\n"
    assert lines_of(text, profile="de") == ["w.yaml: no profile 'de'; there are: 'dev', 'prod'"]
    assert lines_of(profile="dev") == ["w.yaml: no profile 'dev'; there are: none"]


def test_mistake_in_a_profile_is_reported_with_its_line_chosen_or_not(lines_of):
    text = MINIMAL + "profiles:\n  dev:\n    train:\n      epoch: 1\n  prod: {train: {epochs: 0}}\n"
    expected = [
        "w.yaml: 2 problems",
        "w.yaml:12: train.epoch: unknown key; nearest: epochs",
        "w.yaml:13: train.epochs = 0: must be at least 1; the default is 10",
    ]
    assert lines_of(text) == expected
    assert lines_of(text, profile="dev") == expected
    assert lines_of(text, profile="prod") == expected


@pytest.mark.parametrize(
    ("sets", "line"),
    [
        (
            ["train.class_weights=balance"],
            "train.class_weights='balance': must be balanced, or keys with values, such as {yes: 3}",
        ),
        (
            ["train.class_weights={a: 2}"],
            "train.class_weights.a = 2: no code of a class (0, 1, ... below 10,000); transform.classes",
        ),
        (["train.class_weights={01: 2}"], "train.class_weights.01 = 2: no code of a class (0, 1, ..."),
        (["train.class_weights={-1: 2}"], "train.class_weights.-1 = 2: no code of a class (0, 1, ..."),
        (["train.class_weights={10000: 2}"], "train.class_weights.10000 = 2: no code of a class (0, 1, ..."),
        (["train.class_weights={'\u0661': 2}"], "= 2: no code of a class (0, 1, ..."),
        (
            ["transform.classes=[cat, dog]", "train.class_weights={dgo: 2}"],
            "train.class_weights.dgo = 2: no class of transform.classes; nearest: dog",
        ),
        (
            ["transform.classes=[cat, dog]", "train.class_weights={'7': 2}"],
            "train.class_weights.7 = 2: no class of transform.classes; there are: cat, dog",
        ),
        (["train.class_weights={'1': -2}"], "train.class_weights.1 = -2: must be above 0"),
        (
            ["train.pretrained={path: gs://bucket/w.h5}"],
            "train.pretrained.sha256: missing: a run does not read an object to see whether it changed",
        ),
        *(
            (
                [f"train.pretrained={{path: '{address}', sha256: '{'0' * 64}'}}"],
                "must be a path, or gs://BUCKET/",
            )
            for address in (
                "https://user:token@host/w.h5",
                "https://host/w.h5?X-Goog-Signature=1",
                "gs://user:token@bucket/w.h5",
                "gs://bucket/w.h5?key=1",
                "gs://bucket",
            )
        ),
        (["train.pretrained={path: gone.h5}"], "train.pretrained.path = 'gone.h5': there is no such file"),
        (["train.pretrained={path: gs://b/w, sha256: AB}"], "a SHA-256: 64 of the letters 0-9 and a-f"),
        (["transform.weight=tips"], "transform.weight='tips': is transform.label as well"),
        (["transform.pass_through=[id, id]"], "transform.pass_through.1 = 'id': given twice; keep one"),
        (
            ["transform.pass_through=[tips]"],
            "transform.pass_through.0 = 'tips': is the label, which is not an input anyway",
        ),
    ],
)
def test_weights_and_columns_that_pass_through_are_checked(lines_of, sets, line):
    [told] = lines_of(sets=sets)
    assert line in told


HEADS = "transform.label={tip: big_tip, cost: cost}"
QUANTILES = "evaluate.quantiles=[0.1, 0.9]"
GROUPS = ["transform.group=query", "data.split_by={key: query}"]
TOPICS = "transform.label=[sport, music]"


@pytest.mark.parametrize(
    ("sets", "line"),
    [
        (
            [HEADS],
            "evaluate.metrics.0: must be OUTPUT/METRIC, with one of tip, cost: transform.label names 2 outputs",
        ),
        (["evaluate.metrics=[tip/auc]"], "must be the metric's name alone: transform.label names one output"),
        (
            [HEADS, "evaluate.metrics=[tip/auc]"],
            "has none of the output cost, so that output would not be evaluated; add one",
        ),
        ([HEADS, "evaluate.metrics=[tip/auk, cost/auc]"], "no metric of that name; nearest: auc"),
        ([HEADS, "evaluate.metrics=[tip/a/b]"], "all lower case; for several outputs OUTPUT/METRIC"),
        (["transform.label={tip: big_tip}"], "names one output; write the column's name alone"),
        (["transform.label={tip: x, cost: x}"], "names a column twice; every output has a label of its own"),
        (["transform.label=3"], "must be a column's name, one for each output"),
        (["transform.label=[a]"], "names one column; write it alone"),
        (["transform.label=[a, b, a]"], "given twice; keep one"),
        (["transform.label=[a, B]"], "must be a letter, then letters, digits and _, all lower case: metrics"),
        (
            [TOPICS, "transform.classes=[a, b]"],
            "transform.label names several; write a list for each output that has names: {sport: [a, b]}",
        ),
        (
            ["transform.classes={tip: [a, b]}"],
            "transform.classes: names classes by output, but transform.label names one output; write the list",
        ),
        (
            [HEADS, "transform.classes={top: [a, b]}"],
            "transform.classes.top: no output of transform.label; nearest: tip",
        ),
        (
            [HEADS, "transform.classes={payment: [a, b]}"],
            "transform.classes.payment: no output of transform.label; there are: tip, cost",
        ),
        ([HEADS, "transform.classes={'': [a, b]}"], "no output of transform.label; there are: tip, cost"),
        (
            [HEADS, "transform.classes={tip: [a, b, a]}"],
            "transform.classes.tip.2 = 'a': given twice; each code needs a name of its own",
        ),
        (
            ["transform.classes=[a, b, a]"],
            "transform.classes.2 = 'a': given twice; each code needs a name of its own",
        ),
        (
            [HEADS, "transform.classes={tip: [a]}"],
            "transform.classes.tip: must name the classes of this output, two or more, or be left out",
        ),
        ([HEADS, "transform.classes={tip: yes}"], "transform.classes.tip = 'yes': must be a list, such as"),
        (
            [HEADS, "transform.classes={tip: [a, 1]}"],
            "transform.classes.tip.1 = 1: must be text, found a number",
        ),
        (["transform.classes=cat"], "transform.classes='cat': must be a list, such as [a, b]"),
        ([TOPICS, "train.class_weights=balanced"], "needs one label, but transform.label names several"),
        (
            [TOPICS, "evaluate.metrics=[auc, art/auc]"],
            "must be OUTPUT/METRIC, with one of sport, music",
        ),
        ([TOPICS, "evaluate.metrics=[sport/auc]"], "has none of the output music"),
        ([TOPICS, "beam.stock_nodes=[Evaluator]"], "has no mean of auc over the labels; name it for each"),
        (
            [TOPICS, QUANTILES, "evaluate.metrics=[pinball_loss]"],
            "is for one number, but transform.label names several labels",
        ),
        ([QUANTILES, "beam.stock_nodes=[Evaluator]"], "has no pinball_loss, or let our Evaluator run"),
        ([QUANTILES, "evaluate.baselines=[logistic]"], "predict one number, but evaluate.quantiles names"),
        ([QUANTILES, "evaluate.metrics=[auc]"], "needs a metric of quantiles, such as pinball_loss"),
        (["evaluate.quantiles=[0.9, 0.1]"], "must rise, each above the one before"),
        (["evaluate.quantiles=[0.9]", "evaluate.metrics=[interval_width]"], "needs two quantiles or more"),
        (
            [QUANTILES, "train.hyperparameters={quantiles: [0.05, 0.95]}"],
            "differs from train.hyperparameters.quantiles, [0.05, 0.95]",
        ),
        (
            ["evaluate.metrics=[ndcg_10]"],
            "ranks rows within groups; name the group's column in transform.group",
        ),
        (["transform.group=query"], "would have rows in both splits; write data.split_by: {key: query}"),
        (["transform.group=tips"], "is the label or the weight as well"),
        ([*GROUPS, "data.columns=[fare, tips]"], "is not in data.columns, but the Evaluator reads it"),
        (
            [QUANTILES, "evaluate.thresholds={interval_coverage: {max_drop: 0.1, max_rise: 0.1}}"],
            "has max_drop (higher is better) and max_rise (lower is better); keep one",
        ),
        (
            [*GROUPS, "evaluate.metrics=[ndcg]", "beam.stock_nodes=[Evaluator]"],
            "has no ndcg, or let our Evaluator run",
        ),
        (["evaluate.metrics=[pinball_loss]"], "is of quantiles; name them in evaluate.quantiles"),
        (["transform.label={tip: 3, cost: x}"], "transform.label.tip = 3: must be text, found a number"),
        (
            [HEADS, "transform.classes=[a, b]"],
            "names the classes of one label, but transform.label names several",
        ),
        ([HEADS, "train.class_weights=balanced"], "needs one label, but transform.label names several"),
        ([HEADS, "train.exports=[litert]"], "need a model with one output"),
    ],
)
def test_several_outputs_are_checked_against_what_is_asked_of_them(lines_of, sets, line):
    if HEADS in sets and not any("metrics" in each for each in sets) and len(sets) > 1:
        sets = [*sets, "evaluate.metrics=[tip/auc, cost/mean_squared_error]"]
    assert line in lines_of(sets=sets)[0]


def test_classes_of_several_outputs_are_named_by_output(load):
    metrics = "evaluate.metrics=[tip/auc, cost/mean_squared_error]"
    config = load(sets=[HEADS, metrics, "transform.classes={tip: [small, big]}"])
    assert config.transform.classes_by_output == {"tip": ("small", "big")}
    assert WorkloadConfig.model_validate_json(config.model_dump_json()) == config
    one, none = load(sets=["transform.classes=[no, yes]"]), load()
    assert one.transform.classes_by_output == {"": ("no", "yes")}
    assert WorkloadConfig.model_validate_json(one.model_dump_json()) == one
    assert none.transform.classes_by_output == {}


def test_of_several_labels_in_one_a_metric_is_of_each_and_their_mean(load):
    limits = "evaluate.thresholds={auc: {min: 0.8}, sport/auc: {min: 0.9}}"
    config = load(sets=[TOPICS, "evaluate.metrics=[music/recall, auc]", limits])
    assert config.transform.labels == config.transform.outputs == ("sport", "music")
    assert config.evaluate.metrics == ("music/recall", "auc", "sport/auc", "music/auc")
    assert load(sets=[TOPICS]).evaluate.metrics[:3] == ("auc", "binary_accuracy", "sport/auc")


def test_quantiles_that_are_trained_and_evaluated_alike_are_right(load):
    config = load(sets=[QUANTILES, "train.hyperparameters={quantiles: [0.1, 0.9]}"])
    assert config.evaluate.quantiles == (0.1, 0.9)


def test_metrics_of_quantiles_that_are_not_named_are_those_that_there_are(load):
    several = ("pinball_loss", "interval_coverage", "quantile_crossing")
    assert load(sets=[QUANTILES]).evaluate.metrics == several
    assert load(sets=["evaluate.quantiles=[0.9]"]).evaluate.metrics == ("pinball_loss",)


def test_a_group_is_no_input_and_its_rows_stay_together(load):
    config = load(sets=[*GROUPS, "evaluate.metrics=[ndcg_10, mean_reciprocal_rank]", "transform.weight=w"])
    assert config.transform.apart == ("query", "w")
    assert config.transform.copied == ("query",), "predictions are of groups, too"


def test_thresholds_are_of_the_metrics_of_outputs(load):
    limits = "evaluate.thresholds={cost/mean_squared_error: {max: 3}, tip/auc: {min: 0.9}}"
    config = load(sets=[HEADS, "evaluate.metrics=[tip/auc, cost/mean_squared_error]", limits])
    assert (config.transform.labels, config.transform.outputs) == (("big_tip", "cost"), ("tip", "cost"))
    assert config.evaluate.thresholds["tip/auc"] == Threshold(min=0.9)


OWN = "evaluate.own_metrics={gain: {class: tensorflow_model_analysis.metrics.MeanLabel}}"


def test_a_metric_of_one_s_own_has_a_name_that_thresholds_know(load):
    config = load(sets=[OWN, "evaluate.thresholds={gain: {min: 3, max_drop: 1}, auc: {min: 0.5}}"])
    own = config.evaluate.own_metrics["gain"]
    assert (own.class_path, own.settings) == ("tensorflow_model_analysis.metrics.MeanLabel", {})
    assert config.evaluate.thresholds["gain"].min == 3
    assert config.evaluate.metrics == ("auc", "binary_accuracy")


@pytest.mark.parametrize(
    ("sets", "line"),
    [
        (["evaluate.own_metrics.gain.class=no_such_module.Gain"], "no module no_such_module is here or"),
        (
            ["evaluate.own_metrics.gain.class=Gain"],
            "must be a dotted path, module and class, such as workloads",
        ),
        (
            ["evaluate.own_metrics={auc: {class: a.B}}"],
            "is a metric of evaluate.metrics; choose another name",
        ),
        (["evaluate.own_metrics={label_x: {class: a.B}}"], "is a name that the evaluation uses"),
        (["evaluate.own_metrics={answers: {class: a.B}}"], "is a name that the evaluation uses"),
        (["evaluate.own_metrics.gain.settings.name=x"], "is the key above; remove it"),
        (
            ["evaluate.own_metrics.b={class: other.MeanLabel}"],
            "has the class name of tensorflow_model_analysis",
        ),
        (["evaluate.own_metrics={x/gain: {class: a.B}}"], "must be the metric's name alone"),
        (
            ["evaluate.thresholds={gain: {max_drop: 1, max_rise: 1}}"],
            "and max_rise (lower is better); keep one",
        ),
        (
            ["evaluate.thresholds={gian: {min: 1}}"],
            "not one of evaluate.metrics or evaluate.own_metrics (auc, binary_accuracy, gain)",
        ),
    ],
)
def test_what_is_wrong_with_a_metric_of_one_s_own_is_reported(lines_of, sets, line):
    assert line in "\n".join(lines_of(sets=[OWN, *sets]))


def test_weight_is_one_of_the_columns_that_are_no_input(load):
    config = load(sets=["transform.weight=w", "transform.pass_through=[id, w]"])
    assert config.transform.apart == ("id", "w")
    assert load(sets=["transform.weight=w"]).transform.apart == ("w",)


@pytest.mark.parametrize("key", ["name", "profiles"])
def test_profile_cannot_hold_name_or_profiles(lines_of, key):
    value = "x" if key == "name" else "{}"
    assert lines_of(MINIMAL + f"profiles:\n  dev:\n    {key}: {value}\n") == [
        f"w.yaml:11: profiles.dev.{key}"
        + (" = 'x'" if key == "name" else "")
        + ": is not allowed in a profile; remove it there"
    ]


def test_mistake_of_the_file_is_reported_once_however_many_profiles(lines_of):
    text = (
        MINIMAL.replace("  label: tips\n", "")
        + "profiles: {a: {data: {format: csv}}, b: {train: {seed: 1}}}\n"
    )
    assert lines_of(text) == ['w.yaml:2: data.label: missing; add for example "label: tips"']


# What is wrong: one mistake each, in the house form.


@pytest.mark.parametrize(
    ("addition", "line"),
    [
        ("batch_size: 1", "w.yaml:9: batch_size: unknown key; nearest: train.batch_size"),
        ("evalute: {}", "w.yaml:9: evalute: unknown key; nearest: evaluate"),
        ("zzz: 1", "w.yaml:9: zzz: unknown key; there are: name, description, data, schema, statistics"),
        ("'a b\\u202e': 1", "w.yaml:9: 'a b\\\\u202e': unknown key"),
        ("  batch_size: 0", "w.yaml:9: train.batch_size = 0: must be at least 1; the default is 256"),
        ("  batch_size: -5", "w.yaml:9: train.batch_size = -5: must be at least 1"),
        ("  batch_size: 1.5", "w.yaml:9: train.batch_size = 1.5: must be a whole number, found a number"),
        ("  batch_size: '64'", "w.yaml:9: train.batch_size = '64': must be a whole number, found text"),
        ("  batch_size: true", "w.yaml:9: train.batch_size = true: must be a whole number, found true or false"),
        ("  batch_size: null", "w.yaml:9: train.batch_size = null: must be a whole number, found nothing"),
        ("  batch_size:", "w.yaml:9: train.batch_size = null: must be a whole number, found nothing"),
        ("  batch_size: [1]", "w.yaml:9: train.batch_size: must be a whole number, found a list"),
        ("  batch_size: {a: 1}", "w.yaml:9: train.batch_size: must be a whole number, found keys with values"),
        ("  batch_size: 1_000", "w.yaml:9: train.batch_size = '1_000': must be a whole number, found text"),
        ("  epochs: 0", "w.yaml:9: train.epochs = 0: must be at least 1; the default is 10"),
        ("  epochs: no", "w.yaml:9: train.epochs = 'no': must be a whole number, found text"),
        ("  seed: -1", "w.yaml:9: train.seed = -1: must be at least 0; the default is 42"),
        ("  seed: 2147483648", "w.yaml:9: train.seed = 2147483648: must be below 2147483648"),
        ("  hyperparameters: [1]", "w.yaml:9: train.hyperparameters: must be keys with values, such as {key: value}, found a list"),
        ("description: 1.10", "w.yaml:9: description = 1.10: must be text, found a number; put it in quotes"),
        ("description: true", "w.yaml:9: description = true: must be text, found true or false; put it in quotes"),
        ("schema: 1", "w.yaml:9: schema = 1: must be text, found a number; put it in quotes"),
        ("schema: trip.pbtxt", "w.yaml:9: schema = 'trip.pbtxt': does not exist; null infers it from the data"),
        ("schema: ''", "w.yaml:9: schema = '': must not be empty"),
        ("evaluate: {metrics: auc}", "w.yaml:9: evaluate.metrics = 'auc': must be a list, such as [a, b], found text"),
        ("evaluate: {metrics: []}", "w.yaml:9: evaluate.metrics: must not be empty"),
        ("evaluate: {metrics: [AUC]}", "w.yaml:9: evaluate.metrics.0 = 'AUC': must be a letter, then letters"),
        ("evaluate: {metrics: [auc, auc]}", "w.yaml:9: evaluate.metrics.1 = 'auc': given twice; keep one"),
        ("evaluate: {slices: [hour]}", "w.yaml:9: evaluate.slices.0 = 'hour': must be a list, such as [a, b], found text"),
        ("evaluate: {slices: [[]]}", "w.yaml:9: evaluate.slices.0: must not be empty"),
        ("evaluate: {slices: [[1]]}", "w.yaml:9: evaluate.slices.0.0 = 1: must be text, found a number; put it in quotes"),
        ("evaluate: {slices: [[a], [a]]}", "w.yaml:9: evaluate.slices.1: given twice; keep one"),
        ("evaluate: {thresholds: {acc: {min: 1}}}", "w.yaml:9: evaluate.thresholds.acc: not one of evaluate.metrics (auc, binary_accuracy); add it there"),
        ("evaluate: {thresholds: {auc: {min: 1, max: 0}}}", "w.yaml:9: evaluate.thresholds.auc: min (1.0) is above max (0.0); no value can pass"),
        ("evaluate: {thresholds: {auc: {min: 1.5}}}", "w.yaml:9: evaluate.thresholds.auc.min = 1.5: must be at most 1: no model's auc is higher, and none would be blessed"),
        ("evaluate: {slice_thresholds: {all: {auc: {min: 1.5}}}}", "w.yaml:9: evaluate.slice_thresholds.all.auc.min = 1.5: must be at most 1"),
        ("evaluate: {thresholds: {auc: {}}}", "w.yaml:9: evaluate.thresholds.auc: sets no bound; give min, max, max_drop or max_rise"),
        ("evaluate: {metrics: [acu]}", "w.yaml:9: evaluate.metrics.0 = 'acu': no metric of that name; nearest: auc"),
        ("evaluate: {metrics: [qqqq]}", "w.yaml:9: evaluate.metrics.0 = 'qqqq': no metric of that name; there are: accuracy, auc"),
        ("evaluate: {metrics: [mean_absolute_error], thresholds: {mean_absolute_error: {max_drop: 1}}}", "w.yaml:9: evaluate.thresholds.mean_absolute_error.max_drop = 1: of mean_absolute_error lower is better; use max_rise"),
        ("evaluate: {thresholds: {auc: {max_rise: 1}}}", "w.yaml:9: evaluate.thresholds.auc.max_rise = 1: of auc higher is better; use max_drop"),
        ("evaluate: {thresholds: {auc: {min: 0.9, confidence: 0.5}}}", "w.yaml:9: evaluate.thresholds.auc.confidence = 0.5: must be above 0.5"),
        ("evaluate: {slice_thresholds: {hour: {auc: {min: 0.9}}}}", "w.yaml:9: evaluate.slice_thresholds.hour: not a slice of evaluate.slices; there are: all"),
        ("evaluate: {slices: [[hour]], slice_thresholds: {day=3: {auc: {min: 0.9}}}}", "w.yaml:9: evaluate.slice_thresholds.'day=3': not a slice of evaluate.slices; there are: all, hour, hour=VALUE"),
        ("evaluate: {slices: [[hour]], slice_thresholds: {hour=3: {loss: {min: 0.9}}}}", "w.yaml:9: evaluate.slice_thresholds.'hour=3'.loss: not one of evaluate.metrics"),
        ("evaluate: {slices: [[pay, hour]], slice_thresholds: {'hour=3, day=2': {auc: {min: 0.9}}}}", "w.yaml:9: evaluate.slice_thresholds.'hour=3, day=2': not a slice of evaluate.slices; there are: all, hour, pay, hour=VALUE, pay=VALUE"),
        ("evaluate: {slices: [[pay, hour]], slice_thresholds: {'pay, hour': {auc: {min: 0.9}}, 'hour, pay': {auc: {min: 0.8}}}}", "w.yaml:9: evaluate.slice_thresholds.'hour, pay': given twice, with its columns in another order"),
        ("evaluate: {slices: [[pay, hour]], slice_thresholds: {'pay=x, hour=1, hour=2': {auc: {min: 0.9}}}}", "w.yaml:9: evaluate.slice_thresholds.'pay=x, hour=1, hour=2': may mean hour=\"1, hour=2\", pay=x or hour=2, pay=\"x, hour=1\"; write it as one of these"),
        ("evaluate: {slices: [[overall]]}", "w.yaml:9: evaluate.slices.0: overall has a meaning of its own in limits; give the column another name"),
        ("evaluate: {min_slice_rows: 0}", "w.yaml:9: evaluate.min_slice_rows = 0: must be at least 1; the default is 100"),
        ("evaluate: {beat_trivial: some}", "w.yaml:9: evaluate.beat_trivial = 'some': must be 'one', 'all' or 'none'"),
        ("evaluate: {thresholds: {auc: 0.9}}", "w.yaml:9: evaluate.thresholds.auc = 0.9: must be keys with values"),
        ("evaluate: {thresholds: {auc: {max_drop: -1}}}", "w.yaml:9: evaluate.thresholds.auc.max_drop = -1: must be at least 0"),
        ("evaluate: {thresholds: {auc: {mn: 1}}}", "w.yaml:9: evaluate.thresholds.auc.mn: unknown key; nearest: min"),
        ("push: {destination: 5}", "w.yaml:9: push.destination = 5: must be text"),
        ("push: {sign: {}}", "w.yaml:9: push.sign.key: name the private key by exactly one of key and key_env"),
        ("push: {sign: {key: a.pem, key_env: KEY}}", "w.yaml:9: push.sign.key = 'a.pem': name the private key by exactly one of key and key_env"),
        ("push: {zeal: 5}", "w.yaml:9: push.zeal: unknown key; there are: destination"),
        ("nodes: {Trainer: {retries: -1}}", "w.yaml:9: nodes.Trainer.retries = -1: must be at least 0; the default is 0"),
        ("nodes: {Trainer: {timeout_s: 0}}", "w.yaml:9: nodes.Trainer.timeout_s = 0: must be above 0"),
        ("nodes: {Trainer: {backoff_s: x}}", "w.yaml:9: nodes.Trainer.backoff_s = 'x': must be a number, found text; the default is 1.0"),
        ("nodes: {Trainer: {retry: 1}}", "w.yaml:9: nodes.Trainer.retry: unknown key; nearest: retries"),
        ("nodes: {'../x': {}}", "w.yaml:9: nodes.'../x': the key must be a node id"),
        ("metadata: {type: oracle, database: d, user: u}", "w.yaml:9: metadata.type = 'oracle': must be 'postgresql' or 'mysql'"),
        ("metadata: {type: mysql, database: d, user: u, port: 0}", "w.yaml:9: metadata.port = 0: must be at least 1"),
        ("metadata: {type: mysql, database: d, user: u, port: 70000}", "w.yaml:9: metadata.port = 70000: must be at most 65535"),
        ("metadata: {type: mysql, user: u}", 'w.yaml:9: metadata.database: missing; add for example "database: mlmd"'),
        ("metadata: sqlite", "w.yaml:9: metadata = 'sqlite': must be keys with values"),
        ("profiles: {Dev: {}}", "w.yaml:9: profiles.Dev: the key must be a letter, then letters, digits, - and _"),
        ("profiles: {dev: }", "w.yaml:9: profiles.dev = null: must be keys with values, such as {key: value}, found nothing"),
        ("profiles: [dev]", "w.yaml:9: profiles: must be keys with values, such as {key: value}, found a list"),
        ("profiles: dev", "w.yaml:9: profiles = 'dev': must be keys with values"),
    ],
)  # fmt: skip
def test_wrong_key_or_value_is_reported_with_line_value_rule_and_nearest(lines_of, addition, line):
    found = lines_of(MINIMAL + addition + "\n")
    assert len(found) == 1
    assert found[0].startswith(line), found[0]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("name: toy", "name: Toy", "w.yaml:1: name = 'Toy': must be a letter, then letters, digits, - and _, all lower case and at most 63"),
        ("name: toy", "name: ../../etc", "w.yaml:1: name = '../../etc': must be a letter"),
        ("name: toy", "name: " + "x" * 64, "w.yaml:1: name = 'xxx"),
        ("name: toy", 'name: "toy\\n"', "w.yaml:1: name = 'toy\\n': must be a letter"),
        ("name: toy", "name: 1", "w.yaml:1: name = 1: must be text, found a number; put it in quotes"),
        ("name: toy\n", "", 'w.yaml: name: missing; add for example "name: taxi"'),
        ("  label: tips\n", "", 'w.yaml:2: data.label: missing; add for example "label: tips"'),
        ("  label: tips\n", "  label: ''\n", "w.yaml:4: data.label = '': must not be empty"),
        ("  source: data/trips.csv\n", "", 'w.yaml:2: data.source: missing; add for example "source: data/trips.csv"'),
        ("  label: tips", "  label: tips\n  format: cvs", "w.yaml:5: data.format = 'cvs': must be 'csv', 'jsonl', 'parquet', 'tfrecord', 'npz', 'images', 'sql' or 'bigquery'"),
        ("  label: tips", "  label: tips\n  max_bad_share: 2", "w.yaml:5: data.max_bad_share = 2: must be at most 1"),
        ("  label: tips", "  label: tips\n  delimiter: ';;'", "w.yaml:5: data.delimiter = ';;': must be one ASCII character"),
        ("  label: tips", "  label: tips\n  delimiter: é", "w.yaml:5: data.delimiter = 'é': must be one ASCII character"),
        ("  label: tips", "  label: tips\n  encoding: utf8000", "w.yaml:5: data.encoding = 'utf8000': not a text encoding that Python knows"),
        ("  label: tips", "  label: tips\n  columns: [a, a]", "w.yaml:5: data.columns.1 = 'a': given twice; keep one"),
        ("  label: tips", "  label: tips\n  delimiter: '\"'", "w.yaml:5: data.delimiter = '\"': is also the quote; set data.quote to another one, or to null"),
        ("  label: tips", "  label: tips\n  split: {train: 9223372036854775807, eval: 1}", "w.yaml:5: data.split.train = 9223372036854775807: must be at most 1000000"),
        ("  label: tips", "  label: tips\n  types: {zip: string}", "w.yaml:5: data.types.zip = 'string': must be 'int', 'float' or 'text'"),
        ("  label: tips", "  label: tips\n  format: npz\n  types: {zip: text}", "w.yaml:6: data.types: only the columns of csv, jsonl, parquet and sql have types"),
        ("  label: tips", "  label: tips\n  query: SELECT 1", "w.yaml:5: data.query = 'SELECT 1': only the formats sql and bigquery have a query; set data.format"),
        ("  label: tips", "  label: tips\n  format: bigquery", 'w.yaml:2: data.query: missing; add for example "query: SELECT * FROM'),
        ("  label: tips", "  label: tips\n  format: bigquery\n  query: SELECT 1", "w.yaml:3: data.source = 'data/trips.csv': has no meaning for the format bigquery; remove this key"),
        ("  source: data/trips.csv\n  label: tips", "  label: tips\n  format: bigquery\n  query: SELECT 1\n  delimiter: ';'", "w.yaml:6: data.delimiter = ';': has no meaning for the format bigquery"),
        ("  source: data/trips.csv\n  label: tips", "  label: tips\n  format: bigquery\n  query: SELECT 1\n  split_by: {files: {train: a, eval: b}}", "w.yaml:6: data.split_by: a query's rows are split by hash or by key only"),
        ("  label: tips", "  label: tips\n  split_by: {}", "w.yaml:5: data.split_by: must hold exactly one of key, time, row, files and parts"),
        ("  label: tips", "  label: tips\n  split_by: {key: a, time: b}", "w.yaml:5: data.split_by: must hold exactly one of"),
        ("  label: tips", "  label: tips\n  dates: {day: '%Y-%d'}", "w.yaml:5: data.dates.day = '%Y-%d': must have a year (%Y or %y)"),
        ("  label: tips", "  label: tips\n  dates: {day: '%d.%m.%Y'}\n  numbers: {day: {}}", "w.yaml:5: data.dates.day = '%d.%m.%Y': is one of data.numbers as well"),
        ("  label: tips", "  label: tips\n  numbers: {a: {clock: true, unit: h}}", "w.yaml:5: data.numbers.a.clock = true: cannot be combined with decimal, thousands or unit"),
        ("  label: tips", "  label: tips\n  numbers: {a: {decimal: ',', thousands: ','}}", "w.yaml:5: data.numbers.a.thousands = ',': is ',', as decimal is"),
        ("  label: tips", "  label: tips\n  format: tfrecord\n  unlabelled_rows: leave_out", "w.yaml:6: data.unlabelled_rows = 'leave_out': only rows of csv, jsonl, parquet and sql can be left out"),
        ("  label: tips", "  label: image\n  format: images", "w.yaml:4: data.label = 'image': is the image itself; name the feature of its class otherwise, as label"),
        ("  label: tips", "  label: image\n  format: npz", "w.yaml:4: data.label = 'image': is the image itself"),
        ("  label: tips", "  label: tips\n  split_by: {row: false}", "w.yaml:5: data.split_by.row = "),
        ("  label: tips", "  label: tips\n  split_by: {time: b}", "w.yaml:5: data.split_by: time and starts belong together"),
        ("  label: tips", "  label: tips\n  split_by: {time: b, starts: {train: 1, eval: 2}}", "w.yaml:5: data.split_by.starts: must hold null for the earliest split"),
        ("  label: tips", "  label: tips\n  split_by: {files: {train: a}}", "w.yaml:5: data.split_by.files: must hold 'eval'"),
        ("  label: tips", "  label: tips\n  split_by: {parts: {train: a, eval: b}}", "w.yaml:5: data.split_by.parts: only files of the format npz have parts"),
        ("  label: tips", "  label: tips\n  split: {train: 1, eval: 1}\n  split_by: {files: {train: a, eval: b}}", "w.yaml:5: data.split: split_by names the splits already"),
        ("  label: tips", "  label: tips\n  split: {train: 2}", "w.yaml:5: data.split: must hold 'eval'; write for example {train: 2, eval: 1}"),
        ("  label: tips", "  label: tips\n  split: {train: 2, eval: 0}", "w.yaml:5: data.split.eval = 0: must be at least 1"),
        ("  label: tips", "  label: tips\n  split: {train: 2, eval: 1, Test-1: 1}", "w.yaml:5: data.split.Test-1 = 1: the key must be a letter"),
        ("work.features.preprocess", "preprocess", "w.yaml:6: transform.preprocessing_fn = 'preprocess': must be a dotted path"),
        ("work.features.preprocess", "work/features.py", "w.yaml:6: transform.preprocessing_fn = 'work/features.py': must be a dotted path"),
        ("work.features.preprocess", "work.feature.preprocess", "w.yaml:6: transform.preprocessing_fn = 'work.feature.preprocess': there is no module work.feature; nearest: features"),
        ("work.model.build", "work.model.bild", "w.yaml:8: train.model = 'work.model.bild': work/model.py has no function bild; nearest: build"),
    ],
)  # fmt: skip
def test_wrong_or_missing_required_key_is_reported_with_what_to_write(lines_of, old, new, line):
    found = lines_of(MINIMAL.replace(old, new))
    assert len(found) == 1
    assert found[0].startswith(line), found[0]


def test_a_hyperparameter_that_the_model_does_not_take_is_reported_where_it_stands(root, lines_of):
    text = (
        "def fit(units, rate=1): ...\ndef build(features, hyperparameters): return fit(**hyperparameters)\n"
    )
    (root / "work/model.py").write_text(text)
    lines = lines_of(
        f"{MINIMAL}  hyperparameters: {{units: 3, unitz: 4}}\ntune:\n  search: {{raet: {{low: 1, high: 2}}}}\n",
        sets=["train.hyperparameters.ratee=3"],
    )
    unknown = "work.model.build takes no hyperparameter of that name"
    assert lines == [
        "w.yaml: 3 problems",
        f"w.yaml:9: train.hyperparameters.unitz = 4: {unknown}; nearest: units",
        f"w.yaml:11: tune.search.raet: {unknown}; nearest: rate",
        f"--set train.hyperparameters.ratee=3: {unknown}; nearest: rate",
    ]


def test_file_without_its_sections_is_reported_with_examples(lines_of):
    assert lines_of("name: x\n") == [
        "w.yaml: 3 problems",
        'w.yaml: data: missing; add for example "data: {source: data/trips.csv, label: tips}"',
        'w.yaml: transform: missing; add for example "transform: '
        '{preprocessing_fn: workloads.taxi.preprocessing.preprocessing_fn}"',
        'w.yaml: train: missing; add for example "train: {model: workloads.taxi.model.build_model}"',
    ]


def test_all_problems_are_reported_at_once_in_the_order_of_the_file(lines_of):
    text = MINIMAL.replace("label: tips", "label: 3") + "  batch_siz: 1\n  epochs: 0\nschema: none.pbtxt\n"
    assert [line.partition(" ")[0] for line in lines_of(text, sets=["train.seed=x"])] == [
        "w.yaml:",
        "w.yaml:4:",
        "w.yaml:9:",
        "w.yaml:10:",
        "w.yaml:11:",
        "--set",
    ]


def test_at_most_ten_problems_are_listed(lines_of):
    lines = lines_of(MINIMAL + "".join(f"  wrong{i}: 1\n" for i in range(13)))
    assert (lines[0], len(lines), lines[-1]) == ("w.yaml: 13 problems", 12, "and 3 more")


def test_no_name_is_looked_for_in_place_of_a_key_that_is_only_counted(lines_of, monkeypatch):
    looked = []
    close = difflib.get_close_matches
    monkeypatch.setattr(
        difflib, "get_close_matches", lambda *args, **how: looked.append(args) or close(*args, **how)
    )
    keys = "".join(f"  batch_siz{i}: 1\n" for i in range(2000))
    lines = lines_of(MINIMAL + keys)
    assert (lines[0], lines[-1]) == ("w.yaml: 2000 problems", "and 1990 more")
    assert all(line.endswith("unknown key; nearest: batch_size") for line in lines[1:-1])
    assert len(looked) <= 20


def test_code_that_does_not_parse_is_reported_before_anything_runs(load, lines_of, root):
    (root / "work/features.py").write_text("import os\n\ndef preprocess(inputs:\n    return {}\n")
    with pytest.raises(ConfigError) as refused:
        load()
    assert refused.value.hint == "", "the schema describes keys, not code"
    assert lines_of() == [
        "w.yaml:6: transform.preprocessing_fn = 'work.features.preprocess': "
        "work/features.py:3: '(' was never closed"
    ]


# The file itself.


def test_a_count_may_have_to_be_above_what_a_share_can_be(load):
    sets = ["evaluate.metrics=[true_positives]", "evaluate.thresholds={true_positives: {min: 100}}"]
    assert load(sets=sets).evaluate.thresholds["true_positives"].min == 100


def test_a_confidence_can_be_asked_of_every_metric(load):
    text = MINIMAL + "evaluate: {metrics: [hinge], thresholds: {hinge: {max: 1, confidence: 0.9}}}\n"
    assert load(text).evaluate.thresholds["hinge"].confidence == 0.9


def test_byte_order_mark_is_no_part_of_the_first_key(load):
    assert load("\ufeff" + MINIMAL).name == "toy"


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from(
    ["name", "data", "schema", "train", "transform", "evaluate", "push", "nodes", "metadata", "profiles", "label",
     "source", "split", "thresholds", "metrics", "slices", "auc", "min", "model", "batch_size", "type", "dev"]
) | st.text(max_size=4)  # fmt: skip
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, TREES, max_size=6), st.lists(st.text(max_size=12), max_size=2))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_of_keys_and_values_is_loaded_or_refused(root, tree, sets):
    (root / "any.yaml").write_text(yaml.safe_dump({**yaml.safe_load(MINIMAL), **tree}))
    try:
        load_workload(Path("any.yaml"), sets=read_assignments(sets), root=root)
    except ConfigError as error:
        assert all(line.isprintable() for line in error.message.splitlines())  # noqa: PT017


@given(st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_loaded_or_refused(root, text):
    (root / "any.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ConfigError):
        load_workload(Path("any.yaml"), root=root)


def test_exports_that_boosted_trees_have_no_form_of_are_refused_before_they_are_grown():
    trees = "slipway.components.trainer.models.boosted_trees.build_model"
    for kind in ("litert_dynamic", "litert_int8"):
        with pytest.raises(ConfigError, match=rf"exports\.1 = '{kind}': boosted trees hold infinite"):
            load_workload(
                TAXI,
                sets=read_assignments([f"train={{model: {trees}, exports: [litert, {kind}]}}"]),
                root=ROOT,
            )
    whole = f"train={{model: {trees}, exports: [litert, keras_int8]}}"
    assert load_workload(TAXI, sets=read_assignments([whole]), root=ROOT).train.exports == (
        "litert",
        "keras_int8",
    )


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{}", "must have either choices, or low and high"),
        ("{choices: [1], low: 1}", "must have only choices, but has low"),
        ("{low: 2, high: 1}", "must have low < high; low is 2, high 1"),
        ("{low: 0, high: 1, log: true}", "must have 0 < low < high with log; low is 0, high 1"),
    ],
)
def test_search_that_the_tuner_would_refuse_is_refused_where_it_is_written(entry, words):
    with pytest.raises(ConfigError) as caught:
        load_workload(TAXI, sets=read_assignments([f"tune.search={{learning_rate: {entry}}}"]), root=ROOT)
    assert caught.value.message == f"--set tune.search: tune.search.learning_rate: {words}"


# The schema for editors.


@pytest.fixture(scope="module")
def complaints():
    """What the schema says about a workload file's text."""
    validator = jsonschema.Draft202012Validator(workload_schema())
    validator.check_schema(validator.schema)
    return lambda text: [error.message for error in validator.iter_errors(yaml.safe_load(text))]


def test_workload_of_the_taxi_passes_the_schema(complaints):
    assert complaints((ROOT / TAXI).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "addition",
    [
        "  batch_size: 0",
        "  batch_siz: 1",
        "schema: 5",
        "nodes: {'a b': {}}",
        "profiles: {dev: {trian: {}}}",
        "profiles: {dev: {train: {epochs: 0}}}",
        "profiles: {dev: {name: x}}",
    ],
)
def test_schema_refuses_what_the_loader_refuses(complaints, addition):
    assert complaints(MINIMAL) == []
    assert complaints(MINIMAL + addition) != []


# What it costs.


def test_configuration_imports_no_heavy_library():
    code = (
        "import sys, slipway.pipeline.config\n"
        "heavy = {'tensorflow', 'tfx', 'apache_beam', 'numpy', 'keras', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_taxi_workload_is_loaded_in_a_blink():
    load_workload(TAXI, root=ROOT)
    lines = lines_run(lambda: load_workload(TAXI, root=ROOT))
    assert lines < 700_000  # 512,000 measured, in a tenth of a second


@pytest.mark.parametrize("value", ["s3://b/x", "gs://b", "gs://b/", "gs:///x", "az://box", "http://host/x"])
def test_destination_that_is_no_directory_and_no_bucket_folder_is_refused(value):
    with pytest.raises(
        ConfigError, match=r"push\.destination.* must be a directory, or gs://BUCKET/FOLDER, s3:// or az://"
    ):
        load_workload(TAXI, sets=read_assignments([f"push.destination={value}"]), root=ROOT)


ENDPOINT = "push.endpoint={name: taxi, container: image}"
IN_BUCKET = "push.destination=gs://bucket/taxi"


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([ENDPOINT], r"needs push\.destination: gs://BUCKET/FOLDER"),
        ([ENDPOINT, IN_BUCKET], r"push\.endpoint.*needs cloud\.vertex\.project"),
        ([ENDPOINT, IN_BUCKET, "cloud.vertex={project: p}"], r"push\.endpoint.*needs cloud\.vertex\.region"),
        ([IN_BUCKET, "push.endpoint={name: Taxi, container: i}"], "lowercase letters"),
        ([IN_BUCKET, "push.endpoint={name: t, container: i, traffic: 101}"], "traffic"),
        ([IN_BUCKET, "push.endpoint={name: t, container: i, min_replicas: 2}"], "at least min_replicas"),
    ],
)
def test_endpoint_that_cannot_be_deployed_to_is_refused_with_what_it_needs(sets, words):
    with pytest.raises(ConfigError, match=words):
        load_workload(TAXI, sets=read_assignments(sets), root=ROOT)


def test_no_tracker_may_be_written_as_null(load):
    text = MINIMAL + "track: null\n"
    assert load(text).track.mlflow is None
    assert load(sets=["track=null"]).track.mlflow is None
    assert load(text, sets=["track.mlflow=http://127.0.0.1:1"]).track.mlflow == "http://127.0.0.1:1"

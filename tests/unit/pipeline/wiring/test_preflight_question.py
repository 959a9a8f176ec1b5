import pytest
from taxi_workload import taxi_workload

from slipway.components.parameters import from_parameter
from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring import preflight_question
from slipway.pipeline.wiring.preflight_question import (
    named_slices,
    node_settings,
    step_settings,
)


def test_a_generation_stands_for_all_its_slices_rented_or_not():
    assert [each.name for each in named_slices("v5e")] == [
        f"v5e-{chips}" for chips in (1, 4, 8, 16, 32, 64, 128, 256)
    ]
    assert [each.name for each in named_slices("v7")][:2] == ["v7-8", "v7-16"]
    assert [each.name for each in named_slices("v5p")][-1] == "v5p-512"


def test_a_slice_is_found_among_those_that_are_rented_and_the_others():
    assert named_slices("v5e-16")[0].machine["tpuTopology"] == "4x4"
    assert named_slices("v4-32")[0].topology == "2x2x4"


def test_an_unknown_slice_is_refused_with_those_that_are_near():
    with pytest.raises(ConfigError, match=r"no slice 'v5p-100' to compile for; nearest: .*v5p-") as refused:
        named_slices("v5p-100")

    assert "a generation (v2, v3, v4, v5e, v5p, v6e, v7) for all its slices" in refused.value.hint


def test_the_lengths_of_batches_are_asked_about_if_there_are_any(project):
    file = project / "workloads" / "reviews" / "workload.yaml"
    assert "bucket_by_length" not in step_settings(load_workload(file, root=project))
    bucketed = read_assignments(["train.input.bucket_by_length={words: [64]}"])
    config = load_workload(file, sets=bucketed, root=project)
    assert step_settings(config)["bucket_by_length"] == {"words": [64]}


def test_where_the_input_is_kept_is_told_if_the_workload_says_it():
    def training(*given):
        config = taxi_workload("train.tpu=v5e-16", "train.backend=jax", *given)
        return from_parameter(node_settings(config)["training"])

    assert "input_cache" not in training()  # so that nodes that ran before stay cached
    assert training("train.input.cache=file")["input_cache"] == "file"
    assert "steps_per_execution" not in training("train.steps_per_execution=1")
    assert training("train.steps_per_execution=4")["steps_per_execution"] == 4


def test_a_hyperparameter_that_only_the_search_gives_has_its_first_value():
    search = (
        "{hidden_units: {choices: [[64], [128]]}, dropout: {low: 0.1, high: 0.5}, "
        "learning_rate: {low: 1, high: 2}}"
    )
    sets = [f"tune={{search: {search}}}", "train.hyperparameters={learning_rate: 0.1}", "train.tpu=v5e-8"]
    config = taxi_workload(*sets)

    values = {"hidden_units": [64], "dropout": 0.1, "learning_rate": 0.1}
    assert step_settings(config)["hyperparameters"] == values
    assert from_parameter(node_settings(config)["training"])["searched"] == values


def test_a_node_depends_on_all_packages_beside_its_compiler(tmp_path, monkeypatch):
    for name in ("jax-0.10.2", "layers_of_mine-2"):
        (tmp_path / f".venv-tpu/lib/python3.11/site-packages/{name}.dist-info").mkdir(parents=True)
    monkeypatch.setattr(preflight_question, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(preflight_question, "find_compiler", lambda: ".venv-tpu/bin/python")

    assert preflight_question.compiler_versions() == {"jax": "0.10.2", "layers-of-mine": "2"}


@pytest.mark.parametrize(
    ("sets", "is_nowhere"),
    [
        ([], False),
        (["train.early_stopping.patience=2"], True),
        (["train.checkpoint.serve_best=true"], True),
        (["train.checkpoint.serve_best=true", "train.checkpoint.folder=gs://bucket/checkpoints"], False),
        (["train.early_stopping.patience=2", "train.checkpoint.folder=/gcs/bucket/checkpoints"], False),
        (
            [
                *("train.early_stopping.patience=2", "train.checkpoint.folder=checkpoints"),
                "cloud.root=gs://bucket/pipelines",
            ],
            True,
        ),
        # Below it a cloud run keeps checkpoints.
        (["train.early_stopping.patience=2", "cloud.root=gs://bucket/pipelines"], False),
    ],
)
def test_the_best_epoch_is_kept_nowhere_without_a_folder(sets, is_nowhere):
    config = taxi_workload("train.tpu=v5e-8", *sets)

    assert preflight_question.has_best_nowhere(config) == is_nowhere
    assert ("has_best_nowhere" in from_parameter(node_settings(config)["training"])) == is_nowhere


def test_trials_of_a_search_that_want_the_best_epoch_are_known_whatever_folder_there_is():
    tune = "tune={search: {learning_rate: {choices: [0.1, 0.01]}}, metric: val_loss, goal: min, trials: 2}"
    best = ["train.early_stopping.patience=2", "train.checkpoint.folder=gs://bucket/checkpoints"]
    for sets, expected in (([tune, *best], True), ([tune], False), (best, False)):
        config = taxi_workload("train.tpu=v5e-16", "train.backend=jax", *sets)
        assert preflight_question.has_best_of_trials(config) == expected
        assert ("has_best_of_trials" in from_parameter(node_settings(config)["training"])) == expected

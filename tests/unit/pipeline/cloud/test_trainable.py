"""What a training would refuse on the machines of a cloud run is refused before anything is sent."""

import pytest

from slipway.pipeline.cloud.trainable import require_trainable
from slipway.pipeline.config.train import TrainConfig
from slipway.pipeline.errors import ConfigError

TPU = {"kind": "tpu", "devices": 8, "where": "v5e-8"}
HOSTS = {"kind": "tpu", "devices": 16, "hosts": 4, "where": "v5e-16"}
GPUS = {"kind": "gpu", "devices": 2, "where": "2 GPUs of the Trainer's container"}


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Makes settings with a model whose module has the given code beside it."""

    def make(code="", **settings):
        name = f"cloud_model_{abs(hash(code))}"
        (tmp_path / f"{name}.py").write_text(f"def build_model(features, hyperparameters): ...\n{code}")
        return TrainConfig.model_validate({"model": f"{name}.build_model", **settings})

    monkeypatch.syspath_prepend(tmp_path)
    return make


@pytest.mark.parametrize(
    ("settings", "where", "words"),
    [
        ({"steps_per_execution": 4}, TPU, r"train\.steps_per_execution cannot be used .* or a TPU"),
        (
            {"backend": "torch", "steps_per_execution": 4},
            {**GPUS, "devices": 1},
            r"train\.steps_per_execution \(4\) must be 1 with train\.backend torch",
        ),
        ({"accumulate_steps": 2}, TPU, r"train\.accumulate_steps cannot be used"),
        ({"accumulate_steps": 2}, GPUS, r"train\.accumulate_steps cannot be used"),
        ({"xla": "always"}, GPUS, r"train\.xla cannot be used"),
        ({"batch_size": 99}, TPU, r"\(99\) must be a multiple of the 8 replicas of v5e-8"),
        ({"batch_size": 99}, GPUS, r"\(99\) must be a multiple of the 2 replicas of 2 GPUs"),
        ({"input": {"bucket_by_length": {"text": [8]}}}, TPU, "batches of one shape"),
        (
            {"model_parallel": 2, "layout": {".*": [None, "model"]}},
            TPU,
            "train.model_parallel is 2, which tensorflow does not have",
        ),
        ({"backend": "jax", "blow_up": {"trials": 2}}, HOSTS, r"blow_up\.trials \(2\) must be 0 on several"),
        (
            {"backend": "jax", "early_stopping": {"patience": 2}},
            HOSTS,
            "the 4 hosts have no folder in common",
        ),
        (
            {"backend": "jax", "checkpoint": {"serve_best": True}},
            HOSTS,
            "the 4 hosts have no folder in common",
        ),
        (
            {"backend": "jax", "model_parallel": 3, "layout": {".*": [None, "model"]}},
            TPU,
            r"train\.model_parallel \(3\) must divide the 8 devices of v5e-8",
        ),
    ],
)
def test_settings_that_the_training_refuses_are_refused(train, settings, where, words):
    with pytest.raises(ConfigError, match=words) as caught:
        require_trainable(train(**settings), **where)
    assert caught.value.hint or "must divide" in caught.value.message


def test_what_jax_and_one_host_and_a_common_folder_can_do_is_not_refused(train):
    many = {"accumulate_steps": 2, "steps_per_execution": 4, "xla": "always"}
    require_trainable(train(backend="jax", **many), **TPU)
    require_trainable(train(**many), kind="gpu", devices=1, where="a GPU")
    require_trainable(train(backend="jax", blow_up={"trials": 2}, early_stopping={"patience": 2}), **TPU)
    kept = {"checkpoint": {"folder": "gs://bucket/checkpoints"}, "early_stopping": {"patience": 2}}
    require_trainable(train(backend="jax", **kept), **HOSTS)


def test_own_loop_and_own_fit_are_known_by_the_model_s_source(train):
    loop = "def fit(model, data, context): ..."
    with pytest.raises(ConfigError, match=r"\.fit takes the steps itself .* v5e-8 would divide"):
        require_trainable(train(loop), **TPU)
    with pytest.raises(ConfigError, match=r"steps_per_execution is 4, and .* takes steps itself"):
        require_trainable(train(loop, backend="jax", steps_per_execution=4), **TPU)
    require_trainable(train(loop, backend="jax"), **TPU)
    with pytest.raises(ConfigError, match=r"train\.device is gpu, but .* fits its model by a function of"):
        require_trainable(train("def fit(model, rows, hyperparameters): ..."), **GPUS)

"""The context of a training, passed to the user's custom functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.job import TrainingJob


@dataclass(frozen=True, kw_only=True)
class TrainingContext:
    """The facts of a training.

    Attributes:
        hyperparameters: as `build_model` gets them.
        epochs: of the training, >= 1; early stopping may end it before.
        steps_per_epoch: >= 1.
        first_step: complete steps when this attempt began; 0 at the beginning.
        batch_size: examples per step, over all replicas.
        seed: `train.seed`.
        log_dir: the folder of TensorBoard's files, a path or gs://...; None: nothing is recorded.
        device: "cpu", "gpu" or "tpu".
        replicas: copies of the model, over all hosts.
        hosts: the number of machines that train together.
        host: the index of this machine, from 0; the first one writes.
        strategy: the `tf.distribute.Strategy` of several TensorFlow devices or of a TPU, else None.
        distribution: the `keras.distribution.distribution()` of JAX's devices, with its mesh, else None.
    """

    hyperparameters: Mapping[str, object]
    epochs: int
    steps_per_epoch: int
    first_step: int
    batch_size: int
    seed: int
    log_dir: str | None
    device: str
    replicas: int
    hosts: int
    host: int
    strategy: Any
    distribution: Any

    @property
    def steps(self) -> int:
        """The number of steps of the whole training."""
        return self.epochs * self.steps_per_epoch


def facts_of(
    job: TrainingJob, devices: Devices, *, steps_per_epoch: int, first_step: int
) -> dict[str, object]:
    """Return the attributes of a `TrainingContext`."""
    is_jax = keras.backend.backend() == "jax"
    return {
        "hyperparameters": dict(job.hyperparameters),
        "epochs": job.epochs,
        "steps_per_epoch": steps_per_epoch,
        "first_step": first_step,
        "batch_size": job.batch_size,
        "seed": job.seed,
        "log_dir": job.log_dir,
        "device": devices.kind,
        "replicas": devices.replicas,
        "hosts": devices.hosts.count,
        "host": devices.hosts.index,
        "strategy": devices.strategy,
        "distribution": keras.distribution.distribution() if is_jax else None,
    }

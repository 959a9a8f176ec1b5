"""Reads the Trainer's `model_run`: rebuilds the model from the job and the trained weights."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.trainer.job import JOB_FILE, WEIGHTS_FILE, TrainingJob
from slipway.components.trainer.user_model import build_model


def load_trained_model(model_run: str) -> tuple[TrainingJob, Any]:
    """Load the trained model from the Trainer's `model_run`.

    Args:
        model_run: the folder of the Trainer's `model_run`, local or gs://.

    Returns:
        The job, and the `keras.Model` on this process's backend with the trained weights.

    Raises:
        ComponentError: the job cannot be read or the user's model cannot be built.
        OSError: a file is missing.
    """
    with tempfile.TemporaryDirectory(prefix="model-run-") as folder:
        for name in (JOB_FILE, WEIGHTS_FILE):
            tf.io.gfile.copy(f"{model_run}/{name}", str(Path(folder, name)))
        job = TrainingJob.load(Path(folder, JOB_FILE))
        model = build_model(job.model, job.inputs, job.hyperparameters)
        load_weights(model, Path(folder, WEIGHTS_FILE))
    return job, model


def load_weights(model: Any, file: Path) -> None:
    """Load trained weights into a model, without the optimizer's state, which serving does not use.

    Raises:
        ComponentError: the weights belong to another model.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping variable loading for optimizer")
        try:
            model.load_weights(file)
        except ValueError as error:
            raise ComponentError(
                "the trained weights do not fit the model that build_model returns now: "
                + str(error).strip().splitlines()[-1],
                hint="build_model must return the same layers each time: no sizes from chance, time or "
                "the environment",
            ) from error

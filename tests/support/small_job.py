"""A training job of one number and one label, of which a test changes what it is about."""

from typing import Any

from slipway.components.trainer.features import Feature
from slipway.components.trainer.job import TrainingJob


def small_job(**changes: Any) -> TrainingJob:
    """Return a job whose files and model are not there: for tests that read neither, or name their own."""
    given: dict[str, Any] = {
        "train_files": ("none",),
        "eval_files": (),
        "features": (Feature(name="x", dtype="float32"), Feature(name="y", dtype="float32")),
        "label": "y",
        "model": "none.build_model",
        "hyperparameters": {},
        "batch_size": 4,
        "epochs": 1,
        "seed": 1,
        "output_dir": "none",
    }
    return TrainingJob(**{**given, **changes})

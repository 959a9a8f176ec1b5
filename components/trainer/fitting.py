"""A training job whose model brings its own `fit`: all rows at once, on the CPU, in no steps."""

import os
import time
from dataclasses import replace
from typing import Any

from components.errors import ComponentError
from components.event_lines import emit
from components.trainer.devices.opening import open_devices
from components.trainer.job import TrainingJob
from components.trainer.own_fit import Rows, own_fit
from components.trainer.result import summarise_fit
from components.trainer.user_model import build_model


def fit_at_once(job: TrainingJob) -> tuple[Any, dict[str, Any], list[dict[str, float]]]:
    """Builds the job's model and has its module fit it to the train split; on the CPU, whatever there is.

    Args:
        job: its epochs, steps and checkpoints do not apply.

    Returns:
        The model, the result, and the history: the metrics after the fit as those of one epoch.

    Raises:
        ComponentError: the settings, the data or the model do not allow it.
        Exception: what the user's code raises.
    """
    began = time.monotonic()
    # OpenMP's threads spin while they wait, and take the processor from those that they wait for where
    # anything else computes: 60 rounds over 36,000 rows took 8 to 21 s on two busy cores, and 1.0 to 1.4 s
    # with threads that sleep. It is read when scikit-learn is loaded, which Keras does.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    devices = open_devices(replace(job.compute, device="cpu"), os.environ)
    emit("devices", kind=devices.kind, words=devices.words, replicas=devices.replicas)
    import keras

    keras.utils.set_random_seed(job.seed)
    train = _rows(job, job.train_files)
    held = _rows(job, job.eval_files) if job.eval_files else None
    model = build_model(job.model, job.inputs, job.hyperparameters)
    facts = {
        "devices": devices.words,
        "input": train.words,
        "train_rows": train.count,
        "eval_rows": held.count if held else 0,
        "steps": 1,
        "epochs": 1,
        "parameters": model.count_params(),
    }
    emit("start", **facts)
    said = [""]

    def tell(words: str) -> None:
        said.append(words)
        emit("fit", message=words)

    columns = {name: values.numpy() for name, values in train.columns.items()}
    labels = columns.pop(job.label).astype("float32")
    rows = Rows(features=job.inputs, values=columns, labels=labels, seed=job.seed, tell=tell)
    fit_began = time.monotonic()
    own_fit(job.model)(model, rows, job.hyperparameters)
    fit_s = time.monotonic() - fit_began
    metrics = _metrics(model, job, train)
    if held:
        metrics |= {f"val_{name}": value for name, value in _metrics(model, job, held).items()}
    emit("epoch", epoch=1, epochs=1, metrics=metrics)
    wall_s = time.monotonic() - began
    result = facts | summarise_fit(metrics=metrics, fit_s=fit_s, wall_s=wall_s, words=said[-1])
    return model, result, [{"epoch": 1, **metrics}]


def _rows(job: TrainingJob, files: tuple[str, ...]) -> Any:
    from components.trainer.input.arrays import load_rows
    from components.trainer.input.plan import MEMORY_SHARE, available_memory_bytes

    limit = round(available_memory_bytes() * MEMORY_SHARE)
    rows = load_rows(files, job.features, limit_bytes=limit)
    if rows is None:
        raise ComponentError(
            f"the examples are more than {limit / 2**20:,.0f} MB, a quarter of the free memory, and "
            f"{job.model} is fitted to all of them at once",
            hint="train on fewer rows, or set train.model to a network, which is trained on batches",
        )
    return rows


def _metrics(model: Any, job: TrainingJob, rows: Any) -> dict[str, float]:
    from components.trainer.input.arrays import eval_batches

    batches = eval_batches(rows, label=job.label, batch_size=max(job.batch_size, 1024))
    found = model.evaluate(batches, verbose=0, return_dict=True)
    return {name: float(value) for name, value in found.items()}

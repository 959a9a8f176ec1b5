"""Models that are not trained step by step: a function `fit` beside `build_model` fits them at once.

    def fit(model: keras.Model, rows: Rows, hyperparameters: Mapping[str, Any]) -> None

The function sets the model's weights from all rows of the train split: trees, closed forms, or whatever
another library fits. It runs in the training process, on the CPU; everything after it treats the model like
any other.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.event_lines import emit
from slipway.components.trainer.buckets import KEY
from slipway.components.trainer.custom_functions import FIT, custom_function, has_custom_loop, parameters_of
from slipway.components.trainer.features import Feature
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.pretrained import local_file
from slipway.components.trainer.result import Facts, Result, summarise_fit
from slipway.components.trainer.user_model import build_model


@dataclass(frozen=True)
class Rows:
    """The rows of the train split, in the order of the files; those of weight 0 are left out.

    Attributes:
        features: the features by name, without the label.
        values: by feature, [rows, *feature.shape], of its `model_dtype`.
        labels: float32 [rows, ...].
        weights: the weight of each row, class weights included, float32 [rows]; None: equal weights.
        groups: the number of each row's group, such as a person: int64 [rows], if preprocessing_fn returns
            whole numbers by the name in transform.group; None: there are none.
        seed: for anything random in a fit: train.seed.
        tell: shows a line of progress to the user.
    """

    features: Mapping[str, Feature]
    values: Mapping[str, npt.NDArray[Any]]
    labels: npt.NDArray[Any]
    seed: int
    weights: npt.NDArray[Any] | None = None
    groups: npt.NDArray[Any] | None = None
    tell: Callable[[str], None] = lambda _: None

    def that_count(self) -> "Rows":
        """Return the rows without those of weight 0, whose label may be anything, such as NaN."""
        if self.weights is None or self.weights.all():
            return self
        counts = self.weights != 0
        return replace(
            self,
            values={name: column[counts] for name, column in self.values.items()},
            labels=self.labels[counts],
            weights=self.weights[counts],
            groups=None if self.groups is None else self.groups[counts],
        )


def has_custom_fit(dotted_path: str) -> bool:
    """Return True if the module of `build_model` defines or imports a `fit` of this kind.

    Raises:
        ComponentError: see `has_custom_loop`.
    """
    return not has_custom_loop(dotted_path) and parameters_of(dotted_path, FIT) is not None


def require_cpu(dotted_path: str, *, device: str, backend: str) -> None:
    """Reject settings that a model with its own fit cannot follow.

    Raises:
        ComponentError: the settings name a device other than the CPU, or a backend other than TensorFlow.
    """
    module = dotted_path.rpartition(".")[0]
    why = f"{module} fits its model by a function of its own"
    if device in ("tpu", "gpu"):
        raise ComponentError(
            f"train.device is {device}, but {why}, on the CPU",
            hint="set train.device to auto or cpu, or train a network: train.model names it",
        )
    if backend != "tensorflow":
        raise ComponentError(
            f"train.backend is {backend}, but {why}, with TensorFlow",
            hint="set train.backend to tensorflow",
        )


def require_no_buckets(job: TrainingJob) -> None:
    """Reject buckets, which are for batches, for a model that is fitted to all rows at once.

    Raises:
        ComponentError: the job names any.
    """
    if job.buckets.lengths:
        raise ComponentError(
            f"{KEY} cuts batches, but {job.model.rpartition('.')[0]} fits its model to all rows at once",
            hint="leave the key out, or train a network: train.model names it",
        )


def require_steps(dotted_path: str) -> None:
    """Reject a model that is fitted at once, where a training step is required.

    Raises:
        ComponentError: the model has a fit of that kind.
    """
    if has_custom_fit(dotted_path):
        raise ComponentError(
            f"{dotted_path.rpartition('.')[0]} fits its model by a function of its own, on the CPU: there is "
            "no training step to compile for a TPU",
            hint="for a TPU, set train.model to a network; `new` writes one as the profile network",
        )


def unjudged_steps(dotted_path: str) -> tuple[str, str]:
    """Return why preflight cannot judge a model's steps, and a remedy; both "" if they are Keras' own."""
    if not has_custom_loop(dotted_path):
        return "", ""
    return (
        f"{dotted_path.rpartition('.')[0]} runs its own steps in fit(model, data, context), and what is "
        "compiled here is Keras' step",
        "a train_step of the model's own class, which is compiled, if it can do the same",
    )


def fit_at_once(job: TrainingJob) -> tuple[Any, Result, list[dict[str, float]]]:
    """Build the job's model and have its module fit it to the train split, on the CPU in any case.

    Args:
        job: its epochs, steps and checkpoints do not apply.

    Returns:
        The model, the result, and the history: the metrics after the fit as those of one epoch.

    Raises:
        ComponentError: the settings, the data or the model do not allow it.
        Exception: whatever the user's code raises.
    """
    from slipway.components.trainer.devices.opening import open_devices

    if not isinstance(job.label, str):
        raise ComponentError(
            f"{job.model.rpartition('.')[0]} fits its model to one label, but transform.label names "
            f"{len(job.labels)}",
            hint="set train.model to a network with an output for each, or name one label",
        )
    began = time.monotonic()
    # OpenMP's threads spin while they wait, and so take the processor from the threads that they wait for if
    # anything else computes: 60 rounds over 36,000 rows took 8 to 21 s on two busy cores, and 1.0 to 1.4 s
    # with threads that sleep. The variable is read when scikit-learn is loaded, which Keras does.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    devices = open_devices(replace(job.compute, device="cpu"), os.environ)
    emit("devices", kind=devices.kind, words=devices.words, replicas=devices.replicas)
    import keras

    from slipway.components.trainer.input.arrays import groups_of
    from slipway.components.trainer.input.targets import Targets
    from slipway.components.trainer.input.weights import weighed

    keras.utils.set_random_seed(job.seed)
    weights = weighed(job)
    job = weights.job
    if weights.class_words:
        emit("note", message=weights.class_words)
    train = _rows(job, job.train_files)
    held = _rows(job, job.eval_files) if job.eval_files else None
    pretrained = local_file(job.pretrained, folder=Path(job.output_dir))
    model = build_model(job.model, job.inputs, job.hyperparameters, pretrained=pretrained)
    facts: Facts = {
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

    values, labels, *factors = Targets.for_training(job).split(train.columns)
    rows = Rows(
        features=job.inputs,
        values={name: column.numpy() for name, column in values.items()},
        labels=labels.numpy(),
        seed=job.seed,
        weights=factors[0].numpy() if factors else None,
        groups=groups_of(job.train_files, job.group),
        tell=tell,
    ).that_count()
    fit_began = time.monotonic()
    custom_function(job.model, FIT)(model, rows, job.hyperparameters)
    fit_s = time.monotonic() - fit_began
    metrics = _metrics(model, job, train)
    if held:
        metrics |= {f"val_{name}": value for name, value in _metrics(model, job, held).items()}
    emit("epoch", epoch=1, epochs=1, metrics=metrics)
    wall_s = time.monotonic() - began
    summary = summarise_fit(metrics=metrics, fit_s=fit_s, wall_s=wall_s, words=said[-1])
    # It is asked once its weights are saved.
    return model, {**facts, **summary, "answers": []}, [{"epoch": 1, **metrics}]


def _rows(job: TrainingJob, files: tuple[str, ...]) -> Any:
    from slipway.components.available_memory import available_memory_bytes
    from slipway.components.trainer.input.arrays import load_rows
    from slipway.components.trainer.input.plan import MEMORY_SHARE

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
    from slipway.components.trainer.input.arrays import eval_batches
    from slipway.components.trainer.input.targets import Targets, with_known_labels
    from slipway.components.trainer.loop.callback import numbers_of
    from slipway.components.trainer.loss_labels import classes_of_codes, hinged_outputs

    batches = eval_batches(rows, targets=Targets.for_evaluation(job), batch_size=max(job.batch_size, 1024))
    if job.weight:
        batches = with_known_labels(
            batches, classes_of_codes(model, job.label), hinged_outputs(model, job.label)
        )
    found = model.evaluate(batches, verbose=0, return_dict=True)
    return numbers_of(found)

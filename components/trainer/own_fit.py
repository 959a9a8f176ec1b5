"""A model that is not trained step by step: a function `fit` beside its `build_model` does it at once.

    def fit(model: keras.Model, rows: Rows, hyperparameters: Mapping[str, Any]) -> None

It sets the model's weights from all rows of the train split: trees, closed forms, what another library fits.
It runs in the training process, on the CPU; all that follows treats the model like any other.
"""

import ast
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from components.errors import ComponentError
from components.trainer.features import Feature
from components.trainer.user_model import source_file

OWN_FIT = "fit"
OwnFit = Callable[[Any, "Rows", Mapping[str, Any]], None]


@dataclass(frozen=True)
class Rows:
    """All rows of the train split, in the order of the files.

    Attributes:
        features: what there is, by name, without the label.
        values: by feature, [rows, *feature.shape], of its `model_dtype`.
        labels: float32 [rows, ...].
        seed: of what is random in a fit: train.seed.
        tell: takes a line of progress for people.
    """

    features: Mapping[str, Feature]
    values: Mapping[str, npt.NDArray[Any]]
    labels: npt.NDArray[Any]
    seed: int
    tell: Callable[[str], None] = lambda _: None


def has_own_fit(dotted_path: str) -> bool:
    """Whether the module that holds `build_model` defines, or imports, a function `fit` as well.

    It is read, not imported: a training opens its devices before anything imports Keras.

    Args:
        dotted_path: of `build_model`.
    """
    module = dotted_path.rpartition(".")[0]
    source = source_file(dotted_path)
    if source.suffix != ".py":
        return callable(getattr(importlib.import_module(module), OWN_FIT, None))
    names: set[str] = set()
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef):
            names.add(statement.name)
        elif isinstance(statement, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in statement.names)
    return OWN_FIT in names


def own_fit(dotted_path: str) -> OwnFit:
    """The function; see `has_own_fit`."""
    found: OwnFit = getattr(importlib.import_module(dotted_path.rpartition(".")[0]), OWN_FIT)
    return found


def require_cpu(dotted_path: str, *, device: str, backend: str) -> None:
    """Refuses settings that a model with its own fit cannot follow.

    Args:
        dotted_path: of `build_model`.
        device: `train.device`.
        backend: `train.backend`.

    Raises:
        ComponentError: it asks for another device than the CPU, or for another backend than TensorFlow.
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


def require_steps(dotted_path: str) -> None:
    """Refuses a model with its own fit where the step of a training is asked for.

    Args:
        dotted_path: of `build_model`.

    Raises:
        ComponentError: it has one.
    """
    if has_own_fit(dotted_path):
        raise ComponentError(
            f"{dotted_path.rpartition('.')[0]} fits its model by a function of its own, on the CPU: there is "
            "no training step to compile for a TPU",
            hint="for a TPU, set train.model to a network; `new` writes one as the profile network",
        )

"""ReferenceModels: fits scikit-learn's models on the transformed examples and scores them."""

import json
import time
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import Examples, TransformGraph

from slipway.components import progress
from slipway.components.reference_models.fit import Table, answers_of
from slipway.schemas.artifacts import ReferenceReport

MAX_ROWS = 50_000
"""Rows of each split that are read at most; a reference needs no more, and must not outlast the network."""


@component
def ReferenceModels(  # noqa: N802 (component constructors are nouns)
    examples: InputArtifact[Examples],
    transform_graph: InputArtifact[TransformGraph],
    report: OutputArtifact[ReferenceReport],
    label: Parameter[str],
    task: Parameter[str],
    metrics: Parameter[dict[str, str]],
    models: Parameter[list[str]],
    seed: Parameter[int] = 1,
    weight: Parameter[str] = "",
    pass_through: Parameter[list[str]] = None,
) -> None:
    """Fits each model on the split `train` and scores it on `eval`.

    Args:
        examples: the transformed examples.
        transform_graph: the Transform node's, for the schema of the transformed examples.
        report: gets `report.json`: model -> metric -> value, `rows` and `fit_s` beside them.
        label: the transformed feature that holds the label.
        task: `classes` or `numbers`.
        metrics: name -> Keras class of each.
        models: names that `fit.answers_of` takes.
        seed: of what is random in a fit.
        weight: the transformed feature that says how much each row counts; empty: all the same.
        pass_through: transformed columns that are no features; None: none.
    """
    transform = tft.TFTransformOutput(transform_graph.uri)
    train, held_out = (
        _read(transform, examples, split, label=label, weight=weight, apart=pass_through or ())
        for split in ("train", "eval")
    )
    found: dict[str, dict[str, float]] = {}
    for name in models:
        progress.report(f"fits {name}")
        began = time.monotonic()
        answers = answers_of(name, task, train, held_out, seed=seed)
        scores = _scores(metrics, answers, held_out.labels, held_out.weights)
        found[name] = {
            **scores,
            "rows": float(len(train.labels)),
            "fit_s": round(time.monotonic() - began, 3),
        }
    with fileio.open(f"{report.uri}/report.json", "w") as file:
        file.write(json.dumps(found, indent=2))


def _read(
    transform: Any, examples: Examples, split: str, *, label: str, weight: str, apart: Collection[str]
) -> Table:
    unused = set(apart) - {label, weight}
    spec = {name: each for name, each in transform.transformed_feature_spec().items() if name not in unused}
    folders = artifact_utils.get_split_uris([examples], split)
    files = sorted(file for folder in folders for file in fileio.glob(f"{folder}/*"))
    kind = "GZIP" if files and files[0].endswith(".gz") else ""
    records = tf.data.TFRecordDataset(files, kind).take(MAX_ROWS).batch(4096)
    batches = [tf.io.parse_example(batch, spec) for batch in records]
    columns = {
        name: np.concatenate([batch[name].numpy() for batch in batches]).reshape(
            sum(int(batch[name].shape[0]) for batch in batches), -1
        )
        for name in spec
    }
    labels = columns.pop(label)[:, 0]
    weights = columns.pop(weight)[:, 0] if weight else None
    categories = {
        column.name: int(column.int_domain.max) + 1
        for column in transform.transformed_metadata.schema.feature
        if column.name in columns and column.int_domain.is_categorical and column.int_domain.min == 0
    }
    return Table(columns, categories, labels, weights)


def _scores(
    metrics: Mapping[str, str], answers: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    import keras

    found = {}
    for name, class_name in metrics.items():
        truth = labels[:, None]
        if class_name.startswith(("Categorical", "TopKCategorical")) or (
            class_name == "AUC" and answers.shape[1] > 1
        ):
            truth = np.eye(answers.shape[1], dtype=np.float32)[labels.astype(int)]
        metric = keras.metrics.get({"class_name": class_name, "config": {"name": name}})
        metric.update_state(truth, answers, sample_weight=weights)
        found[name] = float(np.mean(keras.ops.convert_to_numpy(metric.result())))
    return found

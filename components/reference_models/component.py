"""ReferenceModels: fits scikit-learn's models on the transformed examples and scores them."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
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
from slipway.components.accelerators import keep_to_cpu
from slipway.components.errors import ComponentError
from slipway.components.even_sample import even_sample
from slipway.components.example_records import in_pieces, records
from slipway.components.reference_models.fit import (
    Table,
    Task,
    answers_of,
    label_of,
    require_labels,
    rows_that_count,
)
from slipway.components.reference_models.scoring import scores
from slipway.schemas.artifacts import ReferenceReport

MAX_ROWS = 50_000
"""The most rows to take of a split, evenly; a reference needs no more, and must not outlast the network."""
_PARSED_TOGETHER_ROWS = 4096


@component
def ReferenceModels(  # noqa: N802 (component constructors are nouns)
    examples: InputArtifact[Examples],
    transform_graph: InputArtifact[TransformGraph],
    report: OutputArtifact[ReferenceReport],
    labels: Parameter[dict[str, str]],
    tasks: Parameter[dict[str, str]],
    metrics: Parameter[dict[str, dict[str, str]]],
    models: Parameter[list[str]],
    seed: Parameter[int] = 1,
    weight: Parameter[str] = "",
    pass_through: Parameter[list[str]] = None,
    means: Parameter[dict[str, list[str]]] = None,
) -> None:
    """Fit each model on the split `train` and score it on `eval`.

    Args:
        examples: the transformed examples.
        transform_graph: the Transform node's, for the schema of the transformed examples.
        report: gets `report.json`: model -> metric -> value, and also `rows` and `fit_s`; rows of weight 0
            are left out of everything.
        labels: by output, the transformed feature that holds its label; a single output has the name "". Each
            output gets its own model.
        tasks: by output, `classes` or `numbers`.
        metrics: by output, name -> Keras class of each.
        models: names that `fit.answers_of` takes.
        weight: the transformed feature that holds the weight of a row; empty: all rows count the same.
        pass_through: transformed columns that are not features; None: none.
        means: by name, the metrics to average; None: none. As in the Evaluator, outputs for which a metric
            has no value are left out.

    Raises:
        ComponentError: a split has no rows that weigh something, or labels that cannot be learned.
    """
    keep_to_cpu()
    transform = tft.TFTransformOutput(transform_graph.uri)
    train, held_out = (
        _read(transform, examples, split, labels=labels, tasks=tasks, weight=weight, apart=pass_through or ())
        for split in ("train", "eval")
    )
    for split, tables in (("train", train), ("eval", held_out)):
        for output, task in tasks.items():
            require_labels(tables[output].labels, labels[output], task, split)
    rows = float(len(next(iter(train.values())).labels))
    found: dict[str, dict[str, float]] = {}
    for name in models:
        progress.report(f"fits {name}")
        began = time.monotonic()
        told: dict[str, float] = {}
        for output, task in tasks.items():
            judged = held_out[output]
            answers = answers_of(name, task, train[output], judged, seed=seed)
            told |= scores(metrics[output], answers, judged.labels, judged.weights)
        for mean, of_outputs in (means or {}).items():
            if known := [told[metric] for metric in of_outputs if metric in told]:
                told[mean] = float(np.mean(known))
        found[name] = {
            **told,
            "rows": rows,
            "fit_s": round(time.monotonic() - began, 3),
        }
    with fileio.open(f"{report.uri}/report.json", "w") as file:
        file.write(json.dumps(found, indent=2))


def _read(
    transform: Any,
    examples: Examples,
    split: str,
    *,
    labels: Mapping[str, str],
    tasks: Mapping[str, Task],
    weight: str,
    apart: Collection[str],
) -> dict[str, Table]:
    """Return the rows of a split that weigh something, by output.

    Raises:
        ComponentError: there are none; or a label is several numbers.
    """
    unused = set(apart) - {*labels.values(), weight}
    spec = {name: each for name, each in transform.transformed_feature_spec().items() if name not in unused}
    folders = artifact_utils.get_split_uris([examples], split)
    files = sorted(file for folder in folders for file in fileio.glob(f"{folder}/*"))
    taken = even_sample(chain.from_iterable(chain.from_iterable(map(records, files))), most=MAX_ROWS)
    batches = [tf.io.parse_example(some, spec) for some in in_pieces([taken], _PARSED_TOGETHER_ROWS)]
    read = {name: _joined([batch[name] for batch in batches]) for name in spec}
    columns, weights = rows_that_count(read, weight)
    if not any(map(len, columns.values())):
        raise ComponentError(
            f"the split {split} has no rows{f' whose {weight} is above 0' if weight else ''}, and "
            "evaluate.baselines needs some in train and in eval",
            hint="check data.split, and transform.weight if there is one; or remove evaluate.baselines",
        )
    raw = {label: columns.pop(label) for label in set(labels.values())}
    categories = {
        column.name: int(column.int_domain.max) + 1
        for column in transform.transformed_metadata.schema.feature
        if column.name in columns and column.int_domain.is_categorical and column.int_domain.min == 0
    }
    return {
        output: Table(columns, categories, label_of(raw[label], label, tasks[output]), weights)
        for output, label in labels.items()
    }


def _joined(batches: Sequence[Any]) -> np.ndarray:
    """Return a column's tensors of all batches as [rows, size]."""
    parts = [batch.numpy().reshape(int(batch.shape[0]), -1) for batch in batches]
    return np.concatenate(parts) if parts else np.zeros((0, 1))

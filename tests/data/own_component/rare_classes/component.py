"""RareClasses: counts the classes of the training examples, and fails where one is too rare."""

from collections import Counter

import tensorflow as tf
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.artifact_utils import get_split_uri
from tfx.types.standard_artifacts import Examples, JsonValue

from slipway.components.errors import ComponentError
from slipway.components.rare_classes.rule import rare_classes


@component
def RareClasses(  # noqa: N802 (component constructors are nouns)
    examples: InputArtifact[Examples],
    counts: OutputArtifact[JsonValue],
    label: Parameter[str],
    least: Parameter[int] = 10,
) -> None:
    """Counts the classes of the split `train`.

    Args:
        examples: raw ones, whose label is a text.
        counts: gets the rows of each class.
        label: the column.
        least: rows that a class needs.

    Raises:
        ComponentError: a class has fewer.
    """
    files = tf.io.gfile.glob(f"{get_split_uri([examples], 'train')}/*")
    found: Counter[str] = Counter()
    for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator():
        example = tf.train.Example.FromString(record)
        found.update(value.decode() for value in example.features.feature[label].bytes_list.value)
    counts.value = dict(found)
    if rare := rare_classes(found, least=least):
        raise ComponentError(
            f"{label}: {', '.join(rare)} {'has' if len(rare) == 1 else 'have'} fewer than {least} rows",
            hint="bring more of them, or let preprocessing_fn join them with another class",
        )

"""Creates small artifacts like those of components: examples, their statistics, a schema, a blessed model."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.components.project import PROJECT_ROOT
from slipway.components.saved_model.digest import PROPERTY
from slipway.components.saved_model.digest_files import model_digest
from slipway.pipeline.testing.component import run_component
from slipway.pipeline.testing.transform import Row


def tiny_examples(rows: Sequence[Row] | Mapping[str, Sequence[Row]], *, into: str | Path) -> Any:
    """Create an Examples artifact in Ingest's format.

    Args:
        rows: rows by split; a plain list is used for both `train` and `eval`. A row maps each column to a
            list of values (int, float, str or bytes), [] for an empty cell.
        into: a folder; the examples are written to `examples` in it.

    Raises:
        TypeError: a column holds something else.
    """
    import tensorflow as tf
    from tfx.components.util import examples_utils
    from tfx.proto import example_gen_pb2
    from tfx.types.artifact_utils import encode_split_names
    from tfx.types.standard_artifacts import Examples

    splits = rows if isinstance(rows, Mapping) else {"train": rows, "eval": rows}
    examples = Examples()
    examples.uri = str(Path(into, "examples"))
    examples.split_names = encode_split_names(list(splits))
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    for split, each in splits.items():
        file = Path(examples.uri, f"Split-{split}", "data_tfrecord-00000-of-00001.gz")
        file.parent.mkdir(parents=True)
        with tf.io.TFRecordWriter(str(file), "GZIP") as writer:
            for row in each:
                writer.write(_example(row).SerializeToString(deterministic=True))
    return examples


def statistics_of(examples: Any, *, into: str | Path) -> Any:
    """Create an ExampleStatistics artifact by running TFX's StatisticsGen.

    Args:
        examples: an Examples artifact, such as one from `tiny_examples`.
        into: a folder; the statistics are written to `statistics` in it.
    """
    from tfx.components.statistics_gen.component import StatisticsGen

    return run_component(StatisticsGen, into=into, examples=examples)["statistics"]


def schema_of(file: str | Path, *, into: str | Path) -> Any:
    """Create a Schema artifact from a schema file, as the SchemaGen node does.

    Args:
        file: the schema file, relative to the project's root.
        into: a folder; the file is copied to `schema` in it.
    """
    from tfx.types.standard_artifacts import Schema

    schema = Schema()
    schema.uri = str(Path(into, "schema"))
    Path(schema.uri).mkdir(parents=True)
    shutil.copy(PROJECT_ROOT / file, Path(schema.uri, "schema.pbtxt"))
    return schema


def blessed_model(*, into: str | Path, answer: float = 0.5, blessed: bool = True) -> tuple[Any, Any]:
    """Create a SavedModel that gives every row the same answer, and the ModelGate's blessing of it.

    Args:
        into: a folder; the artifacts are written to `model` and `blessing` in it.

    Returns:
        A Model and a ModelBlessing artifact. The model takes serialized examples.
    """
    import tensorflow as tf
    from tfx.types.standard_artifacts import Model, ModelBlessing
    from tfx.utils.path_utils import serving_model_path

    model, blessing = Model(), ModelBlessing()
    model.uri, model.id = str(Path(into, "model")), 1
    blessing.uri = str(Path(into, "blessing"))

    module = tf.Module()
    module.answer = tf.function(
        lambda examples: {"outputs": tf.fill([tf.size(examples), 1], answer)},
        input_signature=[tf.TensorSpec([None], tf.string, name="examples")],
    )
    tf.saved_model.save(module, serving_model_path(model.uri), signatures={"serving_default": module.answer})
    Path(blessing.uri).mkdir(parents=True)
    Path(blessing.uri, "BLESSED" if blessed else "NOT_BLESSED").touch()
    blessing.set_int_custom_property("blessed", int(blessed))
    blessing.set_int_custom_property("current_model_id", model.id)
    blessing.set_string_custom_property("current_model", model.uri)
    blessing.set_string_custom_property(PROPERTY, model_digest(serving_model_path(model.uri)))
    return model, blessing


def _example(row: Row) -> Any:
    import tensorflow as tf

    example = tf.train.Example()
    for column, values in row.items():
        feature = example.features.feature[column]
        if all(isinstance(value, str | bytes) for value in values) and values:
            encoded = [value.encode() if isinstance(value, str) else value for value in values]
            feature.bytes_list.value.extend(encoded)
        elif all(isinstance(value, int) for value in values):
            if values:
                feature.int64_list.value.extend(values)
        elif all(isinstance(value, int | float) for value in values):
            feature.float_list.value.extend(values)
        else:
            raise TypeError(f"column {column!r} holds {values!r}; give a list of numbers or of texts")
    return example

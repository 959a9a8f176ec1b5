"""A workload whose rows have lists of any length, texts and numbers, from files to answers.

Seen only here: lists in all three kinds of request, trained on and in `predict` from each format, ragged
columns, and a model that is trained on batches of several lengths and served at one.
"""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from copied import copy_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

SCHEMA = """
default_environment: "TRAINING"
default_environment: "SERVING"
feature { name: "tags" type: BYTES value_count { min: 0 max: 2000 } presence { min_count: 1 } }
feature { name: "amounts" type: FLOAT presence { min_count: 1 } }
feature { name: "visits" type: INT presence { min_count: 1 } }
feature { name: "bought" type: INT shape { dim { size: 1 } } presence { min_fraction: 1 min_count: 1 }
  int_domain { min: 0 max: 1 } not_in_environment: "SERVING" }
"""
PREPROCESSING = '''
"""Baskets to features."""
import tensorflow as tf
import tensorflow_transform as tft
from slipway.components.trainer.lists import padded_lists


def preprocessing_fn(inputs):
    tags = padded_lists(inputs["tags"], length=4, padding="<none>")
    return {
        "tags": tft.compute_and_apply_vocabulary(
            tags, num_oov_buckets=1, reserved_tokens=["<none>"], vocab_filename="tags"
        ),
        "amounts": tf.clip_by_value(padded_lists(inputs["amounts"], length=3, padding=0.0), 0.0, 100.0),
        "visits": tf.cast(padded_lists(inputs["visits"], length=2, padding=0) > 2, tf.float32),
        "bought": inputs["bought"],
    }
'''
WORKLOAD = """
name: baskets
data: {source: baskets.jsonl, format: jsonl, label: bought}
schema: schemas/baskets.pbtxt
transform: {preprocessing_fn: workloads.baskets.preprocessing.preprocessing_fn, label: bought}
train:
  model: slipway.components.trainer.models.wide_and_deep.build_model
  hyperparameters: {hidden_units: [16], learning_rate: 0.02}
  batch_size: 32
  epochs: 6
evaluate: {metrics: [auc], thresholds: {auc: {min: 0.8}}}
"""
POOLED = '''
"""Tags of any length, pooled without their padding, beside the numbers."""
import keras
from slipway.components.trainer.models.head import finish


def build_model(features, hyperparameters):
    inputs = {name: keras.Input(f.shape, dtype=f.model_dtype, name=name) for name, f in features.items()}
    vectors = keras.layers.Embedding(features["tags"].categories, 8)(inputs["tags"])
    known = keras.ops.cast(keras.ops.expand_dims(inputs["tags"] > 0, -1), vectors.dtype)
    tags = keras.ops.sum(vectors * known, axis=1)
    joined = keras.layers.Concatenate()([tags, inputs["amounts"], inputs["visits"]])
    return finish(inputs, joined, classes=2, learning_rate=0.02)
'''
STRANGE = [
    {"tags": [], "amounts": [], "visits": []},
    {},
    {"tags": ["sale"] * 50, "amounts": [3.5] * 50, "visits": [9] * 50},
    {"tags": ["never seen"], "amounts": [1.0, 2.0]},
]


def baskets(rows):
    """Rows with lists of 0 to 6 values, some missing; bought where something is on sale."""
    drawn = random.Random(1)  # noqa: S311 (a sample, no secret)
    for _ in range(rows):
        tags = [drawn.choice(["sale", "new", "red", "blue", "old"]) for _ in range(drawn.randrange(4))]
        basket = {
            "tags": tags,
            "amounts": [round(drawn.uniform(0, 9), 2) for _ in range(drawn.randrange(7))],
            "visits": [drawn.randrange(5) for _ in range(drawn.randrange(3))],
        }
        missing = drawn.choice([*basket, "", "", ""])
        yield {
            **{name: values for name, values in basket.items() if name != missing},
            "bought": int("sale" in (tags if missing != "tags" else [])),
        }


def write_json(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_parquet(path, rows):
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"tags": pa.list_(pa.string()), "amounts": pa.list_(pa.float64()), "visits": pa.list_(pa.int64())}
    kinds |= {"bought": pa.int64()} if "bought" in rows[0] else {}
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()}
    parquet.write_table(pa.table(columns), path)


def feature_of(name, values):
    import tensorflow as tf

    if name == "tags":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode() for value in values]))
    if name == "amounts":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def write_examples(path, rows):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            features = {name: feature_of(name, values) for name, values in row.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def write_sequences(path, rows):
    """The lists as steps of SequenceExamples, the label in their context."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            sequence = tf.train.SequenceExample()
            for name, values in row.items():
                if name == "bought":
                    sequence.context.feature[name].int64_list.value.append(values)
                else:
                    steps = sequence.feature_lists.feature_list[name].feature
                    steps.extend(feature_of(name, [value]) for value in values)
            writer.write(sequence.SerializeToString())


@pytest.fixture(scope="module")
def copy(tmp_path_factory, project):
    """A copy of the project, with the workload in it."""
    folder = copy_of(project, tmp_path_factory.mktemp("lists"), "workloads")
    code = folder / "workloads" / "baskets"
    code.mkdir()
    (code / "__init__.py").write_text('"""Baskets."""\n', encoding="utf-8")
    (code / "preprocessing.py").write_text(PREPROCESSING, encoding="utf-8")
    (code / "pooled.py").write_text(POOLED, encoding="utf-8")
    (code / "workload.yaml").write_text(WORKLOAD, encoding="utf-8")
    (folder / "schemas" / "baskets.pbtxt").write_text(SCHEMA, encoding="utf-8")
    ragged = f"represent_variable_length_as_ragged: true\n{SCHEMA}"
    (folder / "schemas" / "ragged.pbtxt").write_text(ragged, encoding="utf-8")
    rows = list(baskets(600))
    write_json(folder / "baskets.jsonl", rows)
    write_sequences(folder / "baskets.tfrecord", rows)
    write_parquet(folder / "baskets.parquet", rows)
    return folder


def pushed(here, output, *options):
    """Runs the workload into an output folder; returns the folder of the model that it pushed."""
    here("run", "baskets", *options, "--output", output)
    return json.loads(here("show", "--json", "--output", output))["pushed"]["path"]


def predicted(copy, here, file, *options):
    """The predictions of `predict` for the rows of a file."""
    to = copy / f"predicted-{file}"
    here("predict", "baskets", "--input", file, "--to", str(to), *options)
    summary = json.loads((to / "summary.json").read_text(encoding="utf-8"))
    assert summary["rejected"] == {}, summary
    lines = (to / "predictions-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["prediction"] for line in lines]


def asked(version, rows):
    """The pushed model's predictions, requested as the server does: with lists of any length."""
    from slipway.components.saved_model.loading import LoadedModel
    from slipway.components.serving.request_decoding import parse_request

    model = LoadedModel(Path(version))
    instances = [{name: row.get(name, []) for name in ("tags", "amounts", "visits")} for row in rows]
    request = {"signature_name": "serve_raw", "instances": instances}
    signature, _, arrays = parse_request(request, model.signatures)
    [answers] = model.call(signature, arrays).values()
    return answers.tolist()


def test_lists_go_all_the_way_and_every_format_gives_the_same_answers(copy, here):
    here("run", "baskets")
    run = json.loads(here("show", "--json"))
    assert run["pushed"], "gates and serving check passed"
    page = (copy / "output" / "runs" / run["run_id"] / "report.html").read_text(encoding="utf-8")
    assert "cannot be shown" not in page
    write_json(copy / "new.jsonl", [{"tags": ["red"], "amounts": [1.0], "visits": [1]}, *STRANGE])
    write_parquet(copy / "new.parquet", [{"tags": ["red"], "amounts": [1.0], "visits": [1]}, *STRANGE])
    write_examples(copy / "new.tfrecord", [{"tags": ["red"], "amounts": [1.0], "visits": [1]}, *STRANGE])
    answers = predicted(copy, here, "new.jsonl")
    assert all(0 <= answer[0] <= 1 for answer in answers)
    assert answers[1] == pytest.approx(answers[2]), "an empty list is a missing one"
    assert answers[3][0] > 0.5 > answers[0][0]
    # TFRecords hold columns of any kind, so that their format is not seen from the model.
    for file in ("new.parquet", "new.tfrecord"):
        found = predicted(copy, here, file)
        assert [each[0] for each in found] == pytest.approx([each[0] for each in answers], abs=1e-6), file
    rows = [{"tags": ["red"], "amounts": [1.0], "visits": [1]}, *STRANGE]
    raw = asked(run["pushed"]["path"], rows)
    assert [each[0] for each in raw] == pytest.approx([each[0] for each in answers], abs=1e-6)


def test_ragged_columns_from_sequences_become_a_pushed_model_that_answers_them(copy, here):
    import tensorflow as tf

    model = pushed(
        here, "ragged", "--set", "schema=schemas/ragged.pbtxt", "--set", "data.format=tfrecord",
        "--set", "data.source=baskets.tfrecord",
    )  # fmt: skip
    answers = asked(model, STRANGE)
    write_examples(copy / "strange.tfrecord", STRANGE)
    records = tf.constant(list(tf.data.TFRecordDataset(str(copy / "strange.tfrecord")).as_numpy_iterator()))
    [serialized] = tf.saved_model.load(model).signatures["serving_default"](examples=records).values()
    assert serialized.numpy() == pytest.approx(np.array(answers), abs=1e-6)
    assert all(0 <= answer[0] <= 1 for answer in answers)
    assert answers[2][0] > 0.5
    write_sequences(copy / "sequences.tfrecord", STRANGE)
    for file in ("sequences.tfrecord", "strange.tfrecord"):
        found = predicted(copy, here, file, "--output", "ragged")
        assert [each[0] for each in found] == pytest.approx([each[0] for each in answers], abs=1e-6), file


@pytest.mark.parametrize(("form", "write"), [("jsonl", write_json), ("parquet", write_parquet)])
def test_ragged_columns_of_a_table_become_a_pushed_model_that_answers_them(copy, here, form, write):
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    output = f"ragged-{form}"
    model = pushed(
        here, output, "--set", "schema=schemas/ragged.pbtxt", "--set", f"data.format={form}",
        "--set", f"data.source=baskets.{form}",
    )  # fmt: skip
    [graph] = (copy / output).glob("artifacts/*/Transform/transform_graph/*/metadata/schema.pbtxt")
    read = text_format.Parse(graph.read_text(encoding="utf-8"), schema_pb2.Schema())
    assert read.represent_variable_length_as_ragged
    write(copy / f"{output}.{form}", STRANGE)
    found = predicted(copy, here, f"{output}.{form}", "--output", output)
    assert [each[0] for each in asked(model, STRANGE)] == pytest.approx([each[0] for each in found], abs=1e-6)
    assert found[0] == pytest.approx(found[1]), "an empty list is a missing one"
    assert found[2][0] > 0.5 > found[1][0]


def test_lists_of_parquet_in_batches_of_two_lengths_become_a_pushed_model_that_answers_them(copy, here):
    model = pushed(
        here, "parquet", "--set", "data.format=parquet", "--set", "data.source=baskets.parquet",
        "--set", "train.model=workloads.baskets.pooled.build_model",
        "--set", "train.input.bucket_by_length={tags: [2]}",
    )  # fmt: skip
    [result] = (copy / "parquet").rglob("result.json")
    trained = json.loads(result.read_text(encoding="utf-8"))["input"]
    assert re.search(r"; tags of 2: \d+ rows, 4: \d+ rows$", trained), trained
    write_parquet(copy / "strange.parquet", STRANGE)
    found = predicted(copy, here, "strange.parquet", "--output", "parquet")
    answers = asked(model, STRANGE)
    assert [each[0] for each in found] == pytest.approx([each[0] for each in answers], abs=1e-6)
    assert found[2][0] > 0.5 > found[1][0]

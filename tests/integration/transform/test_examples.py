"""How Transform reads and writes examples, beside TFXIO and TFX's own encoder."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SCHEMA = """
feature { name: "amount" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "pair" type: INT presence { min_fraction: 1.0 } shape { dim { size: 2 } } }
feature { name: "words" type: BYTES }
feature { name: "numbers" type: INT }
feature { name: "values" type: FLOAT }
"""
WITH_DEFAULT = """
feature { name: "amount" type: FLOAT }
tensor_representation_group {
  key: ""
  value { tensor_representation { key: "amount" value { dense_tensor {
    column_name: "amount" shape { dim { size: 1 } } default_value { float_value: 7 } } } } }
}
"""


def schema(text):
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    return text_format.Parse(text, schema_pb2.Schema())


def example(**features):
    """Serialize lists of floats, integers or texts; None is a feature without a list."""
    import tensorflow as tf

    found = {}
    for name, values in features.items():
        if values is None:
            found[name] = tf.train.Feature()
        elif values and isinstance(values[0], float):
            found[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        elif values and isinstance(values[0], bytes):
            found[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        else:
            found[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature=found)).SerializeToString()


@pytest.fixture
def written(tmp_path):
    """A function that writes examples to a file and returns its path."""
    from slipway.components.transform.examples import write

    def written(rows):
        path = str(tmp_path / "rows.gz")
        write(path, [rows])
        return path

    return written


def by_tfxio(columns):
    columns._parse = None
    return columns


def flat(tensors):
    import tensorflow as tf

    return [each.numpy() for each in tf.nest.flatten(dict(tensors), expand_composites=True)]


ROWS = [
    {"amount": [1.5], "pair": [3, -4], "words": [b"a", b"\xff", b""], "numbers": [2**62], "values": [0.1]},
    {"amount": [float("nan")], "pair": [0, 1], "words": None, "values": [float("inf"), -0.0]},
    {"amount": [-1e30], "pair": [5, 5], "numbers": [], "unknown": [b"not in the schema"]},
]


def test_tensors_are_those_of_tfxio(written):
    from slipway.components.transform.examples import Columns

    file = written([example(**row) for row in ROWS])
    [ours] = Columns(schema(SCHEMA)).batches([file])
    [tfxio] = by_tfxio(Columns(schema(SCHEMA))).batches([file])
    assert ours.keys() == tfxio.keys()
    for one, other in zip(flat(ours), flat(tfxio), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_only_the_columns_asked_for_are_read_and_rows_without_any_keep_their_number(written):
    from slipway.components.transform.examples import Columns

    [ours] = Columns(schema(SCHEMA), ["numbers"]).batches([written([example(amount=[1.0])] * 4)])
    assert list(ours) == ["numbers"]
    assert ours["numbers"].shape[0] == 4


def test_a_default_fills_the_rows_without_a_value(written):
    from slipway.components.transform.examples import Columns

    [ours] = Columns(schema(WITH_DEFAULT)).batches([written([example(amount=[1.0]), example()])])
    assert flat(ours)[0].tolist() == [[1.0], [7.0]]


LISTS = """
represent_variable_length_as_ragged: true
feature { name: "tags" type: BYTES value_count { min: 0 max: 9 } }
feature { name: "amounts" type: FLOAT }
feature { name: "visits" type: INT }
feature { name: "bought" type: INT shape { dim { size: 1 } } presence { min_fraction: 1 min_count: 1 } }
"""
BASKETS = [
    {"tags": ["red", "", "ä"], "amounts": [1.5, -2.0], "visits": [2**62], "bought": 1},
    {"tags": [], "amounts": [], "visits": [], "bought": 0},
    {"bought": 0},
    {"tags": ["new"], "amounts": [0.25], "visits": [1, 2, 3], "bought": 1},
]


def write_json(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_parquet(path, rows):
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"tags": pa.list_(pa.string()), "amounts": pa.list_(pa.float64()), "visits": pa.list_(pa.int64())}
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()}
    parquet.write_table(pa.table({**columns, "bought": [row["bought"] for row in rows]}), path)


@pytest.mark.parametrize(("form", "write"), [("jsonl", write_json), ("parquet", write_parquet)])
@pytest.mark.parametrize("times", [1, 200])  # few rows, and many, which are decoded at once
def test_lists_of_a_file_become_ragged_columns_where_the_schema_says_so(tmp_path, form, write, times):
    from slipway.components.ingest.local_ingest import run_tasks
    from slipway.components.ingest.options import Options
    from slipway.components.ingest.planning import plan_tasks
    from slipway.components.ingest.storage import list_files
    from slipway.components.transform.examples import Columns

    write(tmp_path / "rows", BASKETS * times)
    (tmp_path / "out").mkdir()
    tasks = plan_tasks(
        {None: list_files(str(tmp_path / "rows"))},
        {"train": str(tmp_path / "out")},
        quarantine=str(tmp_path),
        min_shards=1,
    )
    options = Options(format=form, label="bought", split={"train": 1})
    [shard] = run_tasks(tasks, options, {}, workers=1, clear=lambda: None).shards["train"]
    [columns] = Columns(schema(LISTS)).batches([shard.name])
    for name in ("tags", "amounts", "visits"):
        assert type(columns[name]).__name__ == "RaggedTensor"
        expected = [row.get(name, []) for row in BASKETS] * times
        if name == "tags":
            expected = [[text.encode() for text in texts] for texts in expected]
        assert columns[name].to_list() == expected
    assert columns["bought"].numpy().tolist() == [[row["bought"]] for row in BASKETS] * times


@pytest.mark.parametrize(
    "row",
    [
        pytest.param({"amount": [1], "pair": [1, 2]}, id="integers where the schema has floats"),
        pytest.param({"pair": [1, 2]}, id="no value where each row has one"),
        pytest.param({"amount": [1.0], "pair": [1]}, id="one value where each row has two"),
    ],
)
def test_rows_against_the_schema_are_refused_as_by_tfxio(written, row):
    from slipway.components.transform.examples import Columns

    file = written([example(**row)])
    with pytest.raises(Exception) as by_ours:  # noqa: PT011  (the same as below, whatever it is)
        list(Columns(schema(SCHEMA)).batches([file]))
    with pytest.raises(Exception) as alone:  # noqa: PT011
        list(by_tfxio(Columns(schema(SCHEMA))).batches([file]))
    assert (type(by_ours.value), str(by_ours.value)) == (type(alone.value), str(alone.value))


def test_examples_have_the_values_that_tfx_writes():
    import tensorflow as tf

    from slipway.components.transform.examples import Encoder

    described = schema(
        """feature { name: "b" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
        feature { name: "a" type: INT presence { min_fraction: 1.0 } shape { dim { size: 2 } } }
        feature { name: "c" type: BYTES presence { min_fraction: 1.0 }
          shape { dim { size: 2 } dim { size: 1 } } }
        feature { name: "d" type: BYTES presence { min_fraction: 1.0 } shape { } }"""
    )
    batch = {
        "b": tf.constant([[float("nan")], [-0.0], [3e38]]),
        "a": tf.constant([[1, -1], [2**62, 0], [300, 128]], tf.int64),
        "c": tf.constant([[[b""], [b"\xff"]], [[b"x" * 300], [b"y"]], [[b""], [b""]]]),
        "d": tf.constant([b"", b"z", b"w" * 20_000]),
    }
    encoder = Encoder(described)
    [ours] = encoder.encode(batch)
    encoder._kinds = {}
    [tfx] = encoder.encode(batch)
    assert [tf.train.Example.FromString(row) for row in ours[1:]] == [
        tf.train.Example.FromString(row) for row in tfx[1:]
    ]
    # Two NaN are not equal, but their bits are.
    assert sorted(ours[0]) == sorted(tfx[0])
    assert ours[0].find(b"\n\x01a") < ours[0].find(b"\n\x01b") < ours[0].find(b"\n\x01c")


def test_a_shape_that_the_schema_does_not_have_is_refused_as_by_tfx():
    import tensorflow as tf

    from slipway.components.transform.examples import Encoder

    described = 'feature { name: "a" type: INT presence { min_fraction: 1.0 } shape { dim { size: 4 } } }'
    with pytest.raises(TypeError, match="TensorSpec"):
        list(Encoder(schema(described)).encode({"a": tf.ones([3, 5], tf.int64)}))


def test_sparse_outputs_are_written_by_tfx():
    import tensorflow as tf

    from slipway.components.transform.examples import Encoder

    encoder = Encoder(schema('feature { name: "a" type: INT }'))
    sparse = tf.SparseTensor([[0, 0], [2, 0]], tf.constant([4, 5], tf.int64), [3, 1])
    [rows] = encoder.encode({"a": sparse})
    read = [list(tf.train.Example.FromString(row).features.feature["a"].int64_list.value) for row in rows]
    assert read == [[4], [], [5]]

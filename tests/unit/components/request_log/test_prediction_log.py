import gzip
from collections import Counter

import pytest

from fuzzing.prediction_logs import example, prediction_log, shape_bytes, with_content
from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.tfrecord import frame
from slipway.components.request_log import prediction_log as module
from slipway.components.request_log.logged_values import rows_of_examples
from slipway.components.request_log.prediction_log import read_predictions
from slipway.components.request_log.prediction_log_message import MESSAGES, OTHER_KINDS

COLUMNS = ("fare", "company")
EXAMPLES = [example(fare=1.5, company=b"A"), example(fare=2.5, company=None)]


@pytest.fixture
def read(tmp_path):
    """Reads records; returns the requests and what was left out."""

    def call(*records, name="a.tfrecord", end=b"", needed=()):
        data = frame(records) + end
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        told = Counter()
        file = InputFile(name, tmp_path / name)
        found = list(read_predictions(file, COLUMNS, told, needed=needed))
        return found, dict(told)

    return call


def cells(found):
    return [list(row.values()) for each in found for row in each.rows]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_examples_and_columns_are_read_alike(read, name):
    of_columns = {"fare": [1.5, 2.5], "company": [b"A", b""], "more": [1, 2]}
    one_row = {"fare": [3.5], "company": [b"B"]}
    found, told = read(
        prediction_log({"examples": EXAMPLES}, [0.25, 0.5]),
        prediction_log(of_columns, [0.25, 0.5], version=8, at_s=0),
        prediction_log(one_row, [0.75]),
        name=name,
    )
    found.sort(key=lambda each: (each.version, each.rows[0]["fare"]))
    assert cells(found) == [[1.5, "A"], [2.5, None], [3.5, "B"], [1.5, "A"], [2.5, None]]
    assert [(each.version, each.at_s) for each in found] == [(7, 1_795_305_600), (7, 1_795_305_600), (8, 0)]
    assert [each.answers for each in found] == [[[0.25], [0.5]], [[0.75]], [[0.25], [0.5]]]
    assert told == {}


def test_empty_text_is_the_value_of_a_column_that_has_one_in_every_row(read):
    several, one = {"fare": [1.5, 2.5], "company": [b"A", b""]}, {"fare": [3.5], "company": [b""]}
    logs = [prediction_log(several, [0.25, 0.5]), prediction_log(one, [0.75])]
    found, _ = read(*logs, needed=["company"])
    assert cells(found) == [[1.5, "A"], [2.5, ""], [3.5, ""]]
    assert cells(read(*logs)[0]) == [[1.5, "A"], [2.5, None], [3.5, None]]


def test_tensor_of_bytes_and_of_fewer_values_than_rows_is_read(read):
    found, told = read(with_content([1.5, 2.5, 3.5]))
    assert (cells(found), told) == ([[1.5, None], [2.5, None], [3.5, None]], {})
    assert found[0].answers == [[0.5], [0.5], [0.5]], "the last value stands for the rest"


def test_examples_with_lists_and_others_are_read_one_by_one(read):
    several = message_class_example()
    found, told = read(prediction_log({"examples": [*EXAMPLES, several, b"none"]}, [0.0, 0.25, 0.5, 0.75]))
    assert cells(found) == [[1.5, "A"], [2.5, None], [[1.0, 2.0], None]]
    assert found[0].answers == [[0.0], [0.25], [0.5]]
    assert told == {module.NO_COLUMN: 1}


def message_class_example():
    from slipway.components.ingest.example_message import MESSAGES as EXAMPLE_MESSAGES

    made = EXAMPLE_MESSAGES["Example"]()
    made.features.feature["fare"].float_list.value.extend([1.0, 2.0])
    return made.SerializeToString()


def other(kind):
    log = MESSAGES["PredictionLog"]()
    setattr(log, kind, b"")
    return log.SerializeToString()


def of_type(dtype):
    log = MESSAGES["PredictionLog"].FromString(prediction_log({"fare": [1.5]}, [0.5]))
    log.predict_log.request.inputs["fare"].dtype = dtype
    return log.SerializeToString()


def of_shape(*sizes):
    log = MESSAGES["PredictionLog"].FromString(prediction_log({"fare": [1.5]}, [0.5]))
    log.predict_log.request.inputs["fare"].tensor_shape = shape_bytes(*sizes)
    return log.SerializeToString()


def repeated(rows, **inputs):
    log = MESSAGES["PredictionLog"].FromString(prediction_log(inputs, [0.5]))
    for name, tensor in log.predict_log.request.inputs.items():
        tensor.tensor_shape = shape_bytes(rows) if name == "examples" else shape_bytes(rows, 1)
    return log.SerializeToString()


def of_wrong_shape(content):
    log = MESSAGES["PredictionLog"].FromString(prediction_log({"fare": [1.5]}, [0.5]))
    log.predict_log.request.inputs["fare"].tensor_shape = content
    return log.SerializeToString()


def of_signature(name):
    log = MESSAGES["PredictionLog"].FromString(prediction_log({"examples": EXAMPLES}, [0.5, 0.5]))
    log.predict_log.request.model_spec.signature_name = name
    return log.SerializeToString()


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (of_signature("transform_features"), module.NO_PREDICTION),
        *((other(kind), f"{kind.removesuffix('_log').replace('_', ' ')} requests") for kind in OTHER_KINDS),
        (example(fare=1.5), module.OTHER),
        (b"", module.OTHER),
        (b"\xff\xff", module.OTHER),
        (prediction_log({"fare": [1.5]}, []), module.NO_ANSWER),
        (prediction_log({"fare": [1.5]}, [0.5], version=0), module.NO_VERSION),
        (prediction_log({"fare": [1.5]}, [0.5], version=-3), module.NO_VERSION),
        (prediction_log({"fare": [1.5, 2.5]}, [0.5]), module.NO_ROWS),
        (prediction_log({"fare": [1.5, 2.5], "company": [b"A"]}, [0.5, 0.5]), module.NO_ROWS),
        (prediction_log({"examples": EXAMPLES}, [0.5]), module.NO_ROWS),
        (prediction_log({"other": [1.5]}, [0.5]), module.NO_COLUMN),
        (prediction_log({"examples": [example(other=1.5)]}, [0.5]), module.NO_COLUMN),
        (of_type(14), module.NO_TENSOR),  # bfloat16
        (of_shape(), module.NO_TENSOR),
        (of_shape(-1, 1), module.NO_TENSOR),
        (of_shape(2**40, 2**40), module.NO_TENSOR),
        (of_shape(0, 1), module.NO_TENSOR),
        (of_shape(2**40, 0), module.NO_TENSOR),
        (repeated(3_000_000, fare=[1.5], company=[b"A"]), module.NO_TENSOR),
        (repeated(3_000_000, examples=[EXAMPLES[0]]), module.NO_TENSOR),
        (of_wrong_shape(b"\x18\x01"), module.NO_TENSOR),  # of unknown rank
        (of_wrong_shape(b"\xff" * 200), module.NO_TENSOR),
    ],
)
def test_what_is_not_read_is_counted_and_the_next_is_read(read, record, reason):
    found, told = read(record, prediction_log({"fare": [4.5]}, [0.5]))
    assert (cells(found), told) == ([[4.5, None]], {reason: 1})


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_torn_end_and_damage_are_counted(read, name):
    record = prediction_log({"fare": [1.5]}, [0.5])
    damaged = frame([record])[:-1] + b"x"
    found, told = read(record, end=damaged + frame([record])[:-9], name=name)
    assert (cells(found), told) == ([[1.5, None]], {module.DAMAGED: 1, module.REST: 1})


def test_compressed_data_that_is_torn_and_a_file_that_is_no_tfrecord_are_counted(tmp_path):
    record = frame([prediction_log({"fare": [1.5]}, [0.5])] * 500)
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(record)[:-40])
    (tmp_path / "b.tfrecord.gz").write_bytes(b"%PDF and more than twelve bytes")
    (tmp_path / "c.tfrecord").write_bytes(b"%PDF and more than twelve bytes")
    told = Counter()
    for path in sorted(tmp_path.iterdir()):
        list(read_predictions(InputFile(path.name, path), COLUMNS, told))
    assert told == {module.REST: 3}


def test_examples_of_many_requests_are_decoded_together_however_many_each_has(read, monkeypatch):
    sizes = []

    def decoded(records, columns):
        sizes.append(len(records))
        return rows_of_examples(records, columns)

    monkeypatch.setattr(module, "rows_of_many_examples", decoded)
    monkeypatch.setattr(module, "_EXAMPLES_AT_ONCE", 4)
    one, two = (
        prediction_log({"examples": EXAMPLES[:1]}, [0.5]),
        prediction_log({"examples": EXAMPLES}, [0.5] * 2),
    )
    found, _ = read(one, one, two, two, two, one)
    assert sizes == [4, 4, 1]
    assert sum(len(each.rows) for each in found) == 9

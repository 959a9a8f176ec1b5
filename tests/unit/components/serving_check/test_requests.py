"""Requests made of rows: which rows, which of their columns, and what is strange about them."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.serving_check.perturbations import Column, Perturbation

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def row(**columns):
    import tensorflow as tf

    example = tf.train.Example()
    kinds = {bytes: "bytes_list", int: "int64_list", float: "float_list"}
    for name, values in columns.items():
        feature = example.features.feature[name]
        getattr(feature, kinds[type(values[0])]).value.extend(values)
    return example.SerializeToString(deterministic=True)


def columns_of(record):
    import tensorflow as tf

    features = tf.train.Example.FromString(record).features.feature
    found = {}
    for name, feature in features.items():
        kind = feature.WhichOneof("kind")
        found[name] = list(getattr(feature, kind).value) if kind else None
    return found


def test_request_has_only_the_columns_of_a_client():
    from slipway.components.serving_check.requests import only_columns

    record = row(fare=[1.5], company=[b"a"], tip=[2])
    assert columns_of(only_columns(record, ["fare", "company", "absent"])) == {
        "fare": [1.5],
        "company": [b"a"],
    }


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"fare": None}, {"hour": [3]}),
        ({"fare": ()}, {"fare": None, "hour": [3]}),
        ({"fare": (-1.0,)}, {"fare": [-1.0], "hour": [3]}),
        ({"hour": (5, 6)}, {"fare": [1.5], "hour": [5, 6]}),
        ({"fare": (b"x",)}, {"fare": [b"x"], "hour": [3]}),  # of another kind than before
        ({"new": (1,), "fare": None}, {"new": [1], "hour": [3]}),
        ({"absent": None}, {"fare": [1.5], "hour": [3]}),
    ],
)
def test_columns_are_changed_emptied_or_removed_and_the_others_stay(change, wanted):
    from slipway.components.serving_check.requests import perturbed

    record = row(fare=[1.5], hour=[3])
    assert columns_of(perturbed(record, Perturbation(change, "in words"))) == wanted


def test_columns_with_a_value_that_stands_for_an_empty_cell_are_named():
    from slipway.components.serving_check.requests import columns_with_marks

    columns = [
        Column("text", "text"),
        Column("number", "number"),
        Column("needed", "text", required=True),
        Column("absent", "integer"),
        Column("good", "integer"),
    ]
    rows = [
        row(text=[b"a"], number=[1.0], needed=[b""], good=[-1]),
        row(text=[b""], number=[float("nan")], needed=[b""], good=[0]),
    ]
    assert columns_with_marks(rows, columns) == ["text", "number"]
    assert columns_with_marks(rows[:1], columns) == []


def test_the_same_rows_are_drawn_from_the_files_in_any_order(tmp_path):
    from slipway.components.serving_check.requests import read_rows, write_rows

    files = [str(tmp_path / name) for name in ("a.tfrecord", "b.tfrecord")]
    for number, file in enumerate(files):
        write_rows(file, [row(id=[100 * number + each]) for each in range(40)])
    drawn = [columns_of(each)["id"][0] for each in read_rows(files, rows=10)]
    assert [columns_of(each)["id"][0] for each in read_rows(files[::-1], rows=10)] == drawn
    assert len(set(drawn)) == 10
    assert sum(each >= 100 for each in drawn) == 5
    assert drawn != sorted(drawn)
    assert len(read_rows(files, rows=1000)) == 80


def test_files_without_a_row_are_refused_with_where_to_look(tmp_path):
    from slipway.components.serving_check.requests import read_rows, write_rows

    write_rows(tmp_path / "a.tfrecord", [])
    with pytest.raises(ComponentError, match="has no example to query") as refused:
        read_rows([str(tmp_path / "a.tfrecord")], rows=5)
    assert refused.value.hint == "look at data.split"

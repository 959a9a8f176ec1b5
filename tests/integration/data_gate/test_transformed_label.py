"""The label that the model learns, computed before Transform has run: of wide tables, too."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

FLOATS, INTS = (tuple(f"{kind}{number}" for number in range(20)) for kind in "fi")
FUNCTION = """
import tensorflow as tf
import tensorflow_transform as tft

def preprocessing_fn(inputs):
    columns = {name: column for name, column in inputs.items() if name != "label"}
    scaled = {name: tft.scale_to_z_score(column) for name, column in columns.items()}
    buckets = {f"{name}_bucket": tft.bucketize(column, 4, name=name) for name, column in columns.items()}
    early = {"early": tf.cast(scaled["f0"] > 0, tf.int64), "late": tf.cast(scaled["f19"] > 0, tf.int64)}
    hashed = {f"{name}_hash": tft.hash_strings(tf.as_string(columns[name]), 9) for name in ("i0", "i19")}
    return {**scaled, **buckets, **early, **hashed, "y": tf.cast(inputs["label"] > 0.5, tf.int64)}
"""
SCHEMA = "".join(
    f'feature {{ name: "{name}" type: {kind} presence {{ min_fraction: 1 }} shape {{ dim {{ size: 1 }} }} }}'
    for kind, names in {"FLOAT": (*FLOATS, "label"), "INT": INTS}.items()
    for name in names
)


@pytest.fixture(scope="module")
def records():
    from tensorflow.train import Example, Feature, Features, FloatList, Int64List

    def row(number):
        floats = {name: Feature(float_list=FloatList(value=[number / 5])) for name in (*FLOATS, "label")}
        ints = {name: Feature(int64_list=Int64List(value=[number])) for name in INTS}
        return Example(features=Features(feature={**floats, **ints})).SerializeToString()

    return [row(number) for number in range(6)]


def test_columns_of_one_kind_are_traced_once_and_the_label_is_what_it_was(records, tmp_path, monkeypatch):
    import tfx.components  # noqa: F401  (first: it patches what data validation imports)
    from tensorflow_transform import analyzers

    from slipway.components.data_gate.transformed_label import compute_transformed_label

    (tmp_path / "wide.py").write_text(FUNCTION, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    traced = []
    for name in ("_mean_and_var", "quantiles"):
        real = getattr(analyzers, name)

        def noted(*given, name=name, real=real, **more):
            traced.append(name)
            return real(*given, **more)

        monkeypatch.setattr(analyzers, name, noted)

    def made(label):
        return compute_transformed_label(
            records, preprocessing_fn="wide.preprocessing_fn", label=label, schema=SCHEMA
        )

    assert made("y").tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(traced) == ["_mean_and_var"] * 2 + ["quantiles"] * 2
    # Neither the first of its kind nor a later one is known yet; what needs no analyzer is.
    assert made("early") is None
    assert made("late") is None
    assert made("i0_hash").tolist() == made("i19_hash").tolist() != [0] * 6


TAKEN = """
import tensorflow as tf
from tensorflow_transform import scale_to_z_score

def preprocessing_fn(inputs):
    from tensorflow_transform import bucketize

    KEPT.append(bucketize)
    scaled = {name: scale_to_z_score(column) for name, column in inputs.items() if name != "label"}
    return {**scaled, "y": tf.cast(inputs["label"] > 0.5, tf.int64)}

KEPT = []
"""


def test_a_function_that_the_user_took_from_tft_stays_the_real_one(records, tmp_path, monkeypatch):
    import tfx.components  # noqa: F401  (first: it patches what data validation imports)

    (tmp_path / "taken.py").write_text(TAKEN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    from slipway.components.data_gate.transformed_label import compute_transformed_label

    made = compute_transformed_label(
        records, preprocessing_fn="taken.preprocessing_fn", label="y", schema=SCHEMA
    )
    assert made.tolist() == [0, 0, 0, 1, 1, 1]

    import taken
    import tensorflow as tf
    import tensorflow_transform as tft

    assert taken.scale_to_z_score is tft.scale_to_z_score
    with tf.Graph().as_default() as graph:  # taken while tft was patched: it makes its operations again
        column = tf.compat.v1.placeholder(tf.float32, [None])
        for _ in range(2):
            before = len(graph.get_operations())
            taken.KEPT[0](column, 4)
            assert len(graph.get_operations()) > before + 1


SIZED = """
import tensorflow as tf
import tensorflow_transform as tft

def preprocessing_fn(inputs):
    buckets = {name: tft.bucketize(inputs[name], 4) for name in ("f0", "f1")}
    sizes = [tft.get_num_buckets_for_transformed_feature(column) for column in buckets.values()]
    label = tf.cast(inputs["label"] > 0.5, tf.int64)
    return {**buckets, "n": tf.zeros_like(label) + sizes[1], "y": label}
"""


def test_a_label_is_checked_where_the_function_asks_what_transform_recorded(records, tmp_path, monkeypatch):
    import tfx.components  # noqa: F401  (first: it patches what data validation imports)

    from slipway.components.data_gate.transformed_label import compute_transformed_label

    (tmp_path / "sized.py").write_text(SIZED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    made = compute_transformed_label(
        records, preprocessing_fn="sized.preprocessing_fn", label="y", schema=SCHEMA
    )
    assert made.tolist() == [0, 0, 0, 1, 1, 1]

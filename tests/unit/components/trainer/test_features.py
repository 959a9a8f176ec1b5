"""A feature checks itself and survives the job file."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature


@pytest.mark.parametrize(
    "feature",
    [
        Feature(name="fare", dtype="float32"),
        Feature(name="hour", dtype="int64", categories=24),
        Feature(name="image", dtype="float32", shape=(8, 8, 1)),
    ],
)
def test_feature_comes_back_from_json_as_it_went(feature):
    assert Feature.from_json(feature.to_json()) == feature


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": "", "dtype": "float32"}, "needs a name"),
        ({"name": "company", "dtype": "BYTES"}, "company: dtype 'BYTES' is none of float32, int64"),
        ({"name": "image", "dtype": "float32", "shape": (8, 0)}, r"image: shape \(8, 0\)"),
        ({"name": "image", "dtype": "float32", "shape": ()}, r"image: shape \(\)"),
        ({"name": "hour", "dtype": "int64", "categories": 0}, r"hour: categories \(0\)"),
        ({"name": "fare", "dtype": "float32", "categories": 3}, "of an int64 column"),
    ],
)
def test_wrong_feature_is_refused_by_name(values, words):
    with pytest.raises(ComponentError, match=words):
        Feature(**values)


def test_string_feature_is_refused_with_the_remedy():
    with pytest.raises(ComponentError) as caught:
        Feature(name="company", dtype="BYTES")
    assert "compute_and_apply_vocabulary" in caught.value.hint


@pytest.mark.parametrize("change", [{"shape": 3}, {"extra": 1}])
def test_wrong_json_of_a_feature_is_refused(change):
    values = {**Feature(name="fare", dtype="float32").to_json(), **change}
    with pytest.raises(ComponentError, match="fare"):
        Feature.from_json(values)

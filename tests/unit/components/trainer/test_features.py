"""A feature checks itself and survives the job file."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature, beyond_int32, refused_value


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


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature(name="x", dtype="int64"), True),
        (Feature(name="x", dtype="int64", categories=2**31 + 1), True),
        (Feature(name="x", dtype="int64", categories=2**31), False),
        (Feature(name="x", dtype="float32"), False),
        (Feature(name="x", dtype="uint8"), False),
    ],
)
def test_only_whole_numbers_without_a_known_limit_may_exceed_32_bits(feature, expected):
    assert feature.may_exceed_int32 is expected


@pytest.mark.parametrize("name", ["user id", "a {} [b] holds c"])
def test_value_beyond_32_bits_is_found_in_an_error_of_tensorflow(name):
    before, after = beyond_int32(name)
    refused = refused_value(
        f"{{{{function_node f}}}} assertion failed: [{before}-3000000000{after}]\n\t [[A]]"
    )
    assert refused.message == (
        f"the transformed column {name} holds -3000000000, beyond 32 bits; models take whole numbers "
        "as int32, from -2,147,483,648 to 2,147,483,647"
    )
    assert "tft.hash_strings" in refused.hint
    assert refused_value("assertion failed: [another]") is None

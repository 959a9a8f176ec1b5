import pytest

from slipway.components.saved_model.refused_examples import in_words


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "Name: <unknown>, Key: sales, Index: 0.  Number of float values != expected.  Values size: 0 but "
            "output shape: [1]",
            "sales has no value, but the model needs one in every row",
        ),
        (
            "Name: <unknown>, Key: Größe (cm), Index: 3.  Number of int64 values != expected.  Values size: "
            "2 but output shape: [1]",
            "Größe (cm) has 2 values, but the model needs 1 in every row",
        ),
        (
            "Name: <unknown>, Feature: fare (data type: float) is required but could not be found.",
            "fare has no value, but the model needs one in every row",
        ),
        (
            "Name: <unknown>, Key: fare, Index: 0.  Data types don't match. Data type: string but expected "
            "type: float",
            "fare holds text, but the model needs fractions",
        ),
        (
            "Could not parse example input, value: '\\xff\\xff'",
            "Could not parse example input: it is not a serialized tf.Example",
        ),
        ("indices[0] = 9 is not in [0, 4)", "indices[0] = 9 is not in [0, 4)"),
    ],
)
def test_a_refusal_names_the_column_and_what_the_model_needs(message, words):
    assert in_words(message) == words

import pytest

from slipway.components.counted_words import agreeing, counted, first_of


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1234, "1,234 rows")]
)
def test_noun_agrees_with_its_number(number, words):
    assert counted(number, "row") == words


def test_verb_agrees_with_its_number():
    assert [agreeing(number, "are") for number in (0, 1, 2)] == ["are", "is", "are"]
    assert [agreeing(number, "have") for number in (0, 1.0, 2)] == ["have", "has", "have"]


def test_of_many_texts_the_first_are_named_and_the_others_counted():
    assert first_of(["a", "b"], 2) == "a, b"
    assert first_of(["a", "b", "c"], 2) == "a, b and 1 more"
    assert first_of(["a"] * 2000, 1) == "a and 1,999 more"
    assert first_of([], 2) == ""

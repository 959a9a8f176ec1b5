import pytest

from slipway.components.counted_words import agreeing, counted


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1234, "1,234 rows")]
)
def test_noun_agrees_with_its_number(number, words):
    assert counted(number, "row") == words


def test_verb_agrees_with_its_number():
    assert [agreeing(number, "are") for number in (0, 1, 2)] == ["are", "is", "are"]
    assert [agreeing(number, "have") for number in (0, 1.0, 2)] == ["have", "has", "have"]

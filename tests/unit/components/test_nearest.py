"""Which name a mistyped one meant."""

from slipway.components.nearest import nearest


def test_most_similar_name_is_found():
    assert nearest("compny", ["fare", "company", "companies"]) == "company"


def test_nothing_similar_is_no_name():
    assert nearest("tips", ["company"]) == ""


def test_most_similar_of_names_that_are_all_unlike_is_found_where_one_is_wanted():
    assert nearest("tips", ["company", "trip"], at_any_distance=True) == "trip"


def test_no_names_give_none():
    assert nearest("tips", [], at_any_distance=True) == ""

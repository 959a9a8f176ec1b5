"""Which name a mistyped one meant."""

from slipway.components.nearest import nearest, nearest_first


def test_most_similar_name_is_found():
    assert nearest("compny", ["fare", "company", "companies"]) == "company"


def test_nothing_similar_is_no_name():
    assert nearest("tips", ["company"]) == ""


def test_most_similar_of_names_that_are_all_unlike_is_found_where_one_is_wanted():
    assert nearest("tips", ["company", "trip"], similarity=0) == "trip"


def test_no_names_give_none():
    assert nearest("tips", [], similarity=0) == ""


def test_all_names_come_the_most_similar_first_and_equal_ones_in_their_order():
    assert nearest_first("v9-8", ["v5e-16", "v3-8", "v2-8"]) == ["v3-8", "v2-8", "v5e-16"]

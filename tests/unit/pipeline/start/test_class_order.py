import pytest

from slipway.pipeline.start.class_order import ordered


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["no", "yes"], ("no", "yes")),
        (["Ja", "Nein"], ("Nein", "Ja")),
        (["да", "нет"], ("нет", "да")),
        (["oui", "non"], ("non", "oui")),
        (["J", "N"], ("N", "J")),
        (["T", "F"], ("F", "T")),
        (["a", "n"], ("a", "n")),
        (["+", "-"], ("-", "+")),
        (["ckd", "notckd"], ("notckd", "ckd")),
        (["fraud", "non-fraud"], ("non-fraud", "fraud")),
        (["default", "no default"], ("no default", "default")),
        (["f", "m"], ("f", "m")),
        (["cat", "dog"], ("cat", "dog")),
        (["-", "no"], ("-", "no")),  # both say no: as they are written
        (["ja", "nein", "offen"], ("ja", "nein", "offen")),
        ([1, 0], (0, 1)),
        ([1.0, -1.0], (-1.0, 1.0)),
    ],
)
def test_of_two_classes_the_one_that_says_no_stands_first(values, found):
    assert ordered(values) == found

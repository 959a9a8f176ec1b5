"""The label's three forms."""

import pytest

from slipway.components.trainer.labels import answers_of, columns_of, is_multi_label


@pytest.mark.parametrize(
    ("label", "columns", "answers", "is_multi"),
    [
        ("sold", ("sold",), "sold", False),
        ({"sold": "y", "price": "z"}, ("y", "z"), {"sold": "y", "price": "z"}, False),
        (["sport", "music"], ("sport", "music"), {"sport": "sport", "music": "music"}, True),
    ],
)
def test_columns_and_answers(label, columns, answers, is_multi):
    assert columns_of(label) == columns
    assert answers_of(label) == answers
    assert is_multi_label(label) is is_multi

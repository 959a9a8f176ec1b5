"""The label's three forms."""

import pytest

from slipway.components.trainer.labels import columns_of, is_multi_label, served_label_columns


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
    assert served_label_columns(label) == answers
    assert is_multi_label(label) is is_multi

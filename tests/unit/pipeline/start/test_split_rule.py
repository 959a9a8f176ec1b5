"""The rule that decides which split a row belongs to."""

import pytest

from slipway.pipeline.start.split_rule import Split


@pytest.mark.parametrize(
    ("by", "column"),
    [({}, None), ({"row": True}, None), ({"key": "nr"}, "nr"), ({"time": "day", "starts": {}}, "day")],
)
def test_the_column_that_decides_is_known(by, column):
    assert Split(by).column == column

import pytest
from pydantic import ValidationError

from slipway.pipeline.config.request_log import RequestLogConfig


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"columns": []},
        {"columns": ["logged_at"]},
        {"columns": ["a"], "share": 0},
        {"columns": ["a"], "max_mb": 1},
    ],
)
def test_wrong_log_is_refused(wrong):
    with pytest.raises(ValidationError):
        RequestLogConfig(**wrong)


def test_all_rows_are_logged_unless_a_share_is_given():
    assert RequestLogConfig(columns=["fare"]).share == 1.0

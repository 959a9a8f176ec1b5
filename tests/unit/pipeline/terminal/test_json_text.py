import json
import math

from slipway.pipeline.terminal.json_text import json_text


def _refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def test_numbers_that_json_does_not_have_become_null():
    document = {"metrics": {"auc": math.nan, "rows": 3}, "list": [math.inf, (-math.inf, 0.5)], "text": "NaN"}
    read = json.loads(json_text(document), parse_constant=_refuse)
    assert read == {"metrics": {"auc": None, "rows": 3}, "list": [None, [None, 0.5]], "text": "NaN"}

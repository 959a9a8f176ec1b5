"""Conditions of tasks, in the part of CEL that TFX writes."""

import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.rehearsal.condition import holds

ARTIFACTS = {"blessing": [{"uri": "/b", "metadata": {"blessed": 1, "by": "gate"}}], "none": []}
BLESSED = "inputs.artifacts['blessing'].artifacts[0].metadata['blessed']"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"({BLESSED} == 1.0)", True),
        (f"!(({BLESSED} == 1.0))", False),
        (f"({BLESSED} < 1.0)", False),
        (f"({BLESSED} > 0.5)", True),
        (f"(({BLESSED} == 1.0) && ({BLESSED} > 2.0))", False),
        (f"(({BLESSED} > 2.0) || ({BLESSED} == 1.0))", True),
        ("(inputs.artifacts['blessing'].artifacts[0].uri == '/b')", True),
        ("((inputs.artifacts['blessing'].artifacts[0].metadata['by'] + ' x') == 'gate x')", True),
        (f"({BLESSED} == 1.0) && ({BLESSED} < 2.0)", True),
    ],
)
def test_what_tfx_writes_is_evaluated(condition, expected):
    assert holds(condition, ARTIFACTS) is expected


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("", "cannot be evaluated"),
        ("(1.0 == 1.0", "cannot be evaluated"),
        ("1.0 == 1.0 1.0", "cannot be evaluated"),
        ("size(inputs) == 1.0", "cannot be evaluated"),
        ("1.0 ? 2.0", "cannot be evaluated"),
        ("1.0 == 1.0 # x", "cannot be evaluated"),
        ("1_0 == 10", "cannot be evaluated"),
        ("9" * 400 + " == 1.0", "cannot be evaluated"),
        ("1.0 + 1.0", "gives 2.0, not true or false"),
        ("1.0 + 'a' == 'b'", "adds 'a' to 1.0"),
        (f"({BLESSED} == 'yes')", "compares 1.0 with 'yes'"),
        ("(inputs.artifacts['none'].artifacts[0].uri == 'x')", "needs the input 'none', and there is none"),
        ("(inputs.artifacts['blessing'].artifacts[0].metadata['at'] == 1.0)", "needs 'at' of 'blessing'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_not_guessed(condition, words):
    with pytest.raises(ComponentError, match=words):
        holds(condition, ARTIFACTS)

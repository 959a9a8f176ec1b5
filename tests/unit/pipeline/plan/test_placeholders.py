"""What an expression takes that nobody can know before the node runs."""

import pytest

from slipway.pipeline.plan.placeholders import unforeseen


def field(*path):
    inner = {"placeholder": {"type": "EXEC_INVOCATION"}}
    return {"operator": {"protoOp": {"expression": inner, "protoFieldPath": list(path)}}}


RUN_ID = field(".pipeline_run_id")
HOME = {"placeholder": {"type": "ENVIRONMENT_VARIABLE", "key": "HOME"}}


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (RUN_ID, "pipeline_run_id of the execution, which is new in every run"),
        ({"placeholder": {"type": "EXEC_INVOCATION"}}, "all of the execution, which is new in every run"),
        (HOME, "the environment variable HOME, which may have changed"),
        (
            {"operator": {"concatOp": {"expressions": [{"value": {"stringValue": "x"}}, RUN_ID]}}},
            "pipeline_run_id of the execution, which is new in every run",
        ),
    ],
)
def test_what_each_run_has_anew_is_reported(expression, told):
    assert unforeseen(expression) == told


@pytest.mark.parametrize(
    "expression",
    [
        {"value": {"stringValue": "EXEC_INVOCATION"}},
        {"operator": {"artifactUriOp": {"expression": {"placeholder": {"key": "model"}}}}},
        field(".pipeline_node", ".node_info", ".id"),
        field(".pipeline_info", ".id"),
    ],
)
def test_what_stays_is_not(expression):
    assert unforeseen(expression) == ""

"""The preflight about models that have known faults, and about models that only look as if they had."""

import re
import subprocess
from types import SimpleNamespace as Plain

import pytest

from benchmarks.preflight_suite import verdict
from slipway.components.preflight.finding import Finding

pytestmark = [pytest.mark.slow, pytest.mark.external]


def test_each_fault_is_reported_in_the_users_words_and_no_model_is_accused_falsely(project, tpu_python):
    done = subprocess.run(
        [tpu_python, "-W", "ignore", "-m", "benchmarks.preflight_suite", "--traced"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    models = (project / "tests" / "data" / "preflight" / "judged_models.py").read_text(encoding="utf-8")
    cases = re.findall(r"^@right\(", models, re.MULTILINE)
    assert len(re.findall("^right ", done.stdout, re.MULTILINE)) == len(cases) > 0


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"cast": "ask for it"}, "right"),
        ({"cast": "ask for it", "too_small": ""}, "right"),  # which is said of the question
        ({}, "missed"),
        ({"cast": "ask for it", "callback": "ask for it"}, "wrong rules"),
        ({"callback": "ask for it"}, "wrong rules"),
        ({"cast": "ask for it", "batch_norm": "ask for it"}, "wrong rules"),
        ({"cast": ""}, "poor remedy"),
    ],
)
def test_a_faulty_model_is_right_if_its_rule_alone_is_found_with_its_remedy(found, said):
    findings = [
        Finding(rule=rule, severity="warning", message="float64 to float32", remedy=remedy)
        for rule, remedy in found.items()
    ]
    case = Plain(rules=("cast",), says="float64", remedy="ask")

    assert verdict(case, findings) == said
    assert verdict(Plain(rules=(), says="", remedy=""), findings) == (
        "false alarm" if set(found) - {"too_small"} else "right"
    )
    if said == "right":
        assert verdict(Plain(rules=("cast",), says="int64", remedy="ask"), findings) == "poor words"


def test_several_rules_have_a_remedy_each():
    case = Plain(
        rules=("does_not_fit", "whole_table"), says="", remedy={"does_not_fit": "a", "whole_table": "b"}
    )

    def found(*remedies):
        pairs = zip(case.rules, remedies, strict=True)
        return [Finding(rule=rule, severity="error", message="", remedy=remedy) for rule, remedy in pairs]

    assert verdict(case, found("a", "b")) == "right"
    assert verdict(case, found("b", "a")) == "poor remedy"

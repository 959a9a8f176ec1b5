"""The preflight about faulty models, the same after its remedy, and models that only look faulty."""

import json
import re
import subprocess
from types import SimpleNamespace as Plain

import pytest

from benchmarks.preflight_suite import after_remedy, verdict
from slipway.components.preflight.finding import Finding

pytestmark = [pytest.mark.slow, pytest.mark.external]

NOT_OF_A_MODEL = {
    "hosts": "settings that a slice of several hosts does not take, whatever the model",
    "inputs": "says which run's data the model was judged by",
    "interpreter": "libtpu is what this machine lacks, and then no model is said to need anything",
    "loop": "says what the estimate is worth; that it turns is no fault of the model",
    "not_compiled": "more time, another compiler, or steps that are Keras': all outside of the judged model",
    "own_loop": "a setting that a loop of one's own does not take, whatever the model",
    "rows": "how many examples there are, which only runs have counted",
    "search": "says which of the searched hyperparameters were judged",
    "too_small": "says what the estimate is worth; how large is enough depends on the compiler's counts",
}
"""Rules without a pair of a faulty and a mended model, with the reason."""
NO_PAIR = {
    "attention_over_a_long_text": "a smaller batch takes the compiler two minutes; test_compile_step.py does "
    "the same with activations that compile quickly",
    "images_that_are_none": "Keras' own error, with the line: there is no saying what shape was meant",
    "lists_in_buckets_with_a_loss_of_one_length": "an error of the user's loss, with the line",
}
"""Faulty models without a mended one, with the reason."""
ONLY_A_NOTE = ("lists_in_buckets", "lists_in_buckets_under_attention", "series_in_buckets")
"""Models of which the note says how often they are compiled, and nothing is wrong."""


def suite(python, project, *arguments) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-W", "ignore", "-m", "benchmarks.preflight_suite", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )


@pytest.fixture(scope="module")
def cases(project, jax_python):
    """What each of the models is about, by its name."""
    done = suite(jax_python, project, "--list")
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {each["name"]: each for each in lines}


def judged_right(done) -> list[str]:
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return re.findall(r"^right +(\w+) ", done.stdout, re.MULTILINE)


# In two parts, each of which ends before its time is up on a busy machine; what mends a fault is in its part.
@pytest.mark.parametrize("part", [0, 1])
def test_each_fault_is_told_and_gone_after_its_remedy_and_no_model_is_accused_falsely(
    project, jax_python, cases, part
):
    plain = [name for name, case in cases.items() if not case["mends"]]
    names = [
        name
        for name, case in cases.items()
        if plain.index(case["mends"] or name) % 2 == part and not case["needs_compiler"]
    ]

    done = suite(jax_python, project, "--traced", *names)

    assert judged_right(done) == names


def test_what_only_the_compiler_refuses_is_told_and_gone_after_its_remedy(project, tpu_python, cases):
    names = [name for name, case in cases.items() if case["needs_compiler"]]

    assert judged_right(suite(tpu_python, project, *names)) == names


def test_every_rule_and_every_faulty_model_has_its_remedy_tried(project, cases):
    page = (project / "docs/tpu.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z0-9_, ]+) \| [✗! -]+ \| .{20,} \|$", page, re.MULTILINE)
    rules = {rule for names in rows for rule in names.split(", ")}
    mended = {case["mends"] for case in cases.values()} - {""}
    tried = {rule for name in mended for rule in cases[name]["rules"]}
    faulty = {name for name, case in cases.items() if case["rules"] and not case["mends"]}

    assert rules - tried == set(NOT_OF_A_MODEL)
    assert faulty - mended == {*NO_PAIR, *ONLY_A_NOTE}


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


def test_a_fault_is_mended_if_its_finding_is_gone_after_its_own_remedy():
    def found(*rules, message="old"):
        return [Finding(rule=each, severity="note", message=message, remedy="take jax") for each in rules]

    faulty, mended = Plain(rules=("backend",)), Plain(rules=(), by="jax")

    assert after_remedy(mended, faulty, found(), found("backend")) == "right"
    assert after_remedy(mended, faulty, found("too_small"), found("backend", "too_small")) == "right"
    assert after_remedy(mended, faulty, found("backend"), found("backend")) == "not mended"
    assert after_remedy(mended, faulty, found("backend", message="new"), found("backend")) == "not mended"
    assert after_remedy(mended, faulty, found(), found("cast")) == "other remedy"
    assert after_remedy(Plain(rules=(), by="torch"), faulty, found(), found("backend")) == "other remedy"
    # A note that stays beside an error of the same rule.
    noted = Plain(rules=("backend",), by="jax")
    assert after_remedy(noted, faulty, found("backend", message="new"), found("backend")) == "right"
    assert after_remedy(noted, faulty, found("backend"), found("backend")) == "not mended"

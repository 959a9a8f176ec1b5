"""docs/tpu.md explains each finding of the preflight with its weight, and what its numbers are worth."""

import ast
import re

import pytest

from slipway.components.preflight.trait_rules import WORDS

MARKS = {"error": "✗", "warning": "!", "note": "-"}


@pytest.fixture(scope="module")
def page(project):
    return (project / "docs/tpu.md").read_text(encoding="utf-8")


def words(node):
    """The strings that an expression may be."""
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and each.value in MARKS}


@pytest.fixture(scope="module")
def told(project):
    """The marks of the weights that each rule's findings may have, by rule."""
    # Those of traits have a table; all others a rule that is written where they are made.
    found: dict[str, set[str]] = {kind: {MARKS[each.severity]} for kind, each in WORDS.items()}
    for path in (project / "components/preflight").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                given = {each.arg: each.value for each in node.keywords}
                if not isinstance(given["rule"], ast.Constant):
                    assert path.name == "trait_rules.py"
                    continue
                marks = {MARKS[severity] for severity in words(given["severity"])}
                found.setdefault(given["rule"].value, set()).update(marks)
    return found


@pytest.fixture(scope="module")
def explained(page):
    rows = re.findall(r"^\| ([a-z0-9_, ]+) \| ([✗! -]+) \| .{20,} \|$", page, re.MULTILINE)
    return {rule: marks.split() for names, marks in rows for rule in names.split(", ")}


def test_each_finding_is_explained_and_nothing_else(told, explained):
    assert len(told) >= 15
    assert sorted(explained) == sorted(told)


def test_each_finding_has_its_weight(told, explained):
    assert {rule: sorted(marks) for rule, marks in explained.items()} == {
        rule: sorted(marks) for rule, marks in told.items()
    }


def test_it_is_said_that_no_hardware_has_confirmed_the_times(page):
    assert "**Times and costs are estimates, and no hardware has confirmed any of them.**" in page

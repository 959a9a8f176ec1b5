"""docs/components.md: every component has its part, and every key in it exists."""

import ast
import json
import re

import pytest


@pytest.fixture(scope="module")
def page(project):
    return (project / "docs/components.md").read_text(encoding="utf-8")


def test_each_component_of_ours_has_a_part(project, page):
    headings = {name for line in re.findall(r"^## (.+)$", page, re.MULTILINE) for name in line.split(", ")}
    ours = {
        node.name
        for path in (project / "components").glob("*/component.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and not node.name.startswith("_")
        and not node.name.endswith("Spec")
    }
    assert len(ours) >= 6
    assert ours - headings == set()


def test_each_key_exists(project, page):
    schema = json.loads((project / "schemas/workload.schema.json").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| keys \| (.+) \|$", page, re.MULTILINE)
    keys = {key for row in rows for key in re.findall(r"`([^`]+)`", row)}
    assert len(keys) > 50
    assert [key for key in sorted(keys) if not exists(key, schema)] == []


def exists(key, schema):
    """Whether the schema of the workload file has a dotted key."""
    here = schema
    for name in key.split("."):
        options = [here, *here.get("anyOf", ())]
        models = [schema["$defs"][o["$ref"].rpartition("/")[2]] for o in options if "$ref" in o]
        here = next((m["properties"][name] for m in [here, *models] if name in m.get("properties", {})), None)
        if here is None:
            return False
    return True


def test_a_key_that_is_not_there_is_noticed(project):
    schema = json.loads((project / "schemas/workload.schema.json").read_text(encoding="utf-8"))
    assert exists("evaluate.serving.rows", schema)
    assert not exists("evaluate.serving.row", schema)
    assert not exists("train.serving.rows", schema)

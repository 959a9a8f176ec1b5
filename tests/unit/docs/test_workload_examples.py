"""What the pages show of a workload file is read as they mean it: each key exists and takes its value."""

import json
import re

import jsonschema
import pytest

from slipway.pipeline.config.safe_yaml import read_yaml

PLACEHOLDERS = {"BUCKET": "bucket", "REGION": "europe-west4"}
"""What a user fills in, as something that the rules of names allow."""


@pytest.fixture(scope="module")
def schema(project):
    """Of a part of a workload file: that of a profile, which requires no key, with `profiles` beside."""
    whole = json.loads((project / "schemas/workload.schema.json").read_text(encoding="utf-8"))
    part = whole["$defs"]["Profile"]
    keys = {**part["properties"], "name": {}, "profiles": whole["properties"]["profiles"]}
    return {**part, "properties": keys, "$defs": whole["$defs"]}


def examples(text, keys):
    """The blocks of a page, fenced or indented, that begin with a key of the workload file."""
    fenced = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    indented = re.findall(r"(?:^ {4}.*\n(?:\n(?= {4}))?)+", text, re.MULTILINE)
    for block in [*fenced, *(re.sub(r"^ {4}", "", each, flags=re.MULTILINE) for each in indented)]:
        if re.match(rf"(?:{'|'.join(keys)}):(?:\s|$)", block):
            yield block


def problems(block, schema):
    for placeholder, value in PLACEHOLDERS.items():
        block = re.sub(rf"\b{placeholder}\b", value, block)
    found = jsonschema.Draft202012Validator(schema).iter_errors(read_yaml(block, name="example").data)
    return [f"{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in found]


def test_each_example_is_one_of_a_workload_file(project, schema):
    found = {
        (page.name, block): problems(block, schema)
        for page in [project / "README.md", *sorted((project / "docs").glob("*.md"))]
        for block in examples(page.read_text(encoding="utf-8"), schema["properties"])
    }
    assert len(found) >= 30
    assert {name: each for (name, _), each in found.items() if each} == {}


@pytest.mark.parametrize(
    "block",
    [
        "train: {batch_siz: 5}\n",
        "data:\n  tables: {a: {sqlite: b.db, query: SELECT c, d FROM e}}\n",
        "beam: 1\n",
    ],
)
def test_an_example_that_a_run_would_refuse_is_noticed(schema, block):
    [found] = examples(
        f"Text:\n\n{re.sub('^', '    ', block, flags=re.MULTILINE).rstrip(' ')}", schema["properties"]
    )
    assert problems(found, schema)

"""The schema of workload files, for editors."""

import json
from pathlib import Path

import pytest

from slipway.pipeline.config import settings_errors
from slipway.pipeline.config.json_schema import SCHEMA_PATH, schema_text, workload_schema
from slipway.pipeline.errors import ConfigError

ROOT = Path(__file__).resolve().parents[4]
TAXI = Path("workloads/taxi/workload.yaml")


@pytest.mark.parametrize("has_a_copy", [True, False])
def test_hint_names_a_file_that_describes_the_keys(tmp_path, monkeypatch, has_a_copy):
    monkeypatch.setattr(settings_errors, "PROJECT_ROOT", tmp_path)
    (tmp_path / "schemas").mkdir()
    if has_a_copy:
        (tmp_path / "schemas/workload.schema.json").touch()
    problem = settings_errors.Problem(path=("name",), words="missing", text="name: missing", line=1)
    with pytest.raises(ConfigError) as raised:
        settings_errors.raise_problems([problem], name="w.yaml")
    named = raised.value.hint.removeprefix("every key is described in ")
    assert named == ("schemas/workload.schema.json" if has_a_copy else str(SCHEMA_PATH))


def test_schema_file_is_current():
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text(), (
        "run: python -m slipway.pipeline.config.json_schema"
    )


def test_every_key_has_a_description_of_one_sentence():
    schema = workload_schema()

    def described(part):
        for key, each in part.get("properties", {}).items():
            of_model = schema["$defs"].get(each.get("$ref", "").rpartition("/")[2], {})
            yield key, each.get("description") or of_model.get("description", "")

    keys = [pair for part in (schema, *schema["$defs"].values()) for pair in described(part)]
    assert len(keys) > 30
    assert [key for key, text in keys if not text.endswith(".")] == []


def test_profile_in_the_schema_requires_nothing_and_has_no_name():
    definitions = workload_schema()["$defs"]
    profile = definitions["Profile"]
    assert set(profile["properties"]) == set(workload_schema()["properties"]) - {"name", "profiles"}
    assert profile["properties"]["train"]["$ref"] == "#/$defs/TrainConfigInProfile"
    assert "required" not in json.dumps(
        [each for name, each in definitions.items() if name.endswith("InProfile")]
    )


def test_first_line_of_the_taxi_workload_leads_an_editor_to_the_schema():
    first = (ROOT / TAXI).read_text(encoding="utf-8").splitlines()[0]
    path = first.removeprefix("# yaml-language-server: $schema=")
    assert (ROOT / TAXI).parent.joinpath(path).resolve() == SCHEMA_PATH

"""Generates the JSON Schema of workload files, by which editors complete, explain and check them.

python -m slipway.pipeline.config.json_schema          writes schemas/workload.schema.json
"""

import json
from collections.abc import Callable, Container
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import DataclassSchema, DictSchema, WithDefaultSchema

from slipway.components.project import OWN_FOLDER
from slipway.pipeline.config.workload import NOT_IN_A_PROFILE, WorkloadConfig

SCHEMA_PATH = OWN_FOLDER / "schemas/workload.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFINITION = "#/$defs/"
_SUFFIX = "InProfile"


class _Generator(GenerateJsonSchema):
    """Omits titles and all but the first line of dataclasses' docstrings; allows only keys of a pattern."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  (its base decides the name)
        return False

    def dict_schema(self, schema: DictSchema) -> dict[str, object]:
        described = super().dict_schema(schema)
        return {**described, "additionalProperties": False} if "patternProperties" in described else described

    def dataclass_schema(self, schema: DataclassSchema) -> dict[str, object]:
        described = super().dataclass_schema(schema)
        return {**described, "description": described["description"].partition("\n")[0]}

    def get_default_value(self, schema: WithDefaultSchema) -> Any:
        if schema.get("default_factory") is None:
            return super().get_default_value(schema)
        return cast(Callable[[], Any], schema["default_factory"])()  # dataclasses have factories for mappings


def workload_schema() -> dict[str, object]:
    """Return the JSON Schema of a workload file, as plain data.

    A profile has the same keys except name and profiles, and requires none, because it overrides the file.
    """
    schema = WorkloadConfig.model_json_schema(by_alias=True, schema_generator=_Generator)
    models = {name: each for name, each in schema["$defs"].items() if "properties" in each}
    partial = {name + _SUFFIX: _partial(each, models) for name, each in models.items()}
    profile = _partial({key: schema[key] for key in ("additionalProperties", "properties", "type")}, models)
    for key in NOT_IN_A_PROFILE:
        del profile["properties"][key]
    names = schema["properties"]["profiles"]["patternProperties"]
    schema["properties"]["profiles"]["patternProperties"] = {
        pattern: {"$ref": f"{_DEFINITION}Profile"} for pattern in names
    }
    definitions = {**schema["$defs"], **partial, "Profile": profile}
    return {"$schema": _DIALECT, **schema, "title": "Slipway workload", "$defs": definitions}


def schema_text() -> str:
    """Return the content of the schema file, which is stable, so that a diff shows only real changes."""
    return json.dumps(workload_schema(), indent=2, ensure_ascii=False) + "\n"


def _partial(node: Any, models: Container[str]) -> Any:
    """Copy a part of the schema so that it requires no key and refers to partial models only."""
    if isinstance(node, list):
        return [_partial(item, models) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {key: _partial(value, models) for key, value in node.items() if key not in ("required", "default")}
    if str(copy.get("$ref", "")).removeprefix(_DEFINITION) in models:
        copy["$ref"] += _SUFFIX
    return copy


if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")
    print(f"wrote {SCHEMA_PATH}")

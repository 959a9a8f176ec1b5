"""The workload file's defaults, bounds and descriptions are the components' own."""

import json
from dataclasses import MISSING, fields

import pytest

from slipway.components.data_gate.rule_limits import Freshness, Limits
from slipway.components.ingest.formats import FORMATS
from slipway.components.ingest.options import NumberFormat, Options
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.model_gate.serving_rules import ServingLimits
from slipway.components.model_gate.threshold_rules import Threshold
from slipway.components.trainer.settings.blow_up import BlowUpSettings
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings
from slipway.components.trainer.settings.input_cache import InputSettings
from slipway.components.trainer.settings.learning_rate import LearningRateSettings
from slipway.components.trainer.settings.step import StepSettings
from slipway.components.trainer.settings.watch import WatchSettings
from slipway.pipeline.config.json_schema import workload_schema

# Component's settings -> the section of the file that holds them, by its name in the schema.
SECTIONS = {
    BlowUpSettings: "BlowUpSettings",
    CheckpointSettings: "CheckpointSettings",
    ComputeSettings: "TrainConfig",
    EarlyStoppingSettings: "EarlyStoppingSettings",
    Freshness: "Freshness",
    InputSettings: "InputSettings",
    LearningRateSettings: "LearningRateSettings",
    Limits: "DataGateConfig",
    NumberFormat: "NumberFormatConfig",
    Options: "DataConfig",
    ServingLimits: "ServingConfig",
    SourceLimits: "SourceLimits",
    StepSettings: "TrainConfig",
    Threshold: "Threshold",
    WatchSettings: "TrainConfig",
}
# Null in the file stands for what another key says, or for the component's empty text.
OTHER_DEFAULTS = {(Limits, "max_bad_share"), (NumberFormat, "thousands"), (NumberFormat, "unit")}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def test_format_that_can_be_chosen_is_one_that_is_read():
    assert workload_schema()["$defs"]["DataConfig"]["properties"]["format"]["enum"] == [
        *FORMATS,
        "sql",
        "bigquery",
    ]


def test_size_of_a_file_of_examples_is_left_to_the_source_s_plan_in_both():
    keys = workload_schema()["$defs"]["DataConfig"]["properties"]
    assert Options().target_shard_bytes is keys["shard_mb"]["default"] is None


def default_of(setting):
    made = setting.default if setting.default_factory is MISSING else setting.default_factory()
    return json.loads(json.dumps(made))


@pytest.mark.parametrize(("component", "section"), SECTIONS.items())
def test_default_bounds_and_description_of_the_schema_are_the_components(component, section):
    keys = workload_schema()["$defs"][section]["properties"]
    for setting in (each for each in fields(component) if each.metadata):
        shown = keys[setting.name]
        if (component, setting.name) in OTHER_DEFAULTS:
            assert shown["default"] is None, setting.name
        elif setting.default is MISSING and setting.default_factory is MISSING:
            assert "default" not in shown, setting.name
        else:
            assert shown["default"] == default_of(setting), setting.name
        # Of null, the section tells what it stands for.
        assert shown["description"].startswith(setting.metadata["description"].removesuffix(".")), (
            setting.name
        )
        whole = shown["anyOf"][0] if "anyOf" in shown else shown
        bounds = {BOUNDS[key]: bound for key, bound in setting.metadata.items() if key in BOUNDS}
        assert {key: whole[key] for key in BOUNDS.values() if key in whole} == bounds, setting.name

"""The workload file's defaults, bounds and descriptions are the components' own."""

import json
from dataclasses import MISSING, fields

import pytest

from slipway.components.trainer.settings.blow_up import BlowUpSettings
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings
from slipway.components.trainer.settings.input import InputSettings
from slipway.components.trainer.settings.step import LearningRateSettings, StepSettings
from slipway.components.trainer.settings.watch import WatchSettings
from slipway.pipeline.config.json_schema import workload_schema

# Component's settings -> the section of the file that holds them, by its name in the schema.
SECTIONS = {
    BlowUpSettings: "BlowUpSettings",
    CheckpointSettings: "CheckpointSettings",
    ComputeSettings: "TrainConfig",
    EarlyStoppingSettings: "EarlyStoppingSettings",
    InputSettings: "InputSettings",
    LearningRateSettings: "LearningRateSettings",
    StepSettings: "TrainConfig",
    WatchSettings: "TrainConfig",
}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def default_of(setting):
    made = setting.default if setting.default_factory is MISSING else setting.default_factory()
    return json.loads(json.dumps(made))


@pytest.mark.parametrize(("component", "section"), SECTIONS.items())
def test_default_bounds_and_description_of_the_schema_are_the_components(component, section):
    keys = workload_schema()["$defs"][section]["properties"]
    for setting in fields(component):
        shown = keys[setting.name]
        assert shown["default"] == default_of(setting), setting.name
        assert shown["description"] == setting.metadata["description"], setting.name
        whole = shown["anyOf"][0] if "anyOf" in shown else shown
        bounds = {BOUNDS[key]: bound for key, bound in setting.metadata.items() if key in BOUNDS}
        assert {key: whole[key] for key in BOUNDS.values() if key in whole} == bounds, setting.name

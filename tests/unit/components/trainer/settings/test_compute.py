"""Devices and backend of a training: what breaks a rule is refused by its key in the workload."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.compute import ComputeSettings

LAYOUT = {".*dense.*kernel": [None, "model"]}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"device": "npu"}, "train.device ('npu') is none of auto, cpu, gpu, tpu"),
        ({"backend": "mxnet"}, "train.backend ('mxnet') is none of tensorflow, jax, torch"),
        ({"cpu_devices": 0}, "train.cpu_devices (0) must be a whole number >= 1"),
        ({"model_parallel": 0}, "train.model_parallel (0) must be a whole number >= 1"),
        ({"layout": [".*"]}, "train.layout must map patterns to axes, not ['.*']"),
        ({"layout": {"(": [None]}}, "train.layout: '(' is not a regular expression: "),
        (
            {"layout": {".*": "model"}},
            "train.layout: '.*' must list null, batch or model for each dimension, not 'model'",
        ),
        (
            {"layout": {".*": [None, "rows"]}},
            "train.layout: '.*' must list null, batch or model for each dimension, not [None, 'rows']",
        ),
    ],
)
def test_value_that_breaks_a_rule_is_refused_by_its_key(values, words):
    with pytest.raises(ComponentError) as told:
        ComputeSettings(**values)
    assert told.value.message.startswith(words)


@pytest.mark.parametrize("layout", [{}, {".*kernel": [None, "batch"]}])
def test_devices_that_share_a_copy_need_a_layout_that_divides_a_variable(layout):
    with pytest.raises(
        ComponentError, match=r"^train\.model_parallel is 2, but train\.layout divides"
    ) as told:
        ComputeSettings(model_parallel=2, layout=layout)
    assert told.value.hint == "for instance train.layout: {'.*dense.*kernel': [null, model]}"
    assert ComputeSettings(model_parallel=1, layout=layout)
    assert ComputeSettings(model_parallel=2, layout={**layout, **LAYOUT})


def test_axes_of_json_are_those_that_were_given():
    settings = ComputeSettings(model_parallel=2, layout=LAYOUT)
    assert settings.layout == {".*dense.*kernel": (None, "model")}
    assert ComputeSettings.from_json(settings.to_json()) == settings

"""How a layout divides variables, as Keras and the training do it."""

from types import SimpleNamespace

import pytest

from slipway.components.preflight.weight_layout import WeightLayout, host_without_all


def variable(path, *shape):
    return SimpleNamespace(path=path, shape=shape)


WIDE, MY_WIDE, BIAS = (
    variable("wide/kernel", 8, 4),
    variable("my/wide/kernel", 8, 4),
    variable("wide/bias", 4),
)
PARTS = {"model": 2, "batch": 4, None: 1}


@pytest.mark.parametrize(
    ("asked", "axes"),
    [
        (WIDE, (None, "model")),
        (MY_WIDE, ()),
        (BIAS, ()),
        (variable("adam/wide_kernel_momentum", 8, 4), (None, "model")),
        # The slot of another weight, whose name only ends alike.
        (variable("adam/my_wide_kernel_velocity", 8, 4), ()),
        # Adafactor's rows have another shape than their weight: they are whole on each device.
        (variable("adafactor/wide_kernel_row", 8), ()),
        (variable("adam/iteration"), ()),
    ],
)
def test_a_slot_of_the_optimizer_is_divided_as_its_weight(asked, axes):
    layout = WeightLayout({"wide/kernel": (None, "model")}, [WIDE, MY_WIDE, BIAS])

    assert layout.axes(asked) == axes
    assert layout.fault([WIDE, MY_WIDE, BIAS], PARTS) is None


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({".*kernel": (None, "model"), "wide/.*": (None, "model")}, "matches '.*kernel' and 'wide/.*'"),
        ({".*bias": (None, "model")}, "'.*bias' names 2 dimensions, but wide/bias has 1: (4,)"),
        ({".*bias": ("batch",)}, ""),
        ({".*bias": ("model",), "wide/bias": (None,)}, ""),  # a whole path comes before patterns
        ({"odd": ("model",)}, "odd has 5 in dimension 0, which is not a multiple of 2"),
    ],
)
def test_what_a_training_refuses_is_told(layout, words):
    variables = [WIDE, MY_WIDE, BIAS, variable("odd", 5)]
    fault = WeightLayout(layout, variables).fault(variables, PARTS)

    assert (fault is None) == (not words)
    assert fault is None or (words in fault.words and fault.remedy)


def test_a_host_must_have_all_parts_of_a_model_though_not_of_one_copy():
    assert host_without_all([[0, 0], [1, 1]]) is None
    assert host_without_all([[0, 1], [1, 0]]) is None
    assert host_without_all([[0, 0, 1, 1], [0, 0, 1, 1]]) == 0

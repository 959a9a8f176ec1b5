"""A model that brings its own fit is known by its source, and asks for a CPU."""

import sys

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.custom_fit import Rows, has_custom_fit, require_cpu, require_steps

BUILD = "def build_model(features, hyperparameters): ...\n"


def test_a_function_fit_beside_build_model_is_an_own_fit(module):
    path = module("fitted", BUILD + "def fit(model, rows, hyperparameters): ...\nraise RuntimeError\n")
    assert has_custom_fit(path)
    assert "fitted" not in sys.modules, "the module is read, not imported"


def test_an_imported_fit_counts_as_well(module):
    assert has_custom_fit(
        module("borrowed", "from slipway.components.trainer.models.boosted_trees import build_model, fit\n")
    )


def test_a_fit_inside_of_something_else_is_none(module):
    inside = BUILD + "class Model:\n    def fit(self): ...\ndef other():\n    def fit(): ...\n"
    assert not has_custom_fit(module("stepwise", inside))


def test_the_models_that_come_along_train_as_they_should():
    models = "slipway.components.trainer.models"
    assert has_custom_fit(f"{models}.boosted_trees.build_model")
    assert not any(
        has_custom_fit(f"{models}.{name}.build_model") for name in ("wide_and_deep", "cnn", "residual")
    )


def test_rows_that_weigh_nothing_are_left_out_with_their_groups():
    x, groups = np.arange(3.0), np.array([7, 8, 7])
    rows = Rows(features={}, values={"x": x}, labels=x, seed=1, weights=np.array([0, 1, 2]), groups=groups)
    assert rows.that_count().groups.tolist() == [8, 7]


@pytest.mark.parametrize(
    ("device", "backend", "told"),
    [
        (
            "tpu",
            "tensorflow",
            "train.device is tpu, but trees fits its model by a function of its own, on the CPU",
        ),
        ("gpu", "tensorflow", "train.device is gpu"),
        ("auto", "jax", "train.backend is jax"),
    ],
)
def test_what_its_own_fit_cannot_follow_is_refused(device, backend, told):
    with pytest.raises(ComponentError, match=told):
        require_cpu("trees.build_model", device=device, backend=backend)


def test_where_a_device_is_found_by_itself_it_is_fitted_on_the_cpu():
    require_cpu("trees.build_model", device="auto", backend="tensorflow")


def test_preflight_has_no_step_of_it_to_compile(module):
    path = module("grown", BUILD + "def fit(model, rows, hyperparameters): ...\n")
    with pytest.raises(ComponentError, match="no training step to compile for a TPU"):
        require_steps(path)

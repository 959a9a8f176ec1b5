"""Functions beside `build_model` are known by their source, and the kind of a fit by its parameters."""

import sys

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.custom_functions import (
    custom_function,
    has_custom_callbacks,
    has_custom_loop,
    parameters_of,
)

BUILD = "def build_model(features, hyperparameters): ...\n"


@pytest.mark.parametrize(
    ("text", "is_loop"),
    [
        ("def fit(model, data, context): ...", True),
        ("def fit(net, data, context, *, more=1): ...", True),
        ("def fit(model, rows, hyperparameters): ...", False),
        ("fit = None", False),
        ("fit: object", False),
        ("fit: object = None", False),
        ("class A:\n    def fit(model, data, context): ...", False),
        ("def fit(model, rows, hyperparameters): ...\ndef fit(model, data, context): ...", True),
    ],
)
def test_a_loop_is_distinguished_from_a_fit_at_once_by_its_parameters(module, text, is_loop):
    path = module("looped", f"{BUILD}{text}\nraise RuntimeError")
    assert has_custom_loop(path) == is_loop
    assert "looped" not in sys.modules, "the module is read, not imported"


@pytest.mark.parametrize("told", ["data, hyperparameters", "rows, context", "context, data", "data"])
def test_a_fit_that_could_be_either_is_refused(module, told):
    with pytest.raises(
        ComponentError, match=rf"either\.fit\(model, {told}\) is neither a loop nor"
    ) as refused:
        has_custom_loop(module("either", f"{BUILD}def fit(model, {told}): ..."))
    assert "fit(model, rows, hyperparameters) where it fits all rows" in refused.value.hint


def test_an_imported_loop_is_followed_to_its_source(module):
    module("first", "def fit(model, data, context): ...")
    module("second", "from first import fit as train")
    path = module("third", f"from second import train as fit\n{BUILD}")
    assert parameters_of(path, "fit") == ("model", "data", "context")
    assert has_custom_loop(path)


@pytest.mark.parametrize(
    "text",
    [
        "from trees import *",
        "try:\n    from trees import fit\nexcept ImportError:\n    fit = None",
        "from trees import *\nfrom keras.ops import *\nfrom starred import *",
    ],
)
def test_a_fit_is_found_however_it_is_imported(module, text):
    module("trees", "def fit(model, rows, hyperparameters): ...")
    path = module("starred", f"{text}\n{BUILD}")
    assert parameters_of(path, "fit") == ("model", "rows", "hyperparameters")
    others = ("no_such_package.part", "no_such_module", "keras", "keras.ops")
    path = module("bare", "".join(f"from {other} import *\n" for other in others) + BUILD)
    assert parameters_of(path, "fit") is None


@pytest.mark.parametrize(
    "text", ["fit = trees.fit", "if True:\n    def fit(model, rows, hyperparameters): ...", "class fit: ..."]
)
def test_a_fit_that_would_go_unnoticed_is_refused(module, text):
    with pytest.raises(ComponentError, match=r"bound\.fit is not a function that the module's source shows"):
        has_custom_loop(module("bound", f"import trees\n{BUILD}{text}\n"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
def test_source_is_read_in_its_own_encoding(tmp_path, module, encoding):
    path = module("encoded", BUILD)
    text = f"# coding: {encoding}\n# é\ndef fit(model, data, context): ...\n{BUILD}"
    (tmp_path / "encoded.py").write_text(text, encoding=encoding)
    assert has_custom_loop(path)
    assert not has_custom_callbacks(path)


def test_what_is_imported_from_nowhere_or_in_a_circle_has_unknown_parameters(module):
    assert parameters_of(module("lost", "from no_such_module import fit"), "fit") == ()
    module("left", "from right import fit")
    assert parameters_of(module("right", "from left import fit"), "fit") == ()
    assert parameters_of(module("none", BUILD), "fit") is None


def test_keras_module_of_that_name_is_no_function_of_callbacks(module):
    assert not has_custom_callbacks(module("with_keras", f"from keras import callbacks\n{BUILD}"))
    path = module("with_own", f"{BUILD}def callbacks(context):\n    return []\n")
    assert has_custom_callbacks(path)
    assert custom_function(path, "callbacks")(None) == []


@pytest.mark.parametrize(
    "text",
    [
        "def callbacks(): ...",
        "def callbacks(context, more): ...",
        "async def callbacks(): ...",
        "callbacks = functools.partial(print, 1)",
        "callbacks: object = lambda context: []",
        "if True:\n    def callbacks(context): ...",
        "try:\n    callbacks = []\nexcept ImportError: ...",
    ],
)
def test_callbacks_of_another_form_are_refused(module, text):
    words = r"other\.callbacks is not a function of one parameter"
    with pytest.raises(ComponentError, match=words) as refused:
        has_custom_callbacks(module("other", f"{BUILD}{text}\n"))
    assert refused.value.hint.startswith("write def callbacks(context)")


def test_the_name_within_something_else_is_not_the_modules(module):
    inside = (
        "def train():\n    callbacks = []\nclass A:\n    callbacks = []\n[callbacks for callbacks in ()]\n"
    )
    assert not has_custom_callbacks(module("within", f"import keras.callbacks as callbacks\n{BUILD}{inside}"))

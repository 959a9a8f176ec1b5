"""Errors of tracing are told by the user's layer and line, with what to write instead."""

import importlib.util
import sys
import types

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.trace_error import explain, layer_and_line


class TracerArrayConversionError(TypeError):
    """Named as JAX's."""


class TracerBoolConversionError(TypeError):
    """Named as JAX's."""


class UnexpectedTracerError(Exception):
    """Named as JAX's."""


class NonConcreteBooleanIndexError(IndexError):
    """Named as JAX's."""


class ConcretizationTypeError(TypeError):
    """Named as JAX's."""


ConcretizationTypeError.__module__ = "jax.errors"


class Layer:
    """As Keras' own: known by name and module."""

    name = "culprit"

    def __call__(self, value):
        return self.call(value)


class Loss:
    name = "squared"

    def __call__(self, value):
        return self.call(value)


class Model(Layer):
    name = "whole"


for base in (Layer, Loss, Model):
    base.__module__ = "keras.src.somewhere"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Makes a module of a user's, and takes its dotted path away afterwards."""

    def module(text: str) -> types.ModuleType:
        (tmp_path / "traced_workload.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "traced_workload", raising=False)
        import traced_workload

        return traced_workload

    yield module
    sys.modules.pop("traced_workload", None)


PATH = "traced_workload.build_model"


def caught(call, *arguments) -> BaseException:
    try:
        call(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def raising(error):
    def call(value):
        raise error

    return call


def test_layer_line_and_remedy_are_reported(own):
    module = own("def call(self, value):\n    return value(1)\n")
    layer = type("Own", (Layer,), {"call": module.call})()
    model = type("Functional", (Model,), {"call": lambda self, value: layer(value)})()

    told = explain(caught(model, raising(TracerBoolConversionError("Abstract tracer"))), PATH)

    assert told.place == "the layer 'culprit' (Own), traced_workload.py, line 2"
    assert (told.cause, told.layer) == ("value", "culprit")
    assert "Abstract tracer" not in told.message
    assert "ops.cond" in told.remedy


def test_a_loss_is_a_place_and_no_layer(own):
    loss = type("LossFunctionWrapper", (Loss,), {"call": lambda self, value: value(1)})()

    told = explain(caught(loss, raising(TracerArrayConversionError("__array__"))), "")

    assert (told.place, told.layer) == ("the loss 'squared'", "")
    assert told.remedy == "keras.ops instead of numpy"


@pytest.mark.parametrize(
    ("error", "cause", "words"),
    [
        (UnexpectedTracerError("escaped"), "leak", "an earlier call has kept"),
        (NonConcreteBooleanIndexError("index"), "value", "the shape of a result depends on values"),
        (ConcretizationTypeError("size argument of jnp.nonzero must be static"), "value", "fixed shapes"),
        (ValueError("my batch size argument must be even"), "other", "ValueError: my batch size argument"),
        (
            ValueError("must be alike. Received: target.shape=(8, 1), output.shape=(8, 10)"),
            "shape",
            "the label has the shape (8, 1), the model's output (8, 10): the loss needs equal shapes",
        ),
        (ValueError("y_true and y_pred have different structures."), "shape", "more than one output"),
        (ValueError("Triggering __jax_array__() during"), "other", "or given to a function that takes"),
        (ValueError("The structure of `inputs` doesn't match the"), "shape", "other inputs than its own"),
        (ValueError("`ragged=True` is not supported with the jax"), "shape", "dense tensors of fixed shapes"),
        (ValueError("`sparse=True` can only be used with the"), "shape", "sparse=True is asked for"),
        (ValueError("synchronized=True is only supported with"), "tensorflow", "an argument of TensorFlow's"),
        (ValueError("Reverse-mode differentiation does not work for"), "value", "it has no gradient"),
        (AttributeError("DynamicJaxprTracer has no attribute numpy"), "value", "NumPy wants a value"),
        (AttributeError("DynamicJaxprTracer has no attribute get_shape"), "tensorflow", "have no get_shape"),
        (
            TypeError("complex does not accept dtype bfloat16 at position 0."),
            "value",
            "not take bfloat16, in",
        ),
        (ValueError("RFFT input must be float32 or float64, got bfloat16"), "value", "not take bfloat16, in"),
        (
            TypeError("contracting dimensions to have the same shape, got (3,) and (4,)."),
            "shape",
            "has 3 and 4",
        ),
        (
            TypeError("add got incompatible shapes for broadcasting: (3, 5), (4,)."),
            "shape",
            "(3, 5) and (4,) do",
        ),
        (
            TypeError("Invalid input type. Received: input type=bfloat16"),
            "value",
            "does not take bfloat16, in",
        ),
        (ValueError("[JAX RNG] When tracing a JAX function"), "value", "without a seed that changes"),
        (
            OverflowError("Python int 4000000000 too large to convert to int32"),
            "value",
            "4000000000 does not",
        ),
        (
            OverflowError("Python integer -5000000000 out of bounds for int32"),
            "value",
            "-5000000000 does not",
        ),
        (OverflowError("Got <class 'int'> with value 4000000000"), "value", "4000000000 does not fit into"),
        (OverflowError("Python integer 300 out of bounds for uint8"), "other", "300 out of bounds for uint8"),
        (TypeError("JAX arrays are immutable and do not"), "value", "changed in place"),
        (ValueError("no such axis\nand more"), "other", "ValueError: no such axis"),
    ],
)
def test_each_error_has_its_words(error, cause, words):
    told = explain(caught(raising(error), 1), "")

    assert told.cause == cause
    assert words in told.words


@pytest.fixture
def library(tmp_path):
    """Makes a module of that name and text, in a folder `tensorflow`."""

    def module(name: str, text: str) -> types.ModuleType:
        file = tmp_path / "tensorflow" / f"{name}.py"
        file.parent.mkdir()
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(name, file)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    return module


class JaxStackTraceBeforeTransformation(Exception):  # noqa: N818 (JAX's name)
    """Named as JAX's."""


def test_what_fails_in_a_gradient_is_placed_where_it_was_traced(own):
    module = own("def call(value):\n    return value(1)\n")
    before = caught(module.call, raising(JaxStackTraceBeforeTransformation()))
    failed = ValueError("Reverse-mode differentiation does not work for lax.while_loop")
    failed.__cause__ = before

    assert explain(caught(raising(failed), 1), PATH).place == "traced_workload.py, line 2"
    failed.__cause__ = KeyError("another")
    assert explain(caught(raising(failed), 1), PATH).place == ""


def test_what_fails_within_tensorflow_is_reported_as_a_call_of_it(own, library):
    ops = library("tensorflow.ops", "def unique(value):\n    raise TypeError('no tensor')\n")
    module = own("def loss(unique):\n    return unique(1)\n")

    told = explain(caught(module.loss, ops.unique), PATH)

    assert told.cause == "tensorflow"
    assert told.place == "traced_workload.py, line 2"


def test_operations_of_tensorflow_that_no_tpu_has_are_not_mended_by_another_backend(own, library):
    ops = library(
        "tensorflow.python.ops.script_ops", "def numpy_function(value):\n    raise TypeError('no')\n"
    )
    module = own("def loss(numpy_function):\n    return numpy_function(1)\n")

    told = explain(caught(module.loss, ops.numpy_function), PATH)

    assert (told.cause, told.place) == ("host", "traced_workload.py, line 2")
    assert "preprocessing_fn" in told.remedy


def test_the_operation_is_known_where_tensorflow_cuts_its_own_lines_from_the_traceback(own, library):
    text = "def filtered(fn):\n    def call(value):\n        raise TypeError(fn)\n    return call\n"
    utils = library("tensorflow.python.util.traceback_utils", text)
    module = own("def loss(call):\n    return call(1)\n")

    def dispatcher(module):
        dispatch_target = type("Operation", (), {"__module__": module})
        return lambda value: dispatch_target(value)

    for module_of_operation, cause in (("array_ops", "tensorflow"), ("script_ops", "host")):
        call = utils.filtered(dispatcher(f"tensorflow.python.ops.{module_of_operation}"))
        assert explain(caught(module.loss, call), PATH).cause == cause


@pytest.mark.parametrize("error", [TypeError("no tensor"), TracerArrayConversionError("__array__")])
def test_a_layer_of_keras_that_computes_on_the_host_is_not_mended_by_keras_ops(own, library, error):
    ops = library("tensorflow.ops", "def hashed(error):\n    raise error\n")
    keras_own = type("Hashing", (Layer,), {"call": lambda self, value: ops.hashed(value)})
    keras_own.__module__ = "keras.src.layers"
    module = own("def build_model(layer, value):\n    return layer(value)\n")

    told = explain(caught(module.build_model, keras_own(), error), PATH)

    assert (told.cause, told.layer) == ("host", "culprit")
    assert told.place == "the layer 'culprit' (Hashing), traced_workload.py, line 2"
    assert "preprocessing_fn" in told.remedy
    assert "keras.ops" not in told.remedy


def test_a_layer_of_the_users_is_not_judged_by_its_name(own, library):
    ops = library("tensorflow.ops", "def hashed(value):\n    raise TypeError('no tensor')\n")
    module = own("def call(self, hashed):\n    return hashed(1)\n")

    told = explain(caught(type("Hashing", (Layer,), {"call": module.call})(), ops.hashed), PATH)

    assert told.cause == "tensorflow"


@pytest.mark.parametrize("name", ["somewhere.ops", "keras.src.backend.tensorflow.ops"])
def test_what_fails_below_a_folder_of_tensorflows_name_is_no_call_of_it(own, library, name):
    ops = library(name, "def unique(value):\n    raise TypeError('no tensor')\n")
    module = own("def loss(unique):\n    return unique(1)\n")

    assert explain(caught(module.loss, ops.unique), PATH).cause == "other"


def test_words_of_jax_are_known_where_jax_raises_them(own, library):
    text = "def reshape(value):\n    raise TypeError('Shapes must be 1D sequences of concrete values')\n"
    module = own("def loss(reshape):\n    return reshape(1)\n")

    assert explain(caught(module.loss, library("jax._src.core", text).reshape), PATH).cause == "value"


def test_an_error_of_our_own_keeps_its_words_and_its_remedy():
    layer = type("Own", (Layer,), {"call": lambda self, value: value(1)})()

    told = explain(caught(layer, raising(ComponentError("so: not", hint="otherwise"))), "")

    assert (told.message, told.remedy) == ("the layer 'culprit' (Own): so: not", "otherwise")


def layer_of(module, name, inner):
    """A layer of a module's, named as its class, that calls `inner`."""
    kind = type(name, (Layer,), {"name": name.lower(), "call": lambda self, value: inner(value)})
    kind.__module__ = module
    return kind()


@pytest.mark.parametrize(
    ("modules", "told"),
    [
        (("keras.src.a", "keras.src.b"), "outer"),
        (("keras.src.a", "model"), "inner"),
        (("model", "keras.src.b"), "inner"),
        (("model", "model"), "inner"),
    ],
)
def test_what_a_layer_of_keras_is_made_of_is_told_as_that_layer(modules, told):
    outer, inner = modules
    layer = layer_of(outer, "Outer", layer_of(inner, "Inner", raising(ValueError("no"))))
    model = type("Functional", (Model,), {"call": lambda self, value: layer(value)})()

    assert explain(caught(model, 1), "").layer == told


@pytest.mark.parametrize(
    "words", ["Unable to automatically build the model", "Could not automatically infer the output shape"]
)
def test_the_error_that_keras_raised_another_over_is_the_one_told(words):
    def build():
        try:
            raise TracerBoolConversionError("Abstract tracer")
        except TypeError as error:
            raise RuntimeError(f"{words}. {error}")  # noqa: B904 (as Keras)

    assert explain(caught(build), "").cause == "value"


def test_an_error_that_keras_could_not_make_again_is_told_by_the_one_it_hides():
    def infer():
        try:
            raising(TracerBoolConversionError("Abstract tracer"))(None)
        except TracerBoolConversionError:
            "".__getattribute__("_error_repr")  # as JAX's class does with a text

    assert explain(caught(infer), "").cause == "value"


def test_a_call_is_placed_by_its_callers(own):
    module = own("def call(self, value):\n    return value()\n")
    layer = type("Own", (Layer,), {"call": module.call})()

    assert layer(lambda: layer_and_line(sys._getframe(), PATH)) == (
        "the layer 'culprit' (Own), traced_workload.py, line 2"
    )
    assert layer_and_line(sys._getframe(), PATH) == ""

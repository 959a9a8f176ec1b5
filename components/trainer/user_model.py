"""The user's `build_model`: found by its dotted path, called, and its result checked."""

import hashlib
import importlib
import importlib.util
import inspect
import json
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.framework_errors import frames_in, reason, rewritten, shortened, words
from slipway.components.missing_key import missing_key
from slipway.components.nearest import nearest
from slipway.components.source_closure import source_closure
from slipway.components.trainer.features import Feature
from slipway.components.trainer.labels import Label, is_multi_label

_EXACT = {"bfloat16": 2**8, "float16": 2**11}
"""The whole numbers up to which types of 16 bits have them all."""
_TWICE = re.compile(r'The name "(?P<name>[^"]*)" is used \d+ times in the model')
# Python's message about an argument that a function or class does not accept.
_UNEXPECTED = re.compile(r"(?P<called>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<name>.+?)'")


def source_root(dotted_path: str) -> Path:
    """Return the folder that the function's module is imported from, which another process needs on its path.

    Raises:
        ComponentError: the module does not exist.
    """
    file = source_file(dotted_path)
    packages = dotted_path.rpartition(".")[0].count(".") + (file.name == "__init__.py")
    return file.parents[packages]


def source_file(dotted_path: str) -> Path:
    """Return the file of the function's module. Arguments and errors are those of `source_root`."""
    module = dotted_path.rpartition(".")[0]
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise ComponentError(
            f"model {dotted_path!r}: there is no module {module}",
            hint="write train.model as package.module.function, importable from the project's folder",
        )
    return Path(spec.origin)


def source_digest(dotted_path: str) -> str:
    """Return a digest of the function's file and of the files that it imports from the same root.

    An installed package counts as a whole. Arguments and errors are those of `source_root`.
    """
    file, root = source_file(dotted_path), source_root(dotted_path)
    digests = source_closure([dotted_path], root=root)
    if not digests:
        files = sorted({file, *(root / dotted_path.partition(".")[0]).rglob("*.py")})
        digests = {str(f.relative_to(root)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def build_model(
    dotted_path: str,
    features: Mapping[str, Feature],
    hyperparameters: Mapping[str, object],
    *,
    pretrained: Path | None = None,
) -> Any:
    """Import the user's function and call it.

    Args:
        features: the inputs that the model may use, by name, without the label.
        hyperparameters: as in the workload file.
        pretrained: a weights file, passed to the function if it has an argument of this name; None if the
            weights come from elsewhere, for example for a model that is already trained.

    Returns:
        The compiled `keras.Model`. A model that Keras would build from its first batch is built from the
        features' shapes. One that takes only some of the features picks these, by name, out of all.

    Raises:
        ComponentError: the function is missing; returns something other than a compiled model, or a
            Sequential without an Input for several features; an input of the model is not a feature; or
            weights are given that it does not accept or that do not fit.
        Exception: whatever the user's code raises; see `describe`.
    """
    import keras

    module_name, _, function_name = dotted_path.rpartition(".")
    module = importlib.import_module(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ComponentError(f"model {dotted_path!r}: {module_name} has no function {function_name}")
    takes_weights = "pretrained" in inspect.signature(function).parameters
    if pretrained is not None and not takes_weights:
        raise ComponentError(
            f"train.pretrained is given, but {dotted_path} takes no argument pretrained",
            hint="write def build_model(features, hyperparameters, pretrained), and load the file that it "
            "names if it is not None",
        )
    weights = {"pretrained": pretrained} if takes_weights else {}
    for name in features:
        keras.backend.get_uid(name)  # so that Keras names no layer like the input of a feature
    try:
        model = function(dict(features), dict(hyperparameters), **weights)
    except Exception as error:
        unknown = isinstance(error, TypeError) and _unknown_hyperparameter(error, hyperparameters)
        if unknown:
            raise ComponentError(f"train.hyperparameters: {dotted_path} {unknown}") from error
        if found := _TWICE.search(str(error)):
            raise ComponentError(
                f"{with_line(dotted_path)}: two layers or inputs of the model are named {found['name']}",
                hint="give the layer another name, or rename the feature in preprocessing_fn",
            ) from error
        if pretrained is not None and _is_of_loading(error):
            raise ComponentError(
                f"train.pretrained: {pretrained.name} does not fit: {describe(error, dotted_path, lines=3)}",
                hint="build the layers that it was saved from before it is loaded; "
                "load_weights(file, skip_mismatch=True) leaves others as they are",
            ) from error
        raise
    if not isinstance(model, keras.Model):
        kind = type(model)
        is_legacy = kind.__module__.partition(".")[0] == "tf_keras"
        legacy = "tf_keras " if is_legacy else ""
        raise ComponentError(
            f"{with_line(dotted_path)} must return a keras.Model, not {legacy}{kind.__name__}",
            hint="import keras, which is Keras 3, in place of tf_keras" if is_legacy else "",
        )
    if not model.compiled:
        raise ComponentError(
            f"{with_line(dotted_path)} returns a model that is not compiled",
            hint="call model.compile(...) before return",
        )
    _require_known_inputs(model, features, dotted_path)
    take_inputs_by_name(model)
    _build(model, features, dotted_path)
    take_inputs_by_name(model)  # of models that it makes where it is built, too
    return model


def require_outputs(model: Any, label: Label, dotted_path: str) -> None:
    """Reject a model whose outputs do not match the label.

    The outputs of a subclassed model are unknown until it is called, so they are not checked here; its `loss`
    reports a mismatch later.

    Args:
        model: compiled and built.
        label: of the single output, by output name, or several side by side, see `labels`.
        dotted_path: of the user's function, for messages.

    Raises:
        ComponentError: an output is missing, unexpected or has the wrong shape, or several labels end in a
            softmax.
    """
    model = getattr(model, "_functional", None) or model  # a Sequential wraps a functional model
    outputs = getattr(model, "_outputs_struct", None)
    if outputs is None:
        return
    found = sorted(outputs) if isinstance(outputs, Mapping) else []
    if is_multi_label(label):
        _require_an_answer_each(model, len(label), dotted_path)
        return
    if isinstance(label, str):
        if len(found) > 1 or (isinstance(outputs, list | tuple) and len(outputs) > 1):
            raise ComponentError(
                f"{with_line(dotted_path)} returns a model with {len(outputs)} outputs, and transform.label "
                "names one",
                hint="write transform.label as {OUTPUT: COLUMN, ...}, a transformed column for each output",
            )
    elif found != sorted(label):
        has = ", ".join(found) if found else "outputs without names"
        raise ComponentError(
            f"transform.label names the outputs {', '.join(sorted(label))}, and the model of "
            f"{with_line(dotted_path)} has {has}",
            hint="return keras.Model(inputs, {OUTPUT: tensor, ...}) with these names",
        )


def _require_an_answer_each(model: Any, labels: int, dotted_path: str) -> None:
    shapes = [tuple(output.shape) for output in model.outputs]
    if len(shapes) != 1 or shapes[0][1:] != (labels,):
        has = ", ".join(str(list(shape)) for shape in shapes)
        raise ComponentError(
            f"transform.label names {labels} columns as one label, but the model of "
            f"{with_line(dotted_path)} returns {has}; it must return one tensor [rows, {labels}]",
            hint=f'let its last layer be Dense({labels}, activation="sigmoid"), with the loss '
            "binary_crossentropy",
        )
    # Functions of keras.ops become operations, but not layers.
    last = (getattr(model, "operations", None) or model.layers)[-1]
    activation = getattr(last, "activation", None)  # a function, or a layer
    kinds = (type(last).__name__, type(activation).__name__)
    if getattr(activation, "__name__", "") == "softmax" or "Softmax" in kinds:
        raise ComponentError(
            f"transform.label names {labels} columns as one label, several of which a row may have, but the "
            f"model of {with_line(dotted_path)} ends in a softmax, whose outputs sum to one",
            hint='let its last layer have activation="sigmoid"; if a row has exactly one of the labels, '
            "make one column of codes, and name that",
        )


def _build(model: Any, features: Mapping[str, Feature], dotted_path: str) -> None:
    """Build the weights of a model that does not declare its input shapes, for the given features.

    Args:
        model: a `keras.Model`; unchanged if already built, whatever layers it owns without calling them.
        features: by name, without the label.
        dotted_path: of the user's function, for messages.

    Raises:
        ComponentError: the model is a Sequential without an Input, and there are several features.
        Exception: whatever the user's code raises.
    """
    import keras

    if model.built:
        return
    if not isinstance(model, keras.Sequential):
        try:
            model({name: keras.KerasTensor((None, *f.shape), f.model_dtype) for name, f in features.items()})
        except Exception:
            if not model.run_eagerly:
                raise
            # Code that runs eagerly may need values, which real batches have.
            model({name: keras.ops.zeros((1, *f.shape), f.model_dtype) for name, f in features.items()})
        return
    if len(features) > 1:
        raise ComponentError(
            f"{with_line(dotted_path)} returns a Sequential without an Input, which takes one feature; "
            f"there are: {', '.join(features)}",
            hint="return a keras.Model with a keras.Input for each feature",
        )
    # Keras would pass the feature to the first layer as floats, rounded to bfloat16 on a TPU.
    ((name, feature),) = features.items()
    layers = list(model.layers)
    while model.layers:
        model.pop(rebuild=False)
    begun = [keras.Input(feature.shape, name=name, dtype=feature.model_dtype), *layers]
    for layer in begun[:-1]:
        model.add(layer, rebuild=False)
    model.add(begun[-1])


def _require_known_inputs(model: Any, features: Mapping[str, Feature], dotted_path: str) -> None:
    import keras

    model = getattr(model, "_functional", None) or model  # a Sequential wraps a functional model
    inputs = getattr(model, "_inputs_struct", None)
    called = next(each for each in type(model).__mro__ if "call" in vars(each))
    if inputs is None or not called.__module__.startswith("keras."):
        return  # a call of the user's own takes what it wants
    is_by_key = isinstance(inputs, Mapping)
    named = inputs if is_by_key else {each.name: each for each in keras.tree.flatten(inputs)}
    if foreign := [name for name in named if name not in features]:
        raise ComponentError(
            f"the model takes {', '.join(foreign)}, which is not a feature; there are: {', '.join(features)}",
            hint=f"let {dotted_path} make keras.Input(shape, name=FEATURE, dtype=...) for each feature that "
            "it takes",
        )
    for name, tensor in named.items():
        _require_exact_codes(name, tensor, features[name], dotted_path)


def _require_exact_codes(name: str, tensor: Any, feature: Feature, dotted_path: str) -> None:
    """Reject codes that reach a layer as floats, if it rounds them to 16 bits, by its policy."""
    if "float" not in tensor.dtype:
        return
    for node in tensor._keras_history.operation._outbound_nodes:
        layer = node.operation
        casts = getattr(layer, "autocast", False) and getattr(layer, "_convert_input_args", False)
        exact = _EXACT.get(layer.input_dtype) if casts else None
        if exact is not None and (feature.categories or 0) > exact:
            raise ComponentError(
                f"the model of {with_line(dotted_path)} takes {name}, {feature.categories:,} codes, as "
                f"{tensor.dtype}, which the layer {layer.name!r} rounds to {layer.input_dtype}: several of "
                f"those above {exact:,} become one",
                hint=f"give keras.Input of {name} dtype=features[{name!r}].model_dtype",
            )


def take_inputs_by_name(model: Any) -> None:
    """Make a functional model, and those within a model, pick their inputs by name out of a mapping of more.

    Keras pairs a mapping of more than the inputs with them by position, in alphabetical order of its keys:
    a model that leaves a feature out, as each tower of two does, would be trained on other features than it
    names.

    Args:
        model: any `keras.Model`; one without a mapping of inputs stays as it is: of a list, Keras itself
            picks the inputs by name.
    """
    for each in model._flatten_layers():
        is_new = "_standardize_inputs" not in vars(each)
        if is_new and isinstance(getattr(each, "_inputs_struct", None), Mapping):
            _take_by_name(each, each._inputs_struct)


def _take_by_name(model: Any, inputs: Mapping[str, object]) -> None:
    standardize = model._standardize_inputs

    def picked(given: Any) -> Any:
        is_more = isinstance(given, Mapping) and set(given) > set(inputs)
        return standardize({name: given[name] for name in inputs} if is_more else given)

    model._standardize_inputs = picked


def _unknown_hyperparameter(error: TypeError, hyperparameters: Mapping[str, object]) -> str:
    """Describe a hyperparameter that the called function does not accept; "" for any other error."""
    found = _UNEXPECTED.match(str(error))
    if found is None or found["name"] not in hyperparameters:
        return ""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    name = found["called"].removesuffix(".__init__").rpartition(".")[2]
    called = {**frame.f_globals, **frame.f_locals}.get(name)
    names = list(inspect.signature(called).parameters) if callable(called) else []
    near = nearest(found["name"], names)
    others = f"; nearest: {near}" if near else f"; there are: {', '.join(names)}" if names else ""
    return f"takes no {found['name']!r}{others}"


def _is_of_loading(error: BaseException) -> bool:
    """Return True if an error was raised while Keras or h5py read a file."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return any(f"/{part}/" in file for file in files for part in ("keras/src/saving", "h5py"))


def describe(error: BaseException, dotted_path: str, *, lines: int = 1) -> str:
    """Describe an error in one line: its message, and the file and line of the user's code it came through.

    Args:
        error: as caught, with its traceback.
        dotted_path: the user's function; code below its top package counts as the user's.
        lines: how many lines of the message to keep, joined into one; >= 1.
    """
    text = words(error).strip() or "no message"
    if missing := missing_key(error):
        text = f"{missing.words}; {missing.there}"
    kind = type(error).__name__
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    frames += frames_in(text)
    if told := rewritten(text):
        kind, text = told.kind, told.words
    message = f"{kind}: {shortened(' '.join(reason(text)[:lines]))}"
    line = own_line(frames, dotted_path)
    return f"{line}: {message}" if line else message


def with_line(dotted_path: str) -> str:
    """Return the user's function with its line, as "shop.model.build_model (shop/model.py, line 12)".

    Args:
        dotted_path: the user's function; without a line if it is not loaded or not written in their code.
    """
    module, _, name = dotted_path.rpartition(".")
    function: Any = getattr(sys.modules.get(module), name, None)
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = own_line([(code.co_filename, code.co_firstlineno)], dotted_path) if code else ""
    return f"{dotted_path} ({line})" if line else dotted_path


def own_line(frames: Iterable[tuple[str, int]], dotted_path: str) -> str:
    """Return the innermost line of the user's code among frames, as "model.py, line 12"; "" if there is none.

    Args:
        frames: file and line of each, the innermost last.
        dotted_path: the user's function; code below its top package counts as the user's.
    """
    try:
        root = source_root(dotted_path)
    except (ComponentError, ValueError):  # the path does not name a module
        return ""
    top = dotted_path.partition(".")[0]
    for name, line in reversed(list(frames)):
        if Path(name).is_relative_to(root):
            file = Path(name).relative_to(root)
            if file.parts[0] in (top, f"{top}.py"):
                return f"{file}, line {line}"
    return ""

"""The user's `build_model`: found by its dotted path, called, and what it returns looked at."""

import importlib
import importlib.util
import inspect
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.missing_key import missing_key
from slipway.components.nearest import nearest
from slipway.components.trainer.features import Feature

# What Python says of an argument that a function, or a class, does not have.
_UNEXPECTED = re.compile(r"(?P<called>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<name>.+?)'")


def source_root(dotted_path: str) -> Path:
    """The folder from which the function's module is imported: what another process needs on its path.

    Args:
        dotted_path: package.module.function.

    Raises:
        ComponentError: there is no such module.
    """
    file = source_file(dotted_path)
    packages = dotted_path.rpartition(".")[0].count(".") + (file.name == "__init__.py")
    return file.parents[packages]


def source_file(dotted_path: str) -> Path:
    """The file of the function's module; arguments and errors as of `source_root`."""
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


def build_model(
    dotted_path: str, features: Mapping[str, Feature], hyperparameters: Mapping[str, object]
) -> Any:
    """Imports the user's function and calls it.

    Args:
        dotted_path: package.module.function.
        features: what the model may use, by name, without the label.
        hyperparameters: as the workload file gives them.

    Returns:
        The compiled `keras.Model`.

    Raises:
        ComponentError: the function is missing, or returns something else than a compiled model.
        Exception: whatever the user's code raises; see `describe`.
    """
    import keras

    module_name, _, function_name = dotted_path.rpartition(".")
    module = importlib.import_module(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ComponentError(f"model {dotted_path!r}: {module_name} has no function {function_name}")
    try:
        model = function(dict(features), dict(hyperparameters))
    except TypeError as error:
        if words := _unknown_hyperparameter(error, hyperparameters):
            raise ComponentError(f"train.hyperparameters: {dotted_path} {words}") from error
        raise
    if not isinstance(model, keras.Model):
        raise ComponentError(f"{dotted_path} must return a keras.Model, not {type(model).__name__}")
    if not model.compiled:
        raise ComponentError(
            f"{dotted_path} returns a model that is not compiled",
            hint="call model.compile(...) before return",
        )
    return model


def _unknown_hyperparameter(error: TypeError, hyperparameters: Mapping[str, object]) -> str:
    """Which hyperparameter is no argument of what they were unpacked into, in words; "" if none is."""
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


def describe(error: BaseException, dotted_path: str) -> str:
    """One line about an error: its message, and the file and line of the user's code it came through.

    Args:
        error: as caught, with its traceback.
        dotted_path: the user's function; code below its top package counts as the user's.
    """
    text = str(error).strip() or "no message"
    if missing := missing_key(error):
        text = f"{missing.words}; {missing.there}"
    message = f"{type(error).__name__}: {text.splitlines()[0]}"
    try:
        root = source_root(dotted_path)
    except ComponentError:
        return message
    top = dotted_path.partition(".")[0]
    own = [
        (Path(frame.filename).relative_to(root), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(root)
    ]
    own = [(file, line) for file, line in own if file.parts[0] in (top, f"{top}.py")]
    return f"{own[-1][0]}, line {own[-1][1]}: {message}" if own else message

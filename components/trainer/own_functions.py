"""Functions that stand beside the user's `build_model` and take part in the training where they are there.

    fit(model, rows, hyperparameters)   fits the model at once, see `own_fit`
    fit(model, data, context)           takes the steps itself, see `loop.own_loop`
    callbacks(context)                  Keras callbacks for the training, see `loop.own_callbacks`

They are looked for in the source of its module, which is read and not imported: a training opens its devices
before anything imports Keras.
"""

import ast
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.trainer.user_model import source_file

FIT = "fit"
CALLBACKS = "callbacks"
CONTEXT = "context"
DATA = "data"
_MOST_IMPORTS = 5


def own_function(dotted_path: str, name: str) -> Callable[..., Any]:
    """A function beside `build_model`, imported.

    Args:
        dotted_path: of `build_model`.
        name: of the function; its module has one.
    """
    found: Callable[..., Any] = getattr(importlib.import_module(dotted_path.rpartition(".")[0]), name)
    return found


def parameters_of(dotted_path: str, name: str, *, imports: int = _MOST_IMPORTS) -> tuple[str, ...] | None:
    """The names of the positional parameters of a function beside `build_model`.

    Args:
        dotted_path: of `build_model`.
        name: of the function.
        imports: how many modules an imported name is followed through, >= 0.

    Returns:
        None where the module has no such function; () where it imports the name from where no source says
        what it is.

    Raises:
        ComponentError: there is no such module.
    """
    module = dotted_path.rpartition(".")[0]
    source = source_file(dotted_path)
    if source.suffix != ".py":
        function = getattr(importlib.import_module(module), name, None)
        return tuple(inspect.signature(function).parameters) if callable(function) else None
    found: tuple[str, ...] | None = None
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            found = tuple(each.arg for each in (*statement.args.posonlyargs, *statement.args.args))
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    package = module if source.name == "__init__.py" else module.rpartition(".")[0]
                    found = _imported(statement, alias.name, package=package, imports=imports)
    return found


def _imported(statement: ast.ImportFrom, name: str, *, package: str, imports: int) -> tuple[str, ...]:
    above = package.split(".")[: len(package.split(".")) - statement.level + 1] if statement.level else []
    module = ".".join([*above, *([statement.module] if statement.module else [])])
    if not imports:
        return ()
    try:
        return parameters_of(f"{module}.{name}", name, imports=imports - 1) or ()
    except (ComponentError, ValueError, OSError):
        return ()


def has_own_loop(dotted_path: str) -> bool:
    """Whether there is a `fit(model, data, context)`: its second or third parameter tells it.

    Args:
        dotted_path: of `build_model`.
    """
    parameters = parameters_of(dotted_path, FIT) or ()
    return parameters[1:2] == (DATA,) or parameters[2:3] == (CONTEXT,)


def has_own_callbacks(dotted_path: str) -> bool:
    """Whether there is a `callbacks(context)`.

    Args:
        dotted_path: of `build_model`.
    """
    return len(parameters_of(dotted_path, CALLBACKS) or ()) == 1

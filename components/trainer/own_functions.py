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
from collections.abc import Callable, Iterator
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.trainer.user_model import source_file

FIT = "fit"
CALLBACKS = "callbacks"
CONTEXT = "context"
DATA = "data"
_MOST_IMPORTS = 5
_OWN_NAMES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Parts of a module whose names are not the module's."""


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
    """Whether there is a `fit(model, data, context)`: its second and third parameter tell it.

    Args:
        dotted_path: of `build_model`.

    Raises:
        ComponentError: it could be meant for one, or for a fit of all rows.
    """
    parameters = parameters_of(dotted_path, FIT) or ()
    told = parameters[1:3]
    if told != (DATA, CONTEXT) and {DATA, CONTEXT} & set(told):
        raise ComponentError(
            f"{dotted_path.rpartition('.')[0]}.{FIT}({', '.join(parameters)}) is neither a loop nor a fit of "
            "all rows by its parameters",
            hint="name them fit(model, data, context) where it takes the steps, and "
            "fit(model, rows, hyperparameters) where it fits all rows at once",
        )
    return told == (DATA, CONTEXT)


def has_own_callbacks(dotted_path: str) -> bool:
    """Whether there is a `callbacks(context)`; a `callbacks` that is only imported may be anything.

    Args:
        dotted_path: of `build_model`.

    Raises:
        ComponentError: the module itself defines the name in another way.
    """
    if len(parameters_of(dotted_path, CALLBACKS) or ()) == 1:
        return True
    if _defines(dotted_path, CALLBACKS):
        raise ComponentError(
            f"{dotted_path.rpartition('.')[0]}.{CALLBACKS} is not a function of one parameter",
            hint="write def callbacks(context) at the module's top level, or rename it",
        )
    return False


def _defines(dotted_path: str, name: str) -> bool:
    """Whether the source of the module binds the name, other than by an import."""
    source = source_file(dotted_path)
    if source.suffix != ".py":
        return False
    return any(
        (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        for node in _outer_nodes(ast.parse(source.read_text(encoding="utf-8")))
    )


def _outer_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _OWN_NAMES):
            yield from _outer_nodes(child)

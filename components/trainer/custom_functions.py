"""Optional functions beside the user's `build_model` that take part in the training.

    fit(model, rows, hyperparameters)   fits the model at once, see `custom_fit`
    fit(model, data, context)           is a custom training loop, see `loop.custom_loop`
    callbacks(context)                  returns Keras callbacks for the training, see `loop.custom_callbacks`

They are found by parsing the source of the module, not by importing it: a training opens its devices before
anything imports Keras.
"""

import ast
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.parsed_source import parsed_source
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
"""Syntax nodes whose inner names do not belong to the module."""


def custom_function(dotted_path: str, name: str) -> Callable[..., Any]:
    """Import a function beside `build_model`.

    Args:
        name: of the function, which must exist in the module.
    """
    found: Callable[..., Any] = getattr(importlib.import_module(dotted_path.rpartition(".")[0]), name)
    return found


def parameters_of(dotted_path: str, name: str, *, imports: int = _MOST_IMPORTS) -> tuple[str, ...] | None:
    """Return the names of the positional parameters of a function beside `build_model`.

    Args:
        imports: how many modules to follow an imported name through, >= 0.

    Returns:
        None if the module has no such function; () if it imports the name from a module whose source does not
        show the parameters.

    Raises:
        ComponentError: the module does not exist.
    """
    module = dotted_path.rpartition(".")[0]
    source = source_file(dotted_path)
    if source.suffix != ".py":
        function = getattr(importlib.import_module(module), name, None)
        return tuple(inspect.signature(function).parameters) if callable(function) else None
    found: tuple[str, ...] | None = None
    package = module if source.name == "__init__.py" else module.rpartition(".")[0]
    tree = parsed_source(source.read_bytes())
    for statement in _outer_nodes(tree):
        if isinstance(statement, ast.FunctionDef) and statement.name == name and statement in tree.body:
            found = tuple(each.arg for each in (*statement.args.posonlyargs, *statement.args.args))
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    found = _imported(statement, alias.name, package=package, imports=imports) or ()
                elif alias.name == "*" and _is_near(_module_of(statement, package), module):
                    found = _imported(statement, name, package=package, imports=imports) or found
    return found


def _is_near(module: str, own: str) -> bool:
    """Return True if looking for a module, and for what it imports from, imports no package of others."""
    if module.partition(".")[0] in (own.partition(".")[0], "slipway"):
        return True
    found = None if "." in module else importlib.util.find_spec(module)
    return found is not None and found.submodule_search_locations is None


def _module_of(statement: ast.ImportFrom, package: str) -> str:
    above = package.split(".")[: len(package.split(".")) - statement.level + 1] if statement.level else []
    return ".".join([*above, *([statement.module] if statement.module else [])])


def _imported(statement: ast.ImportFrom, name: str, *, package: str, imports: int) -> tuple[str, ...] | None:
    """Return the parameters of a function in the module that a statement imports from; None: not known."""
    module = _module_of(statement, package)
    if not imports:
        return None
    try:
        return parameters_of(f"{module}.{name}", name, imports=imports - 1)
    except (ComponentError, ValueError, OSError, SyntaxError):
        return None


def has_custom_loop(dotted_path: str) -> bool:
    """Return True if there is a `fit(model, data, context)`, known by its second and third parameter.

    Raises:
        ComponentError: the parameters are neither those of a loop nor those of a fit of all rows; or the
            module binds the name otherwise than by a function or an import, which would go unnoticed.
    """
    known = parameters_of(dotted_path, FIT)
    if known is None and _defines(dotted_path, FIT):
        raise ComponentError(
            f"{dotted_path.rpartition('.')[0]}.{FIT} is not a function that the module's source shows",
            hint="write def fit(model, rows, hyperparameters), or fit(model, data, context), at the module's "
            "top level, or import it by its name: from MODULE import fit; or rename it",
        )
    parameters = known or ()
    told = parameters[1:3]
    if told != (DATA, CONTEXT) and {DATA, CONTEXT} & set(told):
        raise ComponentError(
            f"{dotted_path.rpartition('.')[0]}.{FIT}({', '.join(parameters)}) is neither a loop nor a fit of "
            "all rows by its parameters",
            hint="name them fit(model, data, context) where it takes the steps, and "
            "fit(model, rows, hyperparameters) where it fits all rows at once",
        )
    return told == (DATA, CONTEXT)


def has_custom_callbacks(dotted_path: str) -> bool:
    """Return True if there is a `callbacks(context)`; a `callbacks` that is only imported may be anything.

    Raises:
        ComponentError: the module itself defines the name as something else.
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
    """Return True if the module's source binds the name other than by an import, and not to None."""
    source = source_file(dotted_path)
    if source.suffix != ".py":
        return False
    nodes = list(_outer_nodes(parsed_source(source.read_bytes())))
    set_to_none = [target for node in nodes for target in _targets_of_none(node)]
    return any(
        (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        for node in nodes
        if node not in set_to_none
    )


def _targets_of_none(node: ast.AST) -> list[ast.expr]:
    """Return what a statement sets to None, or only gives a type."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    is_none = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets if is_none else []


def _outer_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _OWN_NAMES):
            yield from _outer_nodes(child)

"""Finds the hyperparameters that a model function takes by reading its source, without executing anything.

A misspelled name is thus reported before TensorFlow is loaded. Two forms are understood, also across several
functions: `build_model(features, hyperparameters)` passes them on to another such function, or unpacks them
into a dataclass or a function, as `Hyperparameters(**hyperparameters)`. If anything else happens to them,
their names are unknown here, and only the Trainer reports an unknown one.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slipway.pipeline.config.importable import SourceModule, read_module, words_for_unknown

# Expressions that could skip a call, or make it with other values.
_UNSURE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MOST_STEPS = 8  # calls to follow from function to function


def find_unknown_hyperparameters(names: Iterable[str], *, model: str, root: Path) -> dict[str, str]:
    """Return the names that a model function does not take, each with an error in words.

    The result is empty if the source does not show which names the function takes.

    Args:
        root: the project's root, from which modules are imported.
    """
    wanted = tuple(names)
    taken = hyperparameter_names(model, root=root) if wanted else None
    if taken is None:
        return {}
    return {
        name: f"{model} takes no hyperparameter of that name; {words_for_unknown(name, taken)}"
        for name in wanted
        if name not in taken
    }


def hyperparameter_names(model: str, *, root: Path) -> tuple[str, ...] | None:
    """Return the names that a model function takes, in source order; None if the source does not show them.

    Args:
        root: the project's root, from which modules are imported.
    """
    module, _, function = model.rpartition(".")
    place: _Place | None = _Place(module, function)
    for _ in range(_MOST_STEPS):
        found = _definition(place, root) if place else None
        if found is None:
            return None
        source, definition = found
        handed = _handed_on(definition)
        if handed is None:
            return None
        place = _place_of(handed.called, source)
        if handed.is_unpacked:
            end = _definition(place, root) if place else None
            return _names_of(end[1]) if end else None
    return None


@dataclass(frozen=True)
class _Place:
    module: str
    name: str


@dataclass(frozen=True)
class _Handed:
    """The callee to which a function passes its hyperparameters; `is_unpacked`: as keyword arguments."""

    called: ast.expr
    is_unpacked: bool


def _definition(place: _Place, root: Path) -> tuple[SourceModule, ast.stmt] | None:
    """Return the only statement that defines the name, with its module; None if there is not exactly one."""
    for _ in range(_MOST_STEPS):
        source = read_module(place.module, root=root)
        if source is None:
            return None
        found = [each for each in ast.walk(source.tree) if place.name in _bound(each)]
        if len(found) != 1 or found[0] not in source.tree.body:
            return None
        if not isinstance(found[0], ast.ImportFrom):
            return source, found[0]
        place = _imported(found[0], place.name, source)
    return None


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds itself, without those bound by its children."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg


def _imported(statement: ast.ImportFrom, name: str, source: SourceModule) -> _Place:
    original = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
    package = source.name.split(".") if source.is_package else source.name.split(".")[:-1]
    above = package[: len(package) - statement.level + 1] if statement.level else []
    return _Place(".".join(filter(None, [*above, statement.module])), original)


def _handed_on(definition: ast.stmt) -> _Handed | None:
    """Return what a function passes its second argument to, if it always does so and nothing else with it."""
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        return None
    positional = [*definition.args.posonlyargs, *definition.args.args]
    if len(positional) < 2:
        return None
    name = positional[1].arg
    uses = [node for node in ast.walk(definition) if isinstance(node, ast.Name) and node.id == name]
    if len(uses) != 1:
        return None
    simple = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)
    statement = next(
        (each for each in definition.body if isinstance(each, simple) and uses[0] in ast.walk(each)), None
    )
    if statement is None or any(isinstance(node, _UNSURE) for node in ast.walk(statement)):
        return None
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        if any(keyword.arg is None and keyword.value is uses[0] for keyword in call.keywords):
            return _Handed(call.func, is_unpacked=True)
        if len(call.args) > 1 and _is_all_of(call.args[1], uses[0]):
            return _Handed(call.func, is_unpacked=False)
    return None


def _is_all_of(argument: ast.expr, use: ast.Name) -> bool:
    """Return True if an argument holds all hyperparameters: `h`, `dict(h)` or `{"more": 1, **h}`."""
    if isinstance(argument, ast.Call) and isinstance(argument.func, ast.Name) and argument.func.id == "dict":
        return argument.args == [use]
    if isinstance(argument, ast.Dict):
        pairs = zip(argument.keys, argument.values, strict=True)
        return any(key is None and value is use for key, value in pairs)
    return argument is use


def _place_of(called: ast.expr, source: SourceModule) -> _Place | None:
    if isinstance(called, ast.Name):
        return _Place(source.name, called.id)
    if not (isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)):
        return None
    module = called.value.id
    for statement in source.tree.body:
        if module not in _bound(statement):
            continue
        if isinstance(statement, ast.ImportFrom):
            place = _imported(statement, module, source)
            return _Place(f"{place.module}.{place.name}", called.attr)
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names if alias.asname == module]
            return _Place(names[0], called.attr) if names else None
    return None


def _names_of(definition: ast.stmt) -> tuple[str, ...] | None:
    """Return the keywords that a dataclass or a function takes; None if it may take others."""
    if isinstance(definition, ast.FunctionDef) and not definition.decorator_list:
        arguments = definition.args
        named = (*arguments.args, *arguments.kwonlyargs)
        return None if arguments.kwarg else tuple(each.arg for each in named)
    if not isinstance(definition, ast.ClassDef) or definition.bases or definition.keywords:
        return None
    if [_last_name(each) for each in definition.decorator_list] != ["dataclass"]:
        return None
    if any(isinstance(each, ast.FunctionDef) and each.name == "__init__" for each in definition.body):
        return None
    fields = [each for each in definition.body if isinstance(each, ast.AnnAssign)]
    return tuple(each.target.id for each in fields if isinstance(each.target, ast.Name) and _is_set(each))


def _is_set(field: ast.AnnAssign) -> bool:
    """Return True if a dataclass takes the field as an argument."""
    annotation = ast.unparse(field.annotation)
    if "ClassVar" in annotation or "KW_ONLY" in annotation:
        return False
    made = field.value.keywords if isinstance(field.value, ast.Call) else []
    return not any(each.arg == "init" and ast.unparse(each.value) == "False" for each in made)


def _last_name(decorator: ast.expr) -> str:
    """Return a decorator's name without module and arguments, such as `dataclass`; "" if it sets `init`."""
    if isinstance(decorator, ast.Call):
        return "" if any(each.arg == "init" for each in decorator.keywords) else _last_name(decorator.func)
    return ast.unparse(decorator).rpartition(".")[2]

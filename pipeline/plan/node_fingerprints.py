"""Computes the fingerprint of each node of a graph: its settings, code and files, and its upstream nodes."""

import contextlib
import csv
import glob
import hashlib
import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from pathlib import Path
from platform import python_version
from types import MappingProxyType

from slipway.components.ingest.hub_address import data_set_and_path, without_revision
from slipway.components.project import installed_version
from slipway.components.source_closure import Closure, closure
from slipway.components.store_address import HF, is_elsewhere
from slipway.components.trainer.interpreter import place
from slipway.pipeline.fingerprint.data_digests import data_digests
from slipway.pipeline.fingerprint.fingerprint import Fingerprint, canonical_json
from slipway.pipeline.runs.graph import COMPONENT, Graph, Node
from slipway.pipeline.runs.record import Outputs

# Packages that the nodes' own code uses: another version may give another result.
_STACK = (
    "tfx",
    "apache-beam",
    "tensorflow",
    "tensorflow-transform",
    "tensorflow-model-analysis",
    "tensorflow-data-validation",
    "keras",
    "pyarrow",
    "numpy",
)

_TRAINING_STACK = frozenset(
    ("keras", "numpy", "tensorflow", "tensorflow-cpu", "tensorflow-tpu", "jax", "jaxlib", "libtpu", "torch")
)

# The packages that fit models, or search for them, for modules of ours.
_FITTERS = {
    "slipway.components.reference_models": ("scikit-learn", "scipy"),
    "slipway.components.trainer.models.boosted_trees": ("scikit-learn", "scipy"),
    "slipway.components.trainer.tuner_fn": ("keras-tuner",),
}

# The name of the fingerprint part for a resolver's result.
_FOUND = "external:artifacts that it finds"


@cache
def stack_versions() -> Mapping[str, str]:
    """Return the versions of Python and of the packages that results depend on, by name."""
    versions = {"python": python_version(), **installed_version()}
    for package in _STACK:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def own_parts(
    node: Node,
    *,
    roots: Sequence[Path],
    memo: Path | None,
    variables: Mapping[str, str] = MappingProxyType({}),
    store: Path | None = None,
) -> dict[str, str]:
    """Return a node's own dependencies, without those upstream or outside, by kind and name.

    Args:
        roots: the folders that user code is imported from, the project's first. Code inside them counts by
            its content, code outside by the versions of the packages.
        memo: the file that remembers digests of data files; see
            `slipway.pipeline.fingerprint.data_digests`.
        variables: environment variables that its process is started with, and that its result depends on.
        store: the file of the metadata store, which every run changes: that its code names it does not count.
    """
    params = _with_commit(node.params)
    parts = {f"param:{_shown(name)}": value for name, value in params.items()}
    parts[f"param:{COMPONENT}"] = f'"{node.type}"'
    code = _code(node, roots, memo, store)
    parts |= {f"code:{path}": digest for path, digest in code.digests.items()}
    parts |= {f"data:{name}": digest for name, digest in _data(node, memo).items()}
    modules = _modules_elsewhere(code.elsewhere)
    packages = _packages(modules, code.elsewhere)
    versions = {name: number for name in packages if (number := _version(name))}
    stack = {
        **versions,
        **variables,
        **stack_versions(),
        **_training_versions(node.params, packages, modules),
    }
    return parts | {f"stack:{name}": number for name, number in stack.items()}


def fingerprint_nodes(
    graph: Graph, own: Mapping[str, Mapping[str, str]], *, baseline: str, reference: str = ""
) -> dict[str, Fingerprint]:
    """Return the fingerprint of every node.

    Args:
        own: node id -> its `own_parts`.
        baseline: what the result of the resolver of the latest blessed model depends on; see
            `resolver_keys.baseline_key`.
        reference: the same for the resolver of the reference data; see `resolver_keys.reference_key`.
    """
    prints: dict[str, Fingerprint] = {}
    for node in graph.nodes:
        parts = dict(own[node.id])
        # A resolver's outputs depend only on what it finds, not on the nodes that made it.
        ups = node.upstream if node.found is None else ()
        parts |= {f"upstream:{up}": prints[up].key for up in ups if up not in node.gates}
        # It may read other outputs of the same nodes, or read them by other inputs.
        parts |= {f"input:{key}": taken for key, taken in node.inputs.items()}
        # Two nodes with equal settings do not share a result: their outputs need not be equal.
        parts |= {"node:id": node.id, "node:pipeline": graph.name}
        if node.finds_reference:
            parts["external:data to compare with"] = f"{node.finds_reference}: {reference}"
        elif node.finds_baseline:
            parts["external:latest blessed model"] = baseline
        elif node.found is not None:
            parts[_FOUND] = node.found
        elif node.is_resolver:
            # Its result cannot be predicted, so no two lookups count as the same.
            parts["external:content of the metadata store"] = str(time.time_ns())
        prints[node.id] = Fingerprint(parts)
    return prints


def found_key(outputs: Outputs) -> str:
    """Return a digest of a resolver's result: equal if it found the same artifacts in the same order.

    Two artifacts may lie at one place: what is imported from there again, or a table that is written anew.

    Args:
        outputs: output key -> artifacts, each with its `uri`, and its `id` if the metadata store knows it;
            empty if it found nothing.
    """
    found = {key: [[each["uri"], each.get("id")] for each in given] for key, given in outputs.items()}
    return hashlib.sha256(canonical_json(found).encode()).hexdigest()


def with_found(prints: Mapping[str, Fingerprint], node_id: str, found: str) -> dict[str, Fingerprint]:
    """Return the fingerprints of a run after a resolver found something other than predicted.

    Args:
        prints: the plan's fingerprints, in topological order.
        found: what it found, as returned by `found_key`.
    """
    now: dict[str, Fingerprint] = {}
    for name, fingerprint in prints.items():
        ups = (part.removeprefix("upstream:") for part in fingerprint.parts if part.startswith("upstream:"))
        changed = {f"upstream:{up}": now[up].key for up in ups if up in now}
        changed |= {_FOUND: found} if name == node_id else {}
        now[name] = Fingerprint({**fingerprint.parts, **changed})
    return now


def _with_commit(params: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters, with the commit of a data set on the Hub as one of its own."""
    given = params.get("input_base", "")
    if not given.startswith(f'"{HF}'):
        return dict(params)
    base = json.loads(given)
    data_set, _ = data_set_and_path(base)
    if not data_set.is_pinned:
        return dict(params)
    commit = {f"the commit of {data_set.name}": canonical_json(data_set.revision)}
    return {**params, "input_base": canonical_json(without_revision(base)), **commit}


def _modules_elsewhere(imported: Iterable[str]) -> set[str]:
    """Return the top-level modules of installed packages among imported ones."""
    return {name.partition(".")[0] for name in imported} - sys.stdlib_module_names - {"slipway"}


def _packages(modules: Iterable[str], imported: Collection[str]) -> set[str]:
    """Return the packages of top-level modules, and those with which modules of ours fit models.

    Args:
        imported: the dotted names of all imported modules.
    """
    fitters = (
        packages
        for ours, packages in _FITTERS.items()
        if any(f"{name}.".startswith(f"{ours}.") for name in imported)
    )
    found = {package for module in modules for package in _distributions(module)}.union(*fitters)
    return {_plain(package) for package in found}


def _plain(package: str) -> str:
    return package.lower().replace("_", "-")


@cache
def _distributions(module: str) -> tuple[str, ...]:
    """Return the packages with a top-level module, which may be installed for another interpreter only."""
    known = [module] if _version(module) else _modules().get(module, [module])
    # Nothing tells which of the packages that share a name, such as `google`, is meant.
    return tuple(known) if len(known) == 1 else ()


@cache
def _modules() -> Mapping[str, list[str]]:
    """Return the packages with each top-level module. It takes a quarter of a second."""
    return _by_module(distributions())


@cache
def _modules_of(site: Path, _changed_ns: int) -> Mapping[str, list[str]]:
    """Return the same of another interpreter's packages."""
    return _by_module(distributions(path=[str(site)]))


def _by_module(installed: Iterable[Distribution]) -> Mapping[str, list[str]]:
    packages: dict[str, list[str]] = {}
    for each in installed:
        # As `packages_distributions`, which fails for all if the metadata of one is damaged or in an old
        # encoding; such a package has no version, either.
        with contextlib.suppress(UnicodeError, TypeError, csv.Error):
            name = each.metadata["Name"]
            for module in _top_level(each) if name else ():
                packages.setdefault(module, []).append(name)
    return packages


def _top_level(package: Distribution) -> Collection[str]:
    declared = (package.read_text("top_level.txt") or "").split()
    files = () if declared else package.files or ()
    return declared or {
        file.parts[0] if len(file.parts) > 1 else file.stem for file in files if file.suffix == ".py"
    }


@cache
def _version(package: str) -> str:
    try:
        return version(package) or ""
    except (PackageNotFoundError, ValueError, TypeError):  # UnicodeError is a ValueError
        return ""


def _training_versions(
    params: Mapping[str, str], packages: Collection[str], modules: Collection[str]
) -> dict[str, str]:
    """Return the versions of the packages that a training uses in another interpreter or on another backend.

    The interpreter is not started: what counts is noted in its own virtual environment. Of any other, nothing
    is known.

    Args:
        packages: those of the node's code, by what is installed beside the pipeline.
        modules: the top-level modules that the code imports from installed packages.
    """
    interpreter, backend = (params.get(f"custom_config.{key}", "null") for key in ("interpreter", "backend"))
    name = json.loads(interpreter) or (sys.executable if backend in ('"jax"', '"torch"') else None)
    if not isinstance(name, str):
        return {}
    path = shutil.which(place(name))
    if path is None:
        return {}  # the Trainer says so
    sites = sorted((Path(path).parent.parent / "lib").glob("python*/site-packages"))
    noted = [folder.stem.partition("-") for site in sites for folder in sorted(site.glob("*.dist-info"))]
    wanted = _TRAINING_STACK.union(packages)
    if interpreter != "null":
        there = {_plain(package) for package, *_ in noted}
        known = _TRAINING_STACK | there
        # For example `haiku` of dm-haiku, which need not be installed beside the pipeline.
        unnamed = [
            each for each in sorted(modules) if known.isdisjoint({each, *map(_plain, _distributions(each))})
        ]
        found = [_modules_of(site, site.stat().st_mtime_ns) for site in sites if unnamed]
        those = (each.get(module, []) for each in found for module in unnamed)
        wanted |= {_plain(each[0]) for each in those if len(each) == 1}
    return {
        f"the training's {package.replace('_', '-')}": number
        for package, _, number in noted
        if _plain(package) in wanted
    }


def _shown(name: str) -> str:
    # The Trainer's settings are inside TFX's custom_config; the user knows them by the workload's keys.
    name = name.replace("custom_config.", "train.", 1)
    # Ingest's settings are one JSON text.
    return name.replace("ingest.", "data.", 1) if name.startswith("ingest.") else name


def _code(node: Node, roots: Sequence[Path], memo: Path | None, store: Path | None) -> Closure:
    # In a workload, paths may also start at the project's folder.
    named = (Path.cwd() / text for text in node.code if text.endswith(".py"))
    of_project = (roots[0] / text for text in node.code if text.endswith(".py"))
    modules = [path for path in dict.fromkeys((*named, *of_project)) if os.path.isfile(path)]  # noqa: PTH113  (False for a long text)
    files = [path for path in map(Path, node.files) if path.is_file()]
    dotted = [text for text in node.code if not text.endswith(".py")]
    # A module named by its file imports from its own folder.
    further = dict.fromkeys((*roots[1:], *(module.parent for module in modules)))
    dotted += [module.stem for module in modules]
    # Files in the first root, the project, are named by their relative path; others by their absolute path.
    needed = closure(dotted, root=roots[0], further=further)
    files += [path for path in map(Path, needed.files) if not store or path.resolve() != store.resolve()]
    found = data_digests([*modules, *files], base=roots[0], memo=memo)
    return needed._replace(digests=found | needed.digests)


def _data(node: Node, memo: Path | None) -> dict[str, str]:
    remote = [pattern for pattern in node.data if is_elsewhere(pattern)]
    found = {}
    if remote:
        from slipway.components.ingest import storage  # imports pyarrow: 0.2 s, needed by few runs

        # Any node but an ExampleGen says itself what is missing.
        listed = storage.list_files if "input_base" in node.params else storage.find_files
        # Uses the stores' own checksums, so that nothing is downloaded to detect changes.
        objects = {file.name: file for pattern in remote for file in listed(pattern)}
        found = {
            without_revision(name) if name.startswith(HF) else name: f"{file.checksum} {file.size_bytes}"
            for name, file in sorted(objects.items())
        }
    matched = {pattern: matching_files([pattern]) for pattern in node.data if pattern not in remote}
    files = sorted({file for each in matched.values() for file in each})
    if not files:
        return found
    # Files count by their names below where they are looked for: a folder's name may be a span, or a label.
    base = Path(*_common_parts([_place(pattern) for pattern, each in matched.items() if each]))
    return found | data_digests(files, base=base, memo=memo)


def own_parts_in(fingerprint: Fingerprint) -> dict[str, str]:
    """Return the `own_parts` that a fingerprint was made from."""
    kinds = ("code", "data", "param", "stack")
    return {name: value for name, value in fingerprint.parts.items() if name.partition(":")[0] in kinds}


def matching_files(patterns: Iterable[str]) -> list[Path]:
    """Return the files that match any of the patterns, sorted."""
    names = {name for pattern in patterns for name in glob.glob(pattern, recursive=True)}  # noqa: PTH207 (patterns are absolute)
    return sorted(path for path in map(Path, names) if path.is_file())


def _place(pattern: str) -> Path:
    """Return the folder in which a pattern's files are looked for, or a file is."""
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parent.parts))


def _common_parts(folders: Iterable[Path]) -> list[str]:
    common = []
    for parts in zip(*(folder.parts for folder in folders), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return common

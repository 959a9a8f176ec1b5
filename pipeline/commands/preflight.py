"""The command `preflight`: predicts how a training will run on a TPU, without a TPU."""

import hashlib
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import FileError
from slipway.components.preflight import advice
from slipway.components.preflight.chip_specs import CHIPS, Price
from slipway.components.preflight.compiler import (
    WITH_LIBTPU,
    Unanswered,
    adapt_to_compiler,
    all_package_versions,
    find_compiler,
    run_compiler,
    runtime_versions,
)
from slipway.components.preflight.finding import Training
from slipway.components.preflight.input_and_runtime_rules import NEEDED
from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.preflight.result import Preflight
from slipway.components.preflight.transformed import SCHEMA, SPLIT, Transformed, features_in
from slipway.components.preflight.verdict import judge
from slipway.components.project import PROJECT_ROOT, installed_version
from slipway.components.source_closure import source_closure
from slipway.components.store_address import GS
from slipway.components.trainer.custom_fit import require_steps, unjudged_steps
from slipway.components.trainer.custom_functions import has_custom_loop
from slipway.components.trainer.features import PlainFeature
from slipway.components.trainer.interpreter import place
from slipway.components.trainer.user_model import source_root
from slipway.components.typed_json import MisfitError, typed
from slipway.pipeline.commands.options import SEARCH_S
from slipway.pipeline.config import WorkloadChoice, WorkloadConfig
from slipway.pipeline.engine.processes.default_jobs import default_jobs
from slipway.pipeline.errors import UsageError
from slipway.pipeline.fingerprint.data_digests import data_digests
from slipway.pipeline.plan.named_files import named_files
from slipway.pipeline.plan.node_fingerprints import matching_files
from slipway.pipeline.runs import preflight_results
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import RunRecord, write_json
from slipway.pipeline.runs.run_target import OfWorkload
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.wiring.import_folders import import_folders
from slipway.pipeline.wiring.preflight_question import (
    has_best_nowhere,
    has_best_of_trials,
    named_slices,
    own_prices,
    searched_values,
    step_settings,
)
from slipway.pipeline.wiring.vertex_tpu_slices import TPU_SLICES

DEFAULT_SLICE = "v5e-8"
COMPILE_BYTES = 5 * 2**30
"""The memory assumed for one compiling process: ResNet50 took 4.3 GiB, the taxi workload 0.6 GiB."""
ONE_HOST = tuple(name for name, each in TPU_SLICES.items() if each.hosts == 1)
"""The slices of `--all`; others are compiled for only if they or their generation are named."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The options of the command line.

    Attributes:
        slices: names of slices, and of generations for all their slices; empty: the workload's slice, or
            else `DEFAULT_SLICE`.
        search_s: seconds to search for the largest batch that fits; 0: no search.
        limit_s: time limit in seconds for the compilation for one slice; None: `preflight.limit_s`.
        prices: prices of a chip-hour, as GENERATION=USD; they override `preflight.prices`.
        is_fast: whether to compile with the least effort.
    """

    slices: tuple[str, ...] = ()
    search_s: float = SEARCH_S
    limit_s: float | None = None
    prices: tuple[str, ...] = ()
    is_fast: bool = False


def preflight(chosen: WorkloadChoice, output: Path, wanted: Wanted) -> Preflight:
    """Compile the workload's training step for each slice, judge it, and store the result.

    Raises:
        UsageError: no run of the workload has transformed its data yet, or a price is invalid.
        ConfigError: the workload file is invalid, or there is no such slice.
        ComponentError: the model cannot be built.
    """
    config = chosen.config()
    require_steps(config.train.model)
    names = wanted.slices or (config.train.tpu or DEFAULT_SLICE,)
    slices = {each.name: each for name in names for each in named_slices(name)}
    made_at = datetime.now(UTC)
    prices = {**own_prices(config), **_prices(wanted.prices, month=f"{made_at:%Y-%m}")}
    history = History(output.absolute())
    transformed = _transformed(config, history, chosen.workload)
    questions = [
        Question(
            slice=each,
            features=transformed.features,
            search_s=wanted.search_s,
            is_fast=wanted.is_fast,
            **step_settings(config),
        )
        for each in slices.values()
    ]
    interpreter = _interpreter(config)
    training = Training(
        backend=config.train.backend,
        epochs=config.train.epochs,
        runtime=runtime_versions(interpreter),
        interpreter=config.train.interpreter or "",
        data_regions=_data_regions(config),
        tpu_region=config.cloud.vertex.region or "",
        made_otherwise=transformed.made_otherwise,
        changed_since=transformed.changed_since,
        train_files=transformed.train_files,
        train_bytes=transformed.train_bytes,
        train_rows=transformed.train_rows,
        input_cache=config.train.input.cache,
        searched=searched_values(config),
        blow_up_trials=config.train.blow_up.trials,
        has_best_nowhere=has_best_nowhere(config),
        has_best_of_trials=has_best_of_trials(config),
        has_own_loop=has_custom_loop(config.train.model),
        steps_per_execution=config.train.steps_per_execution or 1,
        prices=prices,
    )
    try:
        answers = _answers(questions, history, wanted.limit_s or config.preflight.limit_s)
    except ComponentError as error:
        inputs = transformed.made_otherwise or transformed.changed_since
        older = f"the features are those of {inputs}: `run --to Transform` makes them anew" if inputs else ""
        raise ComponentError(error.message, hint="; or ".join(filter(None, (error.hint, older)))) from error
    found = Preflight(
        workload=config.name,
        verdicts=tuple(
            _verdict(question, answer, training) for question, answer in zip(questions, answers, strict=True)
        ),
        made_at=made_at.isoformat(timespec="seconds"),
        region=config.cloud.vertex.region or "",
        training_keys=_interpreter_keys(training),
    )
    preflight_results.keep(history.output, found.to_json())
    return found


def default_search_s(slices: Sequence[str], *, is_quick: bool) -> float:
    """Return how long to search for the largest batch: 0 for a quick look, and for all of a generation."""
    return 0.0 if is_quick or any(name in CHIPS for name in slices) else SEARCH_S


def _verdict(
    question: Question, answer: Answer | Unanswered | None, training: Training
) -> advice.SliceVerdict:
    if isinstance(answer, Unanswered):
        return judge(question, None, training, unanswered=(answer.reason, answer.remedy))
    return judge(question, answer, training)


def _answers(
    questions: Sequence[Question], history: History, limit_s: float
) -> list[Answer | Unanswered | None]:
    """Return stored answers for the same question, code and compiler; compute the others in parallel."""
    reason, remedy = unjudged_steps(questions[0].model)
    if reason:
        return [Unanswered(reason, remedy) for _ in questions]
    compiler = find_compiler()
    if compiler is None:
        return [None for _ in questions]
    asked = [adapt_to_compiler(question, compiler) for question in questions]
    root = source_root(questions[0].model)
    keys = _keys(asked, compiler, root, memo=history.digest_memo)
    kept = {key: _kept(history, key) for key in keys}
    # Without libtpu, the questions for all slices of several devices are the same.
    missing = {key: question for key, question in zip(keys, asked, strict=True) if kept[key] is None}
    with ThreadPoolExecutor(max_workers=default_jobs(node_bytes=COMPILE_BYTES)) as pool:

        def answer(key: str) -> Answer | Unanswered:
            print(f"compiling for {missing[key].slice.name} with {compiler}", file=sys.stderr)
            said = run_compiler(missing[key], compiler, import_roots=[root], limit_s=limit_s)
            if isinstance(said, Answer) and not said.is_search_cut:
                _keep(history, key, said)
            return said

        new = dict(zip(missing, pool.map(answer, missing), strict=True))
    return [new.get(key) or kept[key] for key in keys]


def _keys(asked: Sequence[Question], compiler: str, root: Path, *, memo: Path | None) -> list[str]:
    """Return a key for each question: equal ones have the same answer.

    Like a node's result, it depends on the files that the hyperparameters name, and on the modules that the
    model imports, wherever they are.

    Args:
        memo: the file that remembers digests of files.
    """
    model = asked[0].model
    names = [model, "slipway.components.preflight.compile_and_measure"]
    further = [folder for folder in import_folders() if folder not in (root, PROJECT_ROOT)]
    named, patterns = named_files(asked[0].hyperparameters, node_type="", folders=[PROJECT_ROOT])
    parts = {
        "code": {
            **source_closure(names, root=PROJECT_ROOT, further=further),
            **source_closure(names[:1], root=root, further=further),
        },
        "files": data_digests([*map(Path, named), *matching_files(patterns)], base=PROJECT_ROOT, memo=memo),
        "compiler": {**all_package_versions(PROJECT_ROOT / compiler), **installed_version()},
    }
    documents = ({**parts, "question": question.to_json()} for question in asked)
    return [hashlib.sha256(json.dumps(each, sort_keys=True).encode()).hexdigest() for each in documents]


def _kept_path(history: History, key: str) -> Path:
    return history.output / "cache" / "preflight" / f"{key}.json"


def _kept(history: History, key: str) -> Answer | None:
    """Return the stored answer; None, which has it computed again, if it is missing or damaged."""
    try:
        return typed(Answer, json.loads(_kept_path(history, key).read_text(encoding="utf-8")))
    except (OSError, ValueError, MisfitError):
        return None


def _keep(history: History, key: str, answer: Answer) -> None:
    path = _kept_path(history, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, answer.to_json())


def _transformed(config: WorkloadConfig, history: History, workload: Path) -> Transformed:
    """Return what the newest run with these settings has transformed; if there is none, the newest run."""
    newest: tuple[Path, str] | None = None
    now = json.loads(config.model_dump_json(by_alias=True))
    for run in history.latest_runs(config.name, limit=20):
        graph = _folder(run, "Transform", "transform_graph")
        examples = _folder(run, "Transform", "transformed_examples")
        if graph is None or examples is None:
            continue
        if not ((graph / SCHEMA).is_file() and (examples / SPLIT).is_dir()):
            continue  # removed in part
        if others := _other_settings(run, now):
            newest = newest or (graph, f"run {run.run_id}, which had other settings ({', '.join(others)})")
            continue
        files = [path for path in (examples / SPLIT).iterdir() if path.is_file()]
        return Transformed(
            features=_features(graph, config),
            train_files=len(files),
            train_bytes=sum(path.stat().st_size for path in files),
            train_rows=_train_rows(run),
            changed_since=_changed_since(run, history, config),
        )
    if newest is None:
        raise UsageError(
            f"No run of {config.name} has transformed its data yet, so the model's inputs are not known.",
            hint=command("run", str(workload), "--to", "Transform", output=history.output),
        )
    graph, words = newest
    return Transformed(features=_features(graph, config), made_otherwise=words)


def _changed_since(run: RunRecord, history: History, config: WorkloadConfig) -> str:
    """Return the run and the files of `preprocessing_fn` changed since, in words; "" if none has."""
    code = source_closure([config.transform.preprocessing_fn], root=PROJECT_ROOT, further=import_folders())
    then = history.fingerprint_of(run, "Transform")
    if then is None:
        return ""
    own = {path: digest for path, digest in code.items() if not path.startswith("slipway/")}
    changed = [path for path, digest in own.items() if then.parts.get(f"code:{path}", digest) != digest]
    return f"run {run.run_id}, since which {', '.join(changed)} changed" if changed else ""


def _features(graph: Path, config: WorkloadConfig) -> tuple[PlainFeature, ...]:
    apart = set(config.transform.apart) - set(config.transform.labels)
    schema = (graph / SCHEMA).read_text(encoding="utf-8")
    return features_in(schema, images=config.train.images, apart=apart)


def _other_settings(run: RunRecord, now: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return the settings, of those that the transformed examples depend on, that a run had otherwise.

    Without the span: each run of a schedule has one of its own, with the same features.

    Args:
        now: all settings, by section and key, as plain values.
    """
    if not isinstance(run.target.target, OfWorkload):
        return []
    try:
        then = json.loads(run.target.target.config)
        return [
            f"{section}.{key}"
            for section in ("data", "transform", "train")
            for key, value in now[section].items()
            # A record of an earlier version may lack keys.
            if (section != "train" or key == "images") and (section, key) != ("data", "span")
            if then[section].get(key, value) != value
        ]
    except (ValueError, KeyError, TypeError, AttributeError):  # from a damaged record
        return []


def _folder(run: RunRecord, node_id: str, key: str) -> Path | None:
    found = [node for node in run.nodes if node.id == node_id and node.state in ("complete", "cached")]
    artifacts = found[0].outputs.get(key, []) if found else []
    folder = Path(artifacts[0]["uri"]) if artifacts else None
    return folder if folder is not None and folder.is_dir() else None


def _train_rows(run: RunRecord) -> int | None:
    folder = _folder(run, "Trainer", "model_run")
    file = folder / "result.json" if folder else None
    try:
        rows = json.loads(file.read_text(encoding="utf-8")).get("train_rows") if file else None
        return int(rows) if rows else None
    except (OSError, ValueError, TypeError, AttributeError):  # from a damaged file
        return None


def _interpreter(config: WorkloadConfig) -> Path:
    """Return the Python interpreter that would train on this machine."""
    name = config.train.interpreter
    if name is None:
        return Path(sys.executable)
    return Path(shutil.which(place(name)) or place(name))


def _interpreter_keys(training: Training) -> tuple[tuple[str, str], ...]:
    """Return the interpreter to set if the current one lacks what a TPU needs, and a better one exists."""
    has_all = training.runtime is None or all(name in training.runtime for name in NEEDED["jax"])
    if has_all or not (PROJECT_ROOT / WITH_LIBTPU).exists():
        return ()
    return (("train.interpreter", WITH_LIBTPU),)


def _data_regions(config: WorkloadConfig) -> dict[str, str]:
    """Return the regions of the buckets that a cloud run reads; empty if the slice's region is not known."""
    addresses = (config.data.source, config.cloud.root)
    buckets = {
        each.partition("//")[2].partition("/")[0] for each in addresses if each and each.startswith(GS)
    }
    if not config.cloud.vertex.region:
        return {}
    from slipway.components.ingest.google_objects import bucket_location

    found = {}
    for bucket in sorted(buckets):
        try:
            if place := bucket_location(bucket):
                found[f"{GS}{bucket}"] = place
        except FileError as error:
            print(f"the region of {GS}{bucket} is not known: {error.message}", file=sys.stderr)
    return found


def _prices(given: Sequence[str], *, month: str) -> Mapping[str, Price]:
    prices = {}
    for each in given:
        generation, _, price = each.partition("=")
        try:
            usd = float(price)
        except ValueError:
            usd = 0.0
        if generation not in CHIPS or not 0 < usd < math.inf:
            raise UsageError(
                f"--price {each!r} is not GENERATION=USD for a chip-hour", hint="for instance --price v5e=1.2"
            )
        prices[generation] = Price(usd=usd, month=month)
    return prices

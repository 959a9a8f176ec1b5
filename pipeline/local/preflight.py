"""`local_runner.py preflight`: what a training on a TPU would be like, told without one."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from components.errors import ComponentError
from components.preflight import advice
from components.preflight.chips import CHIPS, PRICES_OF
from components.preflight.findings import Case, findings
from components.preflight.request import Answer, Question, Slice
from components.preflight.roofline import estimate
from components.trainer.transformed_features import features_of
from components.trainer.user_model import source_root
from pipeline.cloud.tpu_slices import TPU_SLICES, TpuSlice, tpu_slice
from pipeline.config import load_workload
from pipeline.config.workload import WorkloadConfig
from pipeline.errors import UsageError
from pipeline.local.history import History
from pipeline.local.invocation import command
from pipeline.local.record import RunRecord, write_json
from pipeline.local.request import workload_file
from pipeline.root import PROJECT_ROOT
from pipeline.source_closure import source_closure

COMPILERS = (".venv-tpu/bin/python", ".venv-jax/bin/python")
"""Interpreters that may compile, the best first: only the first has libtpu."""
DEFAULT_SLICE = "v5e-8"
COMPILE_LIMIT_S = 600.0
"""A compilation of one slice that takes longer is ended."""
SEARCH_S = 30.0
ONE_HOST = tuple(name for name, each in TPU_SLICES.items() if each.hosts == 1)
"""What `--all` takes: the same step is compiled for more hosts where their slices are named."""


@dataclass(frozen=True)
class Transformed:
    """What the latest Transform left.

    Attributes:
        features: as `Feature.to_json` gives them.
        train_files: of transformed examples of the train split.
        train_bytes: of them together.
        train_rows: examples in them, as the Trainer counted them; None: it did not.
    """

    features: tuple[Mapping[str, Any], ...]
    train_files: int
    train_bytes: int
    train_rows: int | None


@dataclass(frozen=True)
class Preflight:
    """The verdicts of all slices that were asked for."""

    workload: str
    verdicts: tuple[advice.Verdict, ...]

    @property
    def exit_code(self) -> int:
        """0 where one slice can train, or no TPU's compiler was there to ask; 1 where none can."""
        wrong = [any(each.severity == "error" for each in verdict.findings) for verdict in self.verdicts]
        return 1 if all(wrong) else 0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        best = advice.recommended(self.verdicts)
        return {
            "workload": self.workload,
            "prices_of": PRICES_OF,
            "slices": [verdict.to_json() for verdict in self.verdicts],
            "recommended": best.question.slice.name if best else None,
            "keys": advice.keys_to_set(best) if best else {},
        }

    def text(self) -> str:
        """Each slice, the table, the recommendation."""
        lines = [line for verdict in self.verdicts for line in [*advice.slice_lines(verdict), ""]]
        if len(self.verdicts) > 1:
            lines += [*advice.table(self.verdicts), ""]
        best = advice.recommended(self.verdicts)
        if best is not None:
            name = best.question.slice.name
            keys = " ".join(f"--set {key}={value}" for key, value in advice.keys_to_set(best).items())
            why = "cheapest at roofline speed of those" if len(self.verdicts) > 1 else "the slice"
            lines += [
                f"take {name}, {why} that can train it: {keys}",
                advice.machine_command(TPU_SLICES[name].machine, name=name),
            ]
        lines.append(
            "Times and costs are estimates that no hardware has confirmed; prices as remembered of "
            f"{PRICES_OF}, see docs/tpu.md."
        )
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command line asks for.

    Attributes:
        slices: names; none: the workload's, else `DEFAULT_SLICE`.
        search_s: how long to look for the largest batch that fits; 0: not.
        limit_s: how long the compilation of one slice may take.
        prices: GENERATION=USD of an hour of a chip.
    """

    slices: tuple[str, ...] = ()
    search_s: float = SEARCH_S
    limit_s: float = COMPILE_LIMIT_S
    prices: tuple[str, ...] = ()


def preflight(
    workload: Path, output: Path, wanted: Wanted, *, sets: Sequence[str] = (), profile: str | None = None
) -> Preflight:
    """Compiles the workload's training step for each slice, and judges it.

    Raises:
        UsageError: no run of the workload has transformed its data yet, or a price is none.
        ConfigError: the workload file is wrong, or there is no such slice.
        ComponentError: the model cannot be built.
    """
    config = load_workload(workload_file(workload).absolute(), root=PROJECT_ROOT, sets=sets, profile=profile)
    names = wanted.slices or (config.train.tpu or DEFAULT_SLICE,)
    slices = [tpu_slice(name, backend="jax") for name in dict.fromkeys(names)]
    prices = _prices(wanted.prices)
    history = History(output.absolute())
    transformed = _transformed(config, history, workload)
    compiler = _compiler()
    verdicts = []
    for each in slices:
        question = _question(config, transformed, each, search_s=wanted.search_s)
        verdicts.append(
            _verdict(
                config, transformed, question, _cached(question, compiler, history, wanted.limit_s), prices
            )
        )
    return Preflight(config.name, tuple(verdicts))


def _verdict(
    config: WorkloadConfig,
    transformed: Transformed,
    question: Question,
    answer: Answer | None,
    prices: Mapping[str, float],
) -> advice.Verdict:
    generation = question.slice.generation
    chip = CHIPS[generation]
    chip = replace(chip, price_usd=prices.get(generation, chip.price_usd))
    is_tpu = answer is not None and answer.target == "tpu"
    estimated = None
    if answer is not None and is_tpu and answer.step.fits:
        estimated = estimate(answer.step, question.slice, chip)
    case = Case(
        question=question,
        answer=answer,
        backend=config.train.backend,
        has_tensorflow=TPU_SLICES[question.slice.name].has_tensorflow,
        train_files=transformed.train_files,
        train_bytes=transformed.train_bytes,
        interpreter=COMPILERS[0] if is_tpu else "",
        step_s=estimated.step_s if estimated else None,
    )
    rows = transformed.train_rows
    return advice.Verdict(
        question=question,
        answer=answer,
        findings=findings(case),
        estimate=estimated,
        examples=rows * config.train.epochs if rows else None,
    )


def _question(
    config: WorkloadConfig, transformed: Transformed, tpu: TpuSlice, *, search_s: float
) -> Question:
    train, generation = config.train, tpu.name.partition("-")[0]
    return Question(
        slice=Slice(
            name=tpu.name,
            generation=generation,
            devices=tpu.devices,
            hosts=tpu.hosts,
            topology=tpu.machine.get("tpuTopology", "2x2"),
            memory_bytes=CHIPS[generation].usable_bytes,
        ),
        model=train.model,
        hyperparameters=train.hyperparameters,
        features=transformed.features,
        label=config.transform.label,
        batch_size=train.batch_size,
        precision=train.precision,
        accumulate_steps=train.accumulate_steps,
        model_parallel=train.model_parallel,
        layout=train.layout,
        search_s=search_s,
    )


def _transformed(config: WorkloadConfig, history: History, workload: Path) -> Transformed:
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    for run in history.latest_runs(config.name, limit=20):
        graph = _folder(run, "Transform", "transform_graph")
        examples = _folder(run, "Transform", "transformed_examples")
        if graph is None or examples is None:
            continue
        text = (graph / "transformed_metadata" / "schema.pbtxt").read_text(encoding="utf-8")
        schema = text_format.Parse(text, schema_pb2.Schema())
        features = features_of(schema, images=config.train.images)
        files = [path for path in (examples / "Split-train").iterdir() if path.is_file()]
        return Transformed(
            features=tuple(feature.to_json() for feature in features),
            train_files=len(files),
            train_bytes=sum(path.stat().st_size for path in files),
            train_rows=_train_rows(run),
        )
    raise UsageError(
        f"No run of {config.name} has transformed its data yet, so the model's inputs are not known.",
        hint=command("run", str(workload), "--to", "Transform", output=history.output),
    )


def _folder(run: RunRecord, node_id: str, key: str) -> Path | None:
    found = [node for node in run.nodes if node.id == node_id and node.state in ("complete", "cached")]
    artifacts = found[0].outputs.get(key, []) if found else []
    folder = Path(artifacts[0]["uri"]) if artifacts else None
    return folder if folder is not None and folder.is_dir() else None


def _train_rows(run: RunRecord) -> int | None:
    folder = _folder(run, "Trainer", "model_run")
    file = folder / "result.json" if folder else None
    if file is None or not file.is_file():
        return None
    rows = json.loads(file.read_text(encoding="utf-8")).get("train_rows")
    return int(rows) if rows else None


def _prices(given: Sequence[str]) -> dict[str, float]:
    prices = {}
    for each in given:
        generation, _, price = each.partition("=")
        try:
            prices[generation] = float(price)
        except ValueError:
            generation = ""
        if generation not in CHIPS or prices[generation] <= 0:
            raise UsageError(
                f"--price {each!r} is no GENERATION=USD of a chip-hour", hint="for instance --price v5e=1.2"
            )
    return prices


def _compiler() -> str | None:
    return next((name for name in COMPILERS if (PROJECT_ROOT / name).exists()), None)


def _cached(question: Question, compiler: str | None, history: History, limit_s: float) -> Answer | None:
    """The answer that is kept for the same question, code and compiler, else a new one; None without one."""
    if compiler is None:
        return None
    asked = question
    if compiler != COMPILERS[0]:
        asked = replace(
            question, slice=replace(question.slice, generation="", devices=1, hosts=1, topology="")
        )
    root = source_root(question.model)
    names = [question.model, "components.preflight.compile_step"]
    parts = {
        "question": asked.to_json(),
        "code": {**source_closure(names, root=PROJECT_ROOT), **source_closure(names[:1], root=root)},
        "compiler": _compiler_versions(PROJECT_ROOT / compiler),
    }
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    path = history.output / "cache" / "preflight" / f"{key}.json"
    if path.is_file():
        return Answer.from_json(json.loads(path.read_text(encoding="utf-8")))
    answer = _ask(asked, compiler, import_root=root, limit_s=limit_s)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, answer.to_json())
    return answer


def _compiler_versions(interpreter: Path) -> dict[str, str]:
    folders = [str(path) for path in (interpreter.parent.parent / "lib").glob("python*/site-packages")]
    wanted = ("jax", "jaxlib", "keras", "libtpu")
    return {each.name: each.version for each in metadata.distributions(path=folders) if each.name in wanted}


def _ask(question: Question, compiler: str, *, import_root: Path, limit_s: float) -> Answer:
    """Has another interpreter answer."""
    print(f"compiling for {question.slice.name} with {compiler}", file=sys.stderr)
    paths = dict.fromkeys([str(PROJECT_ROOT), str(import_root)])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TF_CPP_MIN_LOG_LEVEL": "2"}
    with tempfile.TemporaryDirectory(prefix="preflight-") as folder:
        file = Path(folder, "question.json")
        file.write_text(json.dumps(question.to_json()), encoding="utf-8")
        arguments = [str(PROJECT_ROOT / compiler), "-m", "components.preflight.compile_step", str(file)]
        try:
            done = subprocess.run(
                arguments, capture_output=True, text=True, env=environment, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ComponentError(
                f"{question.slice.name} was not compiled within {limit_s:.0f} s", hint="--limit SECONDS"
            ) from error
    last = (done.stdout.strip().splitlines() or [""])[-1]
    try:
        values = json.loads(last)
    except ValueError as error:
        words = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise ComponentError(f"the compiling process ended with {done.returncode}: {words}") from error
    if "failed" in values:
        raise ComponentError(f"{question.slice.name}: {values['failed']}", hint=values["hint"])
    return Answer.from_json(values)

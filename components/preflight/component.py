"""Preflight: compiles the training step for the TPU that it will run on, before you pay for one."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types.standard_artifacts import Examples, ExampleStatistics, TransformGraph

from slipway.components.data_profile.profile import split_rows
from slipway.components.errors import GateStopError
from slipway.components.parameters import from_parameter
from slipway.components.preflight.advice import slice_lines
from slipway.components.preflight.compiler import (
    Unanswered,
    adapt_to_compiler,
    find_compiler,
    run_compiler,
)
from slipway.components.preflight.finding import Training
from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.preflight.result import Preflight as Result
from slipway.components.preflight.transformed import SCHEMA, SPLIT, features_in
from slipway.components.preflight.verdict import judge
from slipway.components.trainer.custom_fit import require_steps, unjudged_steps
from slipway.components.trainer.custom_functions import has_custom_loop
from slipway.components.trainer.user_model import source_root
from slipway.components.typed_json import typed
from slipway.schemas.artifacts import PreflightReport


@component
def Preflight(  # noqa: N802 (component constructors are nouns)
    transformed_examples: InputArtifact[Examples],
    transform_graph: InputArtifact[TransformGraph],
    statistics: InputArtifact[ExampleStatistics],
    report: OutputArtifact[PreflightReport],
    workload: Parameter[str],
    model: Parameter[str],
    step: Parameter[str],
    tpu_slice: Parameter[str],
    training: Parameter[str],
    images: Parameter[dict[str, list[int]]],
    limit_s: Parameter[float],
    compiler: Parameter[dict[str, str]] = None,
    pass_through: Parameter[list[str]] = None,
) -> None:
    """Write the report of `local_runner.py preflight`, and stop the pipeline if the training is impossible.

    Args:
        transformed_examples: Transform's examples, whose files are counted.
        transform_graph: Transform's graph, whose schema gives the model's inputs.
        statistics: StatisticsGen's statistics, which give the number of training rows.
        report: receives `preflight.json`, see `result.Preflight.to_json`.
        model: dotted path of `build_model`.
        step: the fields of `question_and_answer.Question` other than slice, features and model, encoded by
            `as_parameter`.
        tpu_slice: the fields of `question_and_answer.Slice`, encoded by `as_parameter`.
        training: the fields of `finding.Training` that are not counted here, encoded by `as_parameter`.
        images: `train.images`.
        compiler: not read; causes a cache miss if the compiler changes.
        pass_through: transformed columns that are not features, including the weight; None for none.

    Raises:
        ComponentError: the model cannot be built.
        GateStopError: the step does not compile for the slice, or does not fit; carries the verdict.
    """
    del compiler
    require_steps(model)
    with fileio.open(f"{transform_graph.uri}/{SCHEMA}") as file:
        features = features_in(str(file.read()), images=images, apart=pass_through or ())
    files = [path for path in fileio.glob(f"{transformed_examples.uri}/{SPLIT}/*") if not fileio.isdir(path)]
    question = typed(
        Question,
        {
            "slice": from_parameter(tpu_slice),
            "features": features,
            "model": model,
            **from_parameter(step),
        },
    )
    known = replace(
        typed(Training, from_parameter(training)),
        has_own_loop=has_custom_loop(model),
        train_files=len(files),
        train_bytes=sum(map(_size_bytes, files)),
        train_rows=split_rows(statistics, SPLIT.removeprefix("Split-")) or None,  # 0: nothing was sampled
    )
    interpreter = find_compiler()
    reason, remedy = unjudged_steps(model)
    answer: Answer | Unanswered | None = Unanswered(reason, remedy) if reason else None
    if answer is None and interpreter is not None:
        roots = [source_root(model)]
        answer = run_compiler(
            adapt_to_compiler(question, interpreter), interpreter, import_roots=roots, limit_s=limit_s
        )
    if isinstance(answer, Unanswered):
        verdict = judge(question, None, known, unanswered=(answer.reason, answer.remedy))
    else:
        verdict = judge(question, answer, known)
    result = Result(
        workload=workload,
        verdicts=(verdict,),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        region=known.tpu_region,
    )
    document = result.to_json()
    with fileio.open(f"{report.uri}/preflight.json", "w") as file:
        file.write(json.dumps(document, indent=2, ensure_ascii=False))
    print(result.text())
    if result.stopping:
        raise GateStopError(
            result.stopping[0].message,
            # No key `findings`: in the other gates' verdicts it holds findings about columns of the data.
            verdict={"lines": slice_lines(verdict), "preflight": document},
        )


def _size_bytes(path: str) -> int:
    """Return the size of a file; TFX's `stat` returns a different type for each file system."""
    with fileio.open(path, "rb") as file:
        file.seek(0, 2)
        return int(file.tell())

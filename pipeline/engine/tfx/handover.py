"""Hands a pipeline of this process, e.g. a notebook's, over to the fork server as TFX's IR. Imports TFX."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from tfx.orchestration.pipeline import Pipeline

from slipway.pipeline.engine.tfx.load_pipeline import built
from slipway.pipeline.engine.tfx.parameters import compiled
from slipway.pipeline.engine.tfx.user_modules import package_user_modules
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import Options, Request
from slipway.pipeline.runs.run_target import IrRun
from slipway.pipeline.wiring.import_folders import import_folders
from slipway.pipeline.wiring.metadata_store import URL_VARIABLE


def object_request(
    pipeline: Any,
    *,
    output: Path,
    parameters: Mapping[str, object],
    beam_args: Sequence[str],
    **options: Unpack[Options],
) -> Request:
    """Return a request to run a pipeline object, or the pipeline that a function of this process returns.

    Args:
        pipeline: a TFX pipeline, or a function that returns one.
        output: the folder for the run's records, absolute.
        parameters: for the function's arguments and the pipeline's runtime parameters.

    Raises:
        UsageError: it is not a pipeline, or another process cannot run it.
    """
    name = getattr(pipeline, "__name__", "pipeline")
    made, rest = built(pipeline, name=name, output=output, parameters=parameters)
    _check(made)
    packed = package_user_modules(made)
    ir = compiled(made)
    return Request(
        workload=ir.pipeline_info.id,
        target=IrRun(
            ir=True,
            import_from=tuple(str(folder) for folder in import_folders()),
            output=output,
            module_files=dict(packed),
        ),
        output=output,
        parameters={key: str(value) for key, value in rest.items()},
        beam_args=tuple(beam_args),
        ir=ir.SerializeToString(deterministic=True),
        **options,
    )


def _check(pipeline: Pipeline) -> None:
    connection = pipeline.metadata_connection_config
    for kind in ("mysql", "postgresql"):
        if hasattr(connection, kind) and getattr(connection, kind).password:
            raise UsageError(
                "The pipeline's metadata_connection_config holds a password, and the run's folder keeps the "
                "pipeline.",
                hint=f"leave metadata_connection_config out, and set {URL_VARIABLE}",
            )
    for node in pipeline.components:
        executor = getattr(getattr(node, "executor_spec", None), "executor_class", None)
        if getattr(executor, "__module__", "") == "__main__":
            raise UsageError(
                f"{node.id}: its component is defined in this notebook or script, and nodes run in processes "
                "of their own, which cannot import it.",
                hint=f"move {type(node).__name__} to a module and import it",
            )

"""The command `baseline` of cloud_runner.py: shows or clears the model that cloud runs are compared with."""

from collections.abc import Iterator
from datetime import UTC, datetime

from slipway.components.store_address import MINIO, bucket_and_path, speaks_s3
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.services.vertex_metadata import Blessing, VertexMetadata
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.user import user_name


def baseline(chosen: CloudChoice, *, clear: bool, reason: str) -> Iterator[str]:
    """Yield lines that show the baseline; with `clear`, retire every blessed model first.

    Args:
        reason: the user's reason; may be empty.

    Raises:
        UsageError: the workload's service keeps its baselines elsewhere, a setting is missing, or a reason
            is given without `clear`.
        PipelineError: the service refused, or did not answer.
    """
    config = chosen.config()
    if reason and not clear:
        raise UsageError("--reason is for --clear.")
    if config.cloud.service == "kubeflow":
        records = f"{(config.cloud.root or 'ROOT').rstrip('/')}/records/{config.name}/tfx.ModelBlessing"
        raise UsageError(
            f"on Kubeflow Pipelines the baseline is the latest record in {records}.",
            hint=f"{_removal(records)}   # the next model is compared with nothing",
        )
    service = VertexMetadata(config)
    found = service.blessings(config.name)
    if clear:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        why = f"baseline cleared {at} by {user_name()}" + (f": {reason}" if reason else "")
        # The latest is retired last: an interruption must not silently make an earlier model the baseline.
        for blessing in reversed(found):
            service.retire(blessing, why=why)
            yield f"retired: {_line(blessing)}"
        found = ()
    if found:
        yield f"{config.name}: the model of run {_line(found[0])}"
    else:
        yield f"{config.name}: no baseline. The next blessed model will be it."


def _removal(folder: str) -> str:
    """Return the command that removes everything in a folder of a store."""
    if not speaks_s3(folder):
        return f"gcloud storage rm '{folder}/*'"
    bucket, path = bucket_and_path(folder)
    endpoint = " --endpoint-url $AWS_ENDPOINT_URL" if folder.startswith(MINIO) else ""
    return f"aws s3 rm --recursive{endpoint} s3://{bucket}/{path}/"


def _line(blessing: Blessing) -> str:
    return f"{blessing.run}, blessed {blessing.at.isoformat(timespec='seconds')}; {blessing.uri}"

"""Downloads the reports of a run's tasks from Cloud Storage, so that the run is reported like a local one."""

from collections.abc import Iterator
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.google_credentials import find_credentials
from slipway.components.store_address import GS
from slipway.pipeline.runs.record import Artifact, RunRecord

_FILES = {
    "ModelBlessing": ("verdict.json",),
    "InfraBlessing": ("verdict.json",),
    "schemas.DataVerdict": ("verdict.json",),
    "ModelRun": ("result.json", "history.json"),
    "schemas.Quarantine": ("summary.json",),
}
"""The report files in each type of artifact."""
_TIMEOUT_S = 20.0
_RETRY_S = 30.0


def bring_reports(record: RunRecord, folder: Path) -> str:
    """Copy the reports of gates, training and Ingest into a folder, and point the record to the copies.

    Args:
        record: the record of a service's run; artifacts that are not on gs:// stay as they are.
        folder: an empty folder.

    Returns:
        Why some reports are missing, in words; empty if all that exist were copied.
    """
    found = list(_reports(record))
    if not found:
        return ""
    import requests
    from google.api_core.exceptions import GoogleAPIError, NotFound
    from google.auth.exceptions import GoogleAuthError
    from google.cloud import storage
    from google.cloud.storage.retry import DEFAULT_RETRY

    try:
        client = storage.Client(project=None, credentials=find_credentials("Cloud Storage"))
        retry = DEFAULT_RETRY.with_timeout(_RETRY_S)
        for number, (artifact, files) in enumerate(found):
            here, there = folder / str(number), artifact["uri"]
            here.mkdir()
            bucket, _, path = there.removeprefix(GS).partition("/")
            for file in files:
                blob = client.bucket(bucket).blob(f"{path.rstrip('/')}/{file}")
                try:
                    content = blob.download_as_bytes(timeout=_TIMEOUT_S, retry=retry, checksum=None)
                except NotFound:  # another pipeline's gate or Trainer writes none
                    continue
                (here / file).write_bytes(content)
                artifact["uri"], artifact["copy_of"] = str(here), there
    except (ComponentError, GoogleAPIError, GoogleAuthError, requests.RequestException, OSError) as error:
        return f"not shown: the gates' reasons and the metrics: {' '.join(str(error).split())[:300]}"
    return ""


def _reports(record: RunRecord) -> Iterator[tuple[Artifact, tuple[str, ...]]]:
    for kind, files in _FILES.items():
        for _, artifact in record.outputs_of(kind):
            if artifact["uri"].startswith(GS):
                yield artifact, files

"""Runs a training job on Vertex AI: a CustomJob whose machines run `remote.worker`.

The request is prepared when the pipeline is compiled (slipway.pipeline.cloud.tpu_training_job). Here it gets
the address of the job file and is sent, and the job is waited for.

A job has a label that names the training, by which one is found whose creation was not answered, or that an
earlier attempt at the task left behind: its machines cost money, and would write to the same folders. One
that has done its work meanwhile is not repeated.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.google_retries import TRUST, certificate_refused, may_pass, odd_answers_as_errors
from slipway.components.trainer.checkpoint_storage import storage
from slipway.components.trainer.job import JOB_FILE, CustomJobRequest, TrainingJob
from slipway.components.trainer.remote.worker import OUTCOME_FILE, RESULTS
from slipway.components.trainer.result import Result, TrainingPreemptedError, result_in

POLL_S = 15.0
PATIENCE_S = 900.0
"""Seconds that the service may be unreachable before a training is given up."""
CANCEL_S = 60.0
"""Seconds for cancelling a job, with all retries: its machines cost money until then."""
LABEL = "slipway_training"
"""The label that names the training of a job."""
LOOKS = 5
"""How often a job whose creation was not answered is looked for, with the pause of two polls between."""
_TIMEOUT_S = 60.0  # for one request; without it the client would wait for an answer for ever
_CONSOLE = "https://console.cloud.google.com/vertex-ai/training"
_REMEDY = (
    "the task's service account needs roles/aiplatform.user, may act as cloud.vertex.service_account, and "
    "cloud.vertex.region must have quota for train.tpu"
)
_ADDRESS = re.compile(r"^[A-Z]+ https?://\S+: ")  # the client puts this before the service's message
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
_DONE = ("STATE_SUCCEEDED",)
_LIVE = ("QUEUED", "PENDING", "RUNNING")  # one that is being cancelled will give no result


class _UnclearError(ComponentError):
    """The service gave no clear answer: what it was asked for may have been done."""


class VertexTraining:
    """A CustomJob, from its creation to its end; leaving the `with` block cancels it if it still runs.

    A job of the same training that runs already is followed instead of another one; and of one that has
    succeeded, as when the task was killed at that moment, the results are taken if they are all there.

    Args:
        job: what to train; its `output_dir` receives the results.
        request: where to run it, and on which machines.
        folder: for the job file and the results, on gs://.
        poll_s: seconds between two polls of the state, > 0.

    Raises:
        ComponentError: the service does not accept the job.
    """

    def __init__(
        self,
        job: TrainingJob,
        *,
        request: CustomJobRequest,
        folder: str,
        poll_s: float = POLL_S,
    ) -> None:
        from google.cloud import aiplatform_v1 as vertex

        self._job = job
        self._files = storage(folder)
        self._poll_s = poll_s
        wanted = json.loads(json.dumps(request["customJob"]))
        for pool in wanted["jobSpec"]["workerPoolSpecs"]:
            pool["containerSpec"]["args"] = [f"{folder}/{JOB_FILE}"]
        training = hashlib.sha256(f"{folder} {job.identity}".encode()).hexdigest()[:32]
        wanted["labels"] = {**wanted["labels"], LABEL: training}
        self._parent = f"projects/{request['project']}/locations/{request['region']}"
        self._client = _client(request["endpoint"])
        self.link = f"{_CONSOLE}?project={request['project']}"
        self._ended = False
        remote = replace(job, output_dir=folder)
        found = self._jobs(training)
        known = _in_state(found, _LIVE)
        if known is None and self._has_results_of(remote):
            known = _in_state(found, _DONE)
            self._ended = known is not None  # there is nothing to cancel
        if known is None:
            self._files.remove(OUTCOME_FILE)  # left by an earlier attempt; before the file of the next job
            self._files.write(JOB_FILE, lambda stream: stream.write(remote.to_json().encode()))
            try:
                known = self._created(vertex.CustomJob.from_json(json.dumps(wanted)), training)
            except (SystemExit, KeyboardInterrupt):
                # The service may have made it, and nobody waits for it any more.
                if live := _in_state(self._jobs(training), _LIVE):
                    self._cancel(live)
                raise
        self._name = known
        number = self._name.rpartition("/")[2]
        self.link = f"{_CONSOLE}/{request['region']}/training/{number}?project={request['project']}"

    def __enter__(self) -> "VertexTraining":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        try:
            self._cancel(self._name)
        except ComponentError:
            if not self._has_just_ended():  # such a job cannot be cancelled, and costs nothing more
                raise

    def wait(self, show: Callable[[str], None]) -> Result:
        """Wait for the end, and copy the results to the job's `output_dir`; return the "done" values.

        Args:
            show: receives a line for each new state.

        Raises:
            TrainingPreemptedError: the machines were taken back, and the service has given up.
            ComponentError: the training failed, with its own message or the service's.
        """
        show(f"training job {self._name}, {self.link}")
        state, patient = "", _patient(PATIENCE_S)
        while not state.endswith(_ENDED):
            if state:
                time.sleep(self._poll_s)
            found = self._call("follow", self._client.get_custom_job, name=self._name, retry=patient)
            if found.state.name != state:
                state = found.state.name
                show(f"training job is {state.removeprefix('JOB_STATE_').lower()}")
        self._ended = True
        outcome = self._outcome()
        if state.endswith("SUCCEEDED") and outcome.get("event") == "done":
            for name in RESULTS:
                Path(self._job.output_dir, name).write_bytes(self._files.read(name))
            return result_in(outcome)
        if outcome.get("event") == "preempted":
            raise TrainingPreemptedError(int(outcome["step"]))
        if outcome.get("event") == "failed":
            raise ComponentError(f"training failed: {outcome['message']}", hint=outcome["hint"])
        raise ComponentError(
            f"the training job is {state}: {found.error.message or 'it left no result'}",
            hint=f"its log: {self.link}",
        )

    def _created(self, message: Any, training: str) -> str:
        """Create the job, and return its name; also if the answer to that is lost."""
        try:
            created = self._call(
                "create", self._client.create_custom_job, parent=self._parent, custom_job=message
            )
        except _UnclearError:
            for look in range(LOOKS):
                if look:
                    time.sleep(self._poll_s)
                if found := _in_state(self._jobs(training), _LIVE):
                    return found
            raise
        return str(created.name)

    def _cancel(self, name: str) -> None:
        retry = _patient(CANCEL_S)
        self._call("cancel", self._client.cancel_custom_job, name=name, retry=retry)

    def _jobs(self, training: str) -> list[Any]:
        """Return the jobs of a training, of all attempts."""

        def every(**arguments: Any) -> list[Any]:
            return list(self._client.list_custom_jobs(**arguments))  # of all pages

        asked = {"parent": self._parent, "filter": f"labels.{LABEL}={training}"}
        found: list[Any] = self._call("look for", every, request=asked, retry=_patient(CANCEL_S))
        return found

    def _has_results_of(self, job: TrainingJob) -> bool:
        """Return True if the folder has all results of a job: its outcome is written last.

        The job file beside them, which is written after an older outcome is removed, tells whose they are.
        """
        if self._outcome().get("event") != "done" or not {*RESULTS} <= {*self._files.names()}:
            return False
        try:
            kept = TrainingJob.from_json(self._files.read(JOB_FILE).decode())
        except (FileNotFoundError, ComponentError):  # or of another version
            return False
        return replace(kept, checkpoint_dir=None).to_json() == replace(job, checkpoint_dir=None).to_json()

    def _has_just_ended(self) -> bool:
        try:
            found = self._call("follow", self._client.get_custom_job, name=self._name)
        except ComponentError:
            return False
        return bool(found.state.name.endswith(_ENDED))

    def _outcome(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._files.read(OUTCOME_FILE)))
        except FileNotFoundError:
            return {}

    def _call(self, what: str, method: Callable[..., Any], **arguments: Any) -> Any:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError, TransportError
        from requests import RequestException

        try:
            with odd_answers_as_errors():
                return method(**arguments, timeout=_TIMEOUT_S)
        except (GoogleAPIError, GoogleAuthError, RequestException) as error:
            cause = getattr(error, "cause", None) or error  # the last error, if retried until the time limit
            code = int(getattr(cause, "code", None) or 0)
            said = type(cause).__name__ if isinstance(cause, RequestException) else str(cause)
            if refused := certificate_refused(cause):  # then nothing was sent
                raise ComponentError(
                    f"Vertex AI did not {what} the training job: its certificate, or that of the server that "
                    f"gives tokens, cannot be verified: {refused}",
                    hint=f"{TRUST}; the training jobs: {self.link}",
                ) from error
            told = _ADDRESS.sub("", getattr(cause, "message", "") or said)
            # Without a clear answer, a job that costs by the hour may have been started, or may still be
            # running.
            is_clear = 400 <= code < 500 or (
                isinstance(cause, GoogleAuthError) and not isinstance(cause, TransportError)
            )
            words = f"Vertex AI did not {what} the training job: {f'{code} ' if code else ''}{told}"
            if is_clear:
                raise ComponentError(words, hint=_REMEDY) from error
            raise _UnclearError(
                words, hint=f"check whether it is running, and cancel it there: {self.link}"
            ) from error


def _in_state(jobs: Sequence[Any], states: tuple[str, ...]) -> str | None:
    """Return the name of the first of the jobs that is in one of these states; None if none is."""
    return next((each.name for each in jobs if each.state.name.endswith(states)), None)


def _patient(timeout_s: float) -> Any:
    """Return the policy for a request that may be repeated; by default the client gives up at once."""
    from google.api_core.retry import Retry

    return Retry(predicate=may_pass, timeout=timeout_s)


def _client(endpoint: str) -> Any:
    """Return the client of an endpoint; a plain http one, always on this machine, gets no credentials."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import aiplatform_v1 as vertex
    from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceRestTransport

    scheme, _, host = endpoint.partition("://")
    if scheme == "https":
        return vertex.JobServiceClient(client_options={"api_endpoint": host}, transport="rest")
    return vertex.JobServiceClient(
        transport=JobServiceRestTransport(host=host, url_scheme=scheme, credentials=AnonymousCredentials())
    )

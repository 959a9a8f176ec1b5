"""The client of Vertex AI Pipelines against the service's own types on loopback."""

import ssl
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from installed import needed

from slipway.pipeline.cloud.services.google import translated_google_errors
from slipway.pipeline.cloud.services.service import Schedule
from slipway.pipeline.cloud.submit import begin
from slipway.pipeline.errors import PipelineError, UnansweredError

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

CREATE = "POST .*/pipelineJobs$"
RUN_ID = "taxi-20270101-020304-ab12"


def test_run_carries_what_the_profile_says(google, vertex, job):
    submitted = vertex.submit(job, run_id="Taxi_trips-20270101-020304-ab12")
    made = google.jobs["taxi-trips-20270101-020304-ab12"]
    assert made.display_name == "taxi"
    assert made.service_account == "pipelines@my-project.iam.gserviceaccount.com"
    assert made.network == "projects/123456/global/networks/my-network"
    assert made.encryption_spec.kms_key_name.endswith("/keyRings/ring/cryptoKeys/key")
    assert made.runtime_config.failure_policy.name == "PIPELINE_FAILURE_POLICY_FAIL_FAST"
    assert made.runtime_config.gcs_output_directory == "gs://bucket/pipelines"
    assert dict(made.labels)["team"] == "rides"
    assert submitted.name == "taxi-trips-20270101-020304-ab12"
    assert submitted.link == (
        "https://console.cloud.google.com/vertex-ai/locations/europe-west4/pipelines/runs/"
        "taxi-trips-20270101-020304-ab12?project=my-project"
    )


@pytest.mark.parametrize(
    ("answer", "words", "hint"),
    [
        (
            {"code": 403, "reason": "SERVICE_DISABLED", "service": "aiplatform.googleapis.com"},
            "the API of Vertex AI (now Gemini Enterprise Agent Platform) "
            "is not enabled in the project my-project",
            "gcloud services enable aiplatform.googleapis.com --project my-project",
        ),
        ({"code": 401}, "the credentials are not accepted", "gcloud auth application-default login"),
        (
            {"code": 403, "reason": "IAM_PERMISSION_DENIED", "permission": "aiplatform.pipelineJobs.create"},
            "the permission aiplatform.pipelineJobs.create is missing",
            "roles/aiplatform.user",
        ),
        (
            {"code": 403, "reason": "IAM_PERMISSION_DENIED", "permission": "iam.serviceAccounts.actAs"},
            "you may not let tasks run as that service account",
            "roles/iam.serviceAccountUser",
        ),
        ({"code": 404}, "not found", "cloud.vertex.region"),
        ({"code": 429, "message": "Quota exceeded for X"}, "Quota exceeded for X", "iam-admin/quotas"),
        ({"code": 400, "message": "bad spec"}, "starting the run failed: bad spec", ""),
    ],
)
def test_refusal_is_reported_in_words_and_asked_once(google, vertex, job, answer, words, hint):
    google.fails(CREATE, times=9, **answer)
    with pytest.raises(PipelineError) as caught:
        vertex.submit(job, run_id=RUN_ID)
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert "http" not in caught.value.message
    # With other credentials it might be let in: the client tries those once more.
    tries = 3 if answer["code"] == 401 else 1
    assert sum("pipelineJobs" in request for request in google.requests) == tries


@pytest.mark.parametrize("code", [500, 503])
def test_fault_that_passes_is_outlived(google, vertex, job, code):
    google.fails(CREATE, code, times=2)
    assert vertex.submit(job, run_id=RUN_ID).name in google.jobs


@pytest.mark.parametrize("code", [429, 500, 503])
def test_fault_while_looking_at_a_run_is_outlived(google, vertex, job, code):
    """A quota of requests counts them by the minute."""
    vertex.submit(job, run_id=RUN_ID)
    google.fails("GET .*/pipelineJobs/", code, times=2)
    assert vertex.state(RUN_ID).phase == "waiting"


@pytest.mark.usefixtures("given_up")
def test_token_that_cannot_be_renewed_for_lack_of_a_network_is_no_matter_of_the_credentials(
    google, vertex, job, monkeypatch
):
    from google.auth.exceptions import TransportError

    asked = []

    def before_request(self, *_):
        asked.append(self)
        raise TransportError("Failed to resolve 'oauth2.googleapis.com'")

    monkeypatch.setattr(type(vertex._credentials), "before_request", before_request)
    with pytest.raises(PipelineError, match="gives tokens of Google Cloud does not answer") as caught:
        vertex.state(RUN_ID)
    assert "network" in caught.value.hint
    assert len(asked) > 1, "it is asked again"


@pytest.mark.parametrize("is_of_tokens", [False, True])
def test_certificate_that_cannot_be_verified_is_told_at_once_and_nothing_has_begun(
    google, vertex, job, monkeypatch, is_of_tokens
):
    from google.auth.exceptions import TransportError
    from requests.exceptions import SSLError
    from urllib3.exceptions import MaxRetryError
    from urllib3.exceptions import SSLError as Urllib3Error

    inner = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    refused = SSLError(MaxRetryError(None, "/", Urllib3Error(inner)))
    asked = []

    def before_request(self, *_):
        asked.append(self)
        raise TransportError(refused) if is_of_tokens else refused

    monkeypatch.setattr(type(vertex._credentials), "before_request", before_request)
    with pytest.raises(PipelineError, match=r"certificate of .* cannot be verified") as caught:
        begin(vertex, job, name=RUN_ID)
    assert not isinstance(caught.value, UnansweredError)
    assert "self-signed certificate" in caught.value.message
    assert ("gives tokens" in caught.value.message) == is_of_tokens
    assert "REQUESTS_CA_BUNDLE" in caught.value.hint
    assert len(asked) == 1


def test_operation_that_takes_longer_than_is_waited_for_is_reported(google, vertex, monkeypatch):
    monkeypatch.setattr("slipway.components.google_retries.RETRY_S", 0.2)
    google.schedules["1000"] = None
    google.unfinished = True
    with pytest.raises(PipelineError, match="deleting taxi takes longer than this command waits") as caught:
        vertex.delete(SCHEDULE)
    assert "schedule list" in caught.value.hint


@pytest.mark.usefixtures("given_up")
def test_fault_that_stays_is_reported(google, vertex, job):
    google.fails(CREATE, 503, "try later", times=99)
    with pytest.raises(PipelineError, match=r"the service has an internal error, 503 \(try later\)"):
        vertex.submit(job, run_id=RUN_ID)


@pytest.mark.usefixtures("given_up")
def test_silent_service_is_reported(google, vertex, job, impatient):
    impatient("components.google_retries.TIMEOUT_S", 0.5)
    google.is_silent(CREATE)
    with pytest.raises(
        PipelineError, match=r"starting the run failed: http://127\.0\.0\.1:.* does not answer"
    ):
        vertex.submit(job, run_id=RUN_ID)


@pytest.mark.parametrize("code", [0, 500])
def test_run_that_may_have_begun_is_told_with_the_place_to_look(
    google, vertex, job, monkeypatch, impatient, code
):
    monkeypatch.setattr("slipway.components.google_retries.RETRY_S", 0.3)
    if code:
        google.fails(CREATE, code, times=99)
    else:
        impatient("components.google_retries.TIMEOUT_S", 0.2)
        google.is_silent(CREATE)
    with pytest.raises(UnansweredError, match=f"may have begun the run {RUN_ID} nevertheless") as told:
        begin(vertex, job, name=RUN_ID)
    assert vertex.link(RUN_ID) in told.value.hint


def test_page_of_a_proxy_is_told_as_what_it_is(google, vertex, job):
    google.page = "<!DOCTYPE html><title>Log in</title>"
    with pytest.raises(PipelineError, match="answers with a page, such as that of a login") as told:
        vertex.submit(job, run_id=RUN_ID)
    assert "https_proxy" in told.value.hint


def answered(status, payload):
    """What the client makes of an answer, within our words."""
    request = SimpleNamespace(method="POST", url="http://there/v1/x")
    response = SimpleNamespace(status_code=status, request=request, json=lambda: payload)
    from google.api_core.exceptions import from_http_response

    with translated_google_errors("starting the run", project="p", address="https://there"):
        raise from_http_response(response)


@pytest.mark.parametrize("payload", [{"error": "upstream timed out"}, {"error": None}, "no"])
def test_error_of_a_gateway_that_is_no_error_of_the_api_is_told_and_leaves_open_what_has_begun(payload):
    with pytest.raises(UnansweredError, match=r"https://there answers .* not as the API does"):
        answered(504, payload)


def test_fields_that_the_service_refuses_are_named():
    wrong = [
        {"field": "pipeline_job.network", "description": "must be peered"},
        {"field": "pipeline_job.labels"},
    ]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": wrong}, {}]
    error = {"message": "Request contains an invalid argument.\nMore.", "details": details}
    with pytest.raises(PipelineError) as caught:
        answered(400, {"error": error})
    assert caught.value.message == (
        "starting the run failed: Request contains an invalid argument. "
        "(pipeline_job.network: must be peered; pipeline_job.labels)"
    )


@pytest.mark.parametrize("code", [401, 403, 429])
def test_refusal_of_a_second_try_tells_nothing_of_the_first(google, vertex, job, code):
    google.fails(CREATE, 503)
    google.fails(CREATE, code, times=9)
    with pytest.raises(UnansweredError, match=f"may have begun the run {RUN_ID} nevertheless"):
        begin(vertex, job, name=RUN_ID)


def test_run_whose_tasks_the_service_does_not_tell_is_named_with_its_page(google, vertex, job):
    vertex.submit(job, run_id=RUN_ID)
    google.jobs[RUN_ID].pipeline_spec = {}
    with pytest.raises(PipelineError, match=f"does not tell the tasks of the run {RUN_ID}") as told:
        vertex.job(RUN_ID)
    assert vertex.link(RUN_ID) in told.value.hint


def test_lost_answer_does_not_start_a_second_run(google, vertex, job):
    google.loses_answer(CREATE)
    assert vertex.submit(job, run_id=RUN_ID).name == RUN_ID
    assert list(google.jobs) == [RUN_ID]
    assert [request.split()[0] for request in google.requests if "pipelineJobs" in request] == [
        "POST", "POST", "GET",
    ]  # fmt: skip


def test_answer_that_was_only_late_does_not_start_a_second_run(google, vertex, job, impatient):
    impatient("components.google_retries.TIMEOUT_S", 0.5)
    google.hangs(CREATE, 0.8)
    assert vertex.submit(job, run_id=RUN_ID).name == RUN_ID
    assert list(google.jobs) == [RUN_ID]


CALLS = {
    "state": ("GET .*/pipelineJobs/", lambda vertex: vertex.state(RUN_ID)),
    "cancel": ("POST .*:cancel", lambda vertex: vertex.cancel(RUN_ID)),
    "schedules": ("GET .*/schedules", lambda vertex: vertex.schedules()),
    "pause": ("POST .*:pause", lambda vertex: vertex.pause(SCHEDULE)),
    "resume": ("POST .*:resume", lambda vertex: vertex.resume(SCHEDULE, catch_up=True)),
    "delete": ("DELETE .*/schedules/", lambda vertex: vertex.delete(SCHEDULE)),
    "scheduled_job": ("GET .*/schedules/", lambda vertex: vertex.scheduled_job(SCHEDULE, at=NOW)),
}
NOW = datetime(2027, 1, 1, tzinfo=UTC)
SCHEDULE = Schedule(id="1000", name="taxi", state="active", cron="", next_run=None, link="")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (401, "the credentials are not accepted"),
        (403, "not allowed in the project my-project"),
        (404, r"not found \(it broke\)"),
        (409, "failed: it broke"),
        (429, "a quota is used up"),
        (500, "the service has an internal error, 500"),
        (0, "does not answer"),
    ],
)
def test_whatever_is_asked_for_a_refusal_is_reported_in_words(
    google, vertex, monkeypatch, impatient, call, code, words
):
    monkeypatch.setattr("slipway.components.google_retries.RETRY_S", 0.3)
    pattern, ask = CALLS[call]
    if code:
        google.fails(pattern, code, times=99)
    else:
        impatient("components.google_retries.TIMEOUT_S", 0.2)
        google.is_silent(pattern)
    with pytest.raises(PipelineError, match=words) as caught:
        ask(vertex)
    assert "\n" not in caught.value.message
    assert "http" not in caught.value.message.replace(google.address, "")

"""Runs and recurring runs on Kubeflow Pipelines, against the API's own models on loopback."""

import io
import json
import os
import ssl
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from installed import needed
from tracker_double import Collector, served
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import MaxRetryError, SSLError

from slipway.pipeline.cloud import back_fill
from slipway.pipeline.cloud import schedule_commands as schedule
from slipway.pipeline.cloud.baseline import baseline
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.services.service import Schedule
from slipway.pipeline.cloud.submit import begin, cancel_run, follow, follow_run, submit_workload
from slipway.pipeline.config import read_assignments
from slipway.pipeline.errors import ConfigError, PipelineError, UnansweredError, UsageError
from slipway.pipeline.screen.run_display import LineDisplay
from slipway.pipeline.tracking import enqueue
from slipway.pipeline.tracking.sender import send_all

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

RUN_ID = "taxi-20270101-020304-ab12"
BOTH = ("taxi", "digits")


@pytest.fixture
def submit(client, golden):
    return lambda: client.submit(client.request(golden), run_id=RUN_ID)


@pytest.mark.parametrize("name", BOTH)
def test_run_carries_what_the_profile_says(service, submit, name):
    submitted = submit()
    (run,) = service.runs.values()
    assert run["pipeline_spec"]["pipelineInfo"]["name"] == name
    (experiment,) = service.experiments.values()
    assert (experiment["display_name"], experiment["namespace"]) == ("slipway", "rides")
    assert (run["display_name"], run["experiment_id"]) == (RUN_ID, experiment["experiment_id"])
    assert run["service_account"] == "pipeline-runner"
    assert run["runtime_config"]["pipeline_root"] == "gs://bucket/pipelines"
    assert (submitted.name, submitted.link) == ("r0", f"{service.address}/#/runs/details/r0")


def test_experiment_is_made_once(service, submit, client, golden):
    submit()
    client.submit(client.request(golden), run_id="taxi-2")
    assert len(service.experiments) == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (400, "starting the run failed: it broke"),
        (401, "no valid token"),
        (403, r"not allowed \(it broke\)"),
        (404, "not found"),
        (429, "cannot answer now, 429"),
    ],
)
def test_refusal_is_reported_in_words_and_asked_once(service, submit, code, words):
    service.fails("POST /runs", code, times=9)
    with pytest.raises(PipelineError, match=words):
        submit()
    assert service.requests.count("POST /runs") == 1


def test_missing_token_is_reported(service, submit, monkeypatch):
    monkeypatch.delenv("KUBEFLOW_TOKEN")
    with pytest.raises(PipelineError, match="no valid token") as caught:
        submit()
    assert caught.value.hint == "set KUBEFLOW_TOKEN to a token of the installation"


def test_line_break_around_a_token_is_no_part_of_it(submit, monkeypatch):
    monkeypatch.setenv("KUBEFLOW_TOKEN", f"{os.environ['KUBEFLOW_TOKEN']}\r\n")
    assert submit().name == "r0"


@pytest.mark.parametrize("token", ["secret-\ntoken", "secret-töken"])
def test_token_that_no_header_can_hold_is_not_repeated(submit, monkeypatch, token):
    monkeypatch.setenv("KUBEFLOW_TOKEN", token)
    with pytest.raises(PipelineError, match="KUBEFLOW_TOKEN is not a token") as caught:
        submit()
    assert "secret" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


@pytest.mark.parametrize("code", [500, 503])
def test_fault_that_passes_is_outlived(service, submit, code):
    service.fails("POST /runs", code)
    service.fails("GET /experiments", code, times=2)
    assert submit().name == "r0"


def test_fault_that_stays_is_reported(service, submit):
    service.fails("POST /runs", 503, "try later", times=9)
    with pytest.raises(PipelineError, match=r"the service cannot answer now, 503 \(try later\)"):
        submit()


def test_silent_service_is_reported(service, submit, monkeypatch):
    monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._TIMEOUT_S", (0.2, 0.2))
    monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._TRIES", 1)
    service.is_silent("")
    with pytest.raises(PipelineError, match=r"looking for the experiment slipway failed: .* does not answer"):
        submit()


SCHEDULE = Schedule(id="s0", name="taxi", state="active", cron="", next_run=None, link="")
CALLS = {
    "state": ("GET /runs/", lambda client: client.state("r0")),
    "cancel": ("POST /runs/r0:terminate", lambda client: client.cancel("r0")),
    "schedules": ("GET /recurringruns", lambda client: client.schedules()),
    "pause": ("POST /recurringruns/s0:disable", lambda client: client.pause(SCHEDULE)),
    "resume": ("GET /recurringruns/s0", lambda client: client.resume(SCHEDULE, catch_up=True)),
    "delete": ("DELETE /recurringruns/s0", lambda client: client.delete(SCHEDULE)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (401, "no valid token"),
        (403, r"not allowed \(it broke\)"),
        (404, r"not found \(it broke\)"),
        (409, "failed: it broke"),
        (429, "cannot answer now, 429"),
        (500, "cannot answer now, 500"),
        (0, "does not answer"),
    ],
)
def test_whatever_is_asked_for_a_refusal_is_reported_in_words(
    service, client, monkeypatch, call, code, words
):
    monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._TRIES", 1)
    pattern, ask = CALLS[call]
    if code:
        service.fails(pattern, code, times=99)
    else:  # a busy machine may take longer for an answer
        monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._TIMEOUT_S", (0.2, 0.2))
        service.is_silent(pattern)
    with pytest.raises(PipelineError, match=words):
        ask(client)


def test_file_of_certificates_that_is_not_there_is_named_with_its_key(service, chosen):
    address = service.address.replace("http://", "https://")
    sets = (f"cloud.kubeflow.host={address}", "cloud.kubeflow.ca_file=/nowhere/ca.pem")
    with pytest.raises(
        PipelineError, match=f"failed: {address} .* by /nowhere/ca.pem .*No such file"
    ) as told:
        list(schedule.listed(chosen(*sets)))
    assert "cloud.kubeflow.ca_file" in told.value.hint


@pytest.mark.parametrize(
    ("error", "words", "may_have_begun"),
    [
        (ssl.SSLCertVerificationError(1, "self-signed certificate"), "by the system's certificates", False),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), "does not answer", True),
    ],
)
def test_certificate_is_told_from_a_connection_that_was_cut(client, error, words, may_have_begun):
    def ask(**_):
        raise MaxRetryError(None, "/", reason=SSLError(error))

    with pytest.raises(PipelineError, match=words) as told:
        client._client.ask("starting the run", ask)
    assert isinstance(told.value, UnansweredError) is may_have_begun


def test_what_an_encrypted_connection_was_cut_after_is_repeated_only_if_it_changes_nothing(client):
    retries = client._client._connection.configuration.retries
    cut = SSLError(ssl.SSLEOFError(8, "EOF occurred in violation of protocol"))
    assert retries.increment("GET", "/runs", error=cut).total == retries.total - 1
    with pytest.raises(MaxRetryError):
        retries.increment("POST", "/runs", error=cut)


def test_answer_that_was_cut_while_it_was_read_starts_no_second_run(service, client, golden, monkeypatch):
    tries = []

    def cut(*_, **__):
        tries.append(cut)
        raise client._client.models.ApiException(status=0, reason="SSLError")

    monkeypatch.setattr(type(client), "_experiment_to_use", lambda self: "e0")
    monkeypatch.setattr(client._client._connection.rest_client, "POST", cut)
    with pytest.raises(UnansweredError, match="may have begun the run"):
        begin(client, client.request(golden), name=RUN_ID)
    assert len(tries) == 1


@pytest.mark.parametrize("page", [b"<title>Ung\xfcltig</title>", None])
def test_page_of_an_error_in_another_encoding_is_told_as_that_error(client, monkeypatch, page):
    connection = client._client._connection
    answer = SimpleNamespace(status=502, reason="Bad Gateway", data=page, getheaders=dict)

    def refused(*_, **__):
        raise client._client.models.ApiException(http_resp=answer)

    monkeypatch.setattr(connection.rest_client, "GET", refused)
    with pytest.raises(PipelineError, match=r"cannot answer now, 502 \(Bad Gateway\)"):
        client.state("r0")


@pytest.mark.parametrize("call", CALLS)
def test_page_of_a_login_is_not_taken_for_an_answer(service, client, call):
    service.page = "<!DOCTYPE html><title>Log in</title>"
    with pytest.raises(PipelineError, match="answers with a page, such as that of a login") as told:
        CALLS[call][1](client)
    assert "KUBEFLOW_TOKEN" in told.value.hint


def test_page_of_a_login_starts_no_run(service, submit):
    service.page = "<!DOCTYPE html><title>Log in</title>"
    with pytest.raises(PipelineError, match="the experiment slipway failed: http"):
        submit()


@pytest.mark.parametrize("fault", [{"loses_answer": True}, {"delay_s": 1.0}])
def test_lost_answer_does_not_start_a_second_run(service, submit, monkeypatch, fault):
    urlopen = HTTPConnectionPool.urlopen

    def open_impatiently(pool, method, url, *given, **options):
        if method == "POST" and url.endswith("/runs"):  # all others are answered, if late on a busy machine
            options["timeout"] = 0.5
        return urlopen(pool, method, url, *given, **options)

    if "delay_s" in fault:
        monkeypatch.setattr(HTTPConnectionPool, "urlopen", open_impatiently)
        # It is looked for until 15 s after that.
        monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._WAIT_S", 1.0)
    service.fails("POST /runs", 0, **fault)
    assert submit().name == "r0"
    assert service.requests.count("POST /runs") == 1


def test_experiment_that_another_submit_has_just_made_is_used(service, client, submit, monkeypatch):
    latest = type(client._client).latest

    def before_the_other(self, doing, *asked):
        assert latest(self, doing, *asked) is None
        service.experiments["e0"] = {"experiment_id": "e0", "display_name": "slipway", "number": 0}
        service.fails("POST /experiments", 409, "Already exist error")

    monkeypatch.setattr(type(client._client), "latest", before_the_other)
    submit()
    assert [run["experiment_id"] for run in service.runs.values()] == ["e0"]


@pytest.mark.parametrize("code", [502, 504])
def test_answer_of_a_proxy_before_the_service_starts_no_second_run(
    service, client, golden, monkeypatch, code
):
    monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._WAIT_S", 0.01)
    service.fails("POST /runs", code, times=9)
    with pytest.raises(UnansweredError, match=f"may have begun the run {RUN_ID} nevertheless") as told:
        begin(client, client.request(golden), name=RUN_ID)
    assert service.requests.count("POST /runs") == 1
    assert told.value.hint.endswith(f"/#/runs, under the name {RUN_ID}")


@pytest.mark.parametrize("lost", [503, 504, 0])
def test_a_run_that_nobody_can_look_for_after_a_lost_answer_may_have_begun(
    service, client, golden, monkeypatch, lost
):
    monkeypatch.setattr("slipway.pipeline.cloud.services.kubeflow_client._WAIT_S", 0.01)
    service.fails("POST /runs", lost, loses_answer=not lost)
    service.fails("GET /runs", 401, times=9)
    with pytest.raises(UnansweredError, match=f"may have begun the run {RUN_ID} nevertheless"):
        begin(client, client.request(golden), name=RUN_ID)
    assert service.requests.count("POST /runs") == 1


def test_a_service_that_cannot_be_asked_for_the_experiment_has_begun_nothing(service, client, golden):
    service.fails("GET /experiments", 500, times=99)
    with pytest.raises(PipelineError) as told:
        begin(client, client.request(golden), name=RUN_ID)
    assert not isinstance(told.value, UnansweredError)
    assert "may have begun" not in told.value.message


@pytest.mark.parametrize(
    ("life", "code", "words"),
    [
        ({"state": "SUCCEEDED"}, 0, "Done: taxi"),
        ({"state": "FAILED", "error": {"message": "pod deleted"}}, 1, "Failed: pod deleted"),
        ({"state": "CANCELED"}, 1, "Cancelled: no error message was reported"),
        (
            {
                "state": "FAILED",
                "run_details": {
                    "task_details": [
                        {"display_name": "Ingest", "state": "SUCCEEDED"},
                        {
                            "display_name": "DataGate",
                            "state": "FAILED",
                            "error": {"message": "exit status 3"},
                        },
                    ]
                },
            },
            3,
            "Stopped: DataGate",
        ),
        (
            {  # as its backend tells a run whose tasks Argo has compressed, whatever became of them
                "state": "SUCCEEDED",
                "run_details": {
                    "task_details": [
                        {"display_name": "root", "state": "RUNNING"},
                        {"display_name": "Ingest", "state": "SUCCEEDED"},
                    ]
                },
            },
            0,
            "not told by the service: how SchemaGen, ",
        ),
    ],
)
def test_run_is_followed_to_its_end(service, client, golden, submit, monkeypatch, capsys, life, code, words):
    monkeypatch.setattr("slipway.pipeline.cloud.submit._FIRST_LOOK_S", 0.01)
    monkeypatch.setattr("slipway.pipeline.cloud.submit._TICK_S", 0.01)
    service.lives = [{"state": "RUNNING"}, life]
    job = client.request(golden)
    submitted = submit()
    assert (
        follow(
            client,
            job,
            submitted,
            chosen=CloudChoice("taxi", (), None),
            display=LineDisplay(io.StringIO()),
        )
        == code
    )
    assert words in capsys.readouterr().err


def test_run_of_an_uploaded_pipeline_whose_tasks_are_not_told_is_refused_in_words(
    service, client, golden, chosen
):
    client.submit(client.request(golden), run_id=RUN_ID)
    del service.runs["r0"]["pipeline_spec"]
    with pytest.raises(PipelineError, match="does not tell the tasks of the run r0") as caught:
        follow_run("r0", chosen())
    assert caught.value.hint.endswith("/#/runs/details/r0")
    schedule.create(chosen())
    del service.recurring["s0"]["pipeline_spec"]
    with pytest.raises(PipelineError, match="does not tell the tasks of the schedule taxi"):
        schedule.run_now(chosen())


def test_run_is_handed_to_the_tracker_with_the_times_of_its_tasks(
    service, workload, submit, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(enqueue, "start", send_all)
    submit()
    took = {"start_time": "2027-01-01T00:01:00Z", "end_time": "2027-01-01T00:02:00Z"}
    tasks = [{"display_name": "Ingest", "state": "SUCCEEDED", **took}, {"display_name": "root", **took}]
    service.lives = [
        {"state": "SUCCEEDED", "finished_at": "2027-01-01T00:10:00Z", "run_details": {"task_details": tasks}}
    ]
    with served(Collector()) as collector:
        sets = read_assignments((f"track.opentelemetry={collector.address}",))
        chosen = CloudChoice(workload, sets, "prod", output=tmp_path / "output")
        assert [follow_run("r0", chosen), follow_run("r0", chosen)] == [0, 0]

    assert "Handed to track.opentelemetry before" in capsys.readouterr().err
    [(_, path, _, body)] = collector.got
    spans = json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    took_s = [(int(each["endTimeUnixNano"]) - int(each["startTimeUnixNano"])) / 1e9 for each in spans]
    assert (path, [each["name"] for each in spans], took_s) == (
        "/v1/traces", ["run taxi", "Ingest"], [600.0, 60.0],
    )  # fmt: skip


def test_run_is_followed_again_and_cancelled(service, workload, submit, capsys):
    chosen = CloudChoice(workload, (), "prod")
    submit()
    service.lives = [{"state": "RUNNING"}]
    assert cancel_run("r0", chosen) == f"{service.address}/#/runs/details/r0"
    assert follow_run("r0", chosen) == 1
    assert "Cancelled" in capsys.readouterr().err
    assert cancel_run("r0", chosen).endswith("/r0"), "once more: Argo calls it failed"
    with pytest.raises(PipelineError, match="the run r9 failed: not found") as caught:
        cancel_run("r9", chosen)
    assert caught.value.hint == "check its name"


@pytest.mark.parametrize("state", ["CANCELING", "CANCELED"])
def test_run_that_is_being_cancelled_is_cancelled(service, workload, submit, state):
    submit()
    service.lives = [{"state": state}]
    assert cancel_run("r0", CloudChoice(workload, (), "prod")).endswith("/r0")


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED"])
def test_run_that_has_ended_is_not_cancelled(service, workload, submit, state):
    submit()
    service.lives = [{"state": state}]
    with pytest.raises(PipelineError, match=f"the run r0 cannot be cancelled: it has ended, {state}"):
        cancel_run("r0", CloudChoice(workload, (), "prod"))


def test_missing_address_is_named_with_the_way_to_one(service, workload):
    with pytest.raises(ConfigError, match=r"cloud\.kubeflow\.host is not set") as caught:
        submit_workload(
            CloudChoice(workload, read_assignments(["cloud.kubeflow.host=null"]), "prod"), wait=False
        )
    assert "port-forward" in caught.value.message
    assert "host: http://localhost:8080" in caught.value.hint


@pytest.mark.parametrize("name", BOTH)
def test_recurring_run_is_made_as_the_profile_says(service, chosen, name):
    made = schedule.create(
        chosen(
            "cloud.schedule={cron: 30 2 * * 7, start: '2027-01-01T00:00+01:00'}",
            "cloud.schedule.catch_up=true",
            "cloud.schedule.max_concurrent_runs=2",
        )
    )
    (kept,) = service.recurring.values()
    assert kept["trigger"]["cron_schedule"] == {
        "cron": "0 30 2 * * 0",
        "start_time": "2026-12-31T23:00:00+00:00",
    }
    assert (kept["max_concurrency"], kept["no_catchup"], kept["mode"]) == ("2", False, "ENABLE")
    assert kept["pipeline_spec"]["pipelineInfo"]["name"] == name
    assert (made.name, made.state) == (name, "active")
    assert made.link == f"{service.address}/#/recurringrun/details/s0"
    with pytest.raises(UsageError, match=f"there is a schedule '{name}' already"):
        schedule.create(chosen())


@pytest.mark.parametrize(("key", "value"), [("time_zone", "Europe/Berlin"), ("max_concurrent_runs", "11")])
def test_schedule_that_the_backend_would_not_keep_to_is_refused_and_nothing_is_made(
    service, chosen, key, value
):
    with pytest.raises(ConfigError, match=rf"cloud\.schedule\.{key}: {value}"):
        schedule.create(chosen(f"cloud.schedule.{key}={value}"))
    assert (service.recurring, service.experiments) == ({}, {})


def test_recurring_runs_are_listed_over_all_pages(service, chosen):
    for name in ("a", "b", "c"):
        schedule.create(chosen(called=name))
    assert [line.split()[:2] for line in schedule.listed(chosen())] == [
        ["c", "active"], ["b", "active"], ["a", "active"],
    ]  # fmt: skip


def test_recurring_run_is_paused_resumed_and_deleted(service, chosen):
    schedule.create(chosen())
    schedule.pause(chosen())
    assert service.recurring["s0"]["status"] == "DISABLED"
    with pytest.raises(UsageError, match="was made with catch_up false"):
        schedule.resume(chosen(), catch_up=True)
    schedule.resume(chosen(), catch_up=None)
    assert service.recurring["s0"]["status"] == "ENABLED"
    del service.recurring["s0"]["no_catchup"]  # as a server that leaves false values out
    with pytest.raises(UsageError, match="was made with catch_up true"):
        schedule.resume(chosen(), catch_up=False)
    schedule.delete(chosen())
    assert service.recurring == {}


def _read_by_day(golden):
    """Let a job's Ingest read a folder for each day."""
    task = golden["pipelineSpec"]["root"]["dag"]["tasks"]["Ingest"]
    text = '{"splits": [{"name": "all", "pattern": "{YYYY}-{MM}-{DD}/*.csv"}]}'
    task["inputs"]["parameters"]["input_config"] = {"runtimeValue": {"constant": text}}


def test_span_of_the_day_is_a_label_of_the_workflow_that_run_now_fills_in(service, chosen):
    source = "data.source=gs://my-bucket/trips/{YYYY}-{MM}-{DD}/*.csv"
    by_day = chosen(source, "cloud.schedule.lag_days=1")
    _read_by_day(schedule.compiled_job(None))
    schedule.create(by_day)
    asked = service.recurring["s0"]["runtime_config"]["parameters"]["scheduled_at"]
    assert asked == "{{workflow.labels.scheduledworkflows.kubeflow.org/workflowEpoch}}"
    began = int(datetime.now(UTC).timestamp())
    schedule.run_now(by_day)
    given = service.runs["r0"]["runtime_config"]["parameters"]["scheduled_at"]
    assert began <= int(given) <= datetime.now(UTC).timestamp()


def test_back_fill_goes_on_without_the_spans_that_are_done_or_at_work(service, chosen, capsys):
    days = {"first": "2027-01-01", "last": "2027-01-03"}
    by_day = chosen("data.source=gs://my-bucket/trips/{YYYY}-{MM}-{DD}/*.csv")
    _read_by_day(schedule.compiled_job(None))
    done, failed = {"state": "SUCCEEDED"}, {"state": "FAILED"}
    service.lives = [done, failed]
    assert back_fill.back_fill(by_day, **days) == 1
    assert " --from 2027-01-02 --to 2027-01-03   # continues" in capsys.readouterr().err
    for run, state in (("r0", "SUCCEEDED"), ("r1", "RUNNING")):  # as the list tells them
        service.runs[run]["state"] = state
    service.lives = [done]
    assert back_fill.back_fill(by_day, **days) == 0
    told = capsys.readouterr().err
    assert "2027-01-01: has already run" in told
    assert "2027-01-02: is already running" in told
    names = [run["display_name"].removeprefix("taxi-prod-back-fill-") for run in service.runs.values()]
    assert names == ["20270101", "20270102", "20270103"]
    for run, day in zip(service.runs.values(), ("2027-01-01", "2027-01-02", "2027-01-03"), strict=True):
        assert f'"pattern": "{day}/*.csv"' in json.dumps(run["pipeline_spec"]).replace('\\"', '"')


def test_back_fill_does_not_start_a_run_again_whose_answer_was_lost(service, chosen, monkeypatch):
    monkeypatch.setattr(
        "slipway.pipeline.cloud.services.kubeflow_client._TRIES", 0
    )  # it is not looked for either
    service.fails("POST /runs", 0, loses_answer=True)
    by_number = chosen("data.source=gs://my-bucket/{SPAN}/*.csv")
    with pytest.raises(PipelineError, match="starting the run failed"):
        back_fill.back_fill(by_number, first="7", last="7")
    service.runs["r0"]["state"] = "SUCCEEDED"
    assert back_fill.back_fill(by_number, first="7", last="7") == 0
    assert list(service.runs) == ["r0"]


S3 = (
    "cloud.root=minio://mlpipeline/v2/artifacts",
    "push.destination=s3://mlpipeline/serving/taxi",
    "cloud.kubeflow.secrets={keys: {AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: key}}",
)
ENDPOINT = "cloud.kubeflow.variables={AWS_ENDPOINT_URL: 'http://minio:9000', AWS_ALLOW_HTTP: 'true'}"


def test_schedule_gives_the_secrets_to_its_runs_and_to_one_that_is_run_now(service, chosen):
    schedule.create(chosen(*S3, ENDPOINT))
    schedule.run_now(chosen(*S3, ENDPOINT))
    (kept,), (run,) = service.recurring.values(), service.runs.values()
    for sent in (kept["pipeline_spec"], run["pipeline_spec"]):
        assert sent["pipeline_spec"]["pipelineInfo"]["name"] == "taxi"
        kubernetes = sent["platform_spec"]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
        assert kubernetes.keys() == sent["pipeline_spec"]["deploymentSpec"]["executors"].keys()
        [secret] = kubernetes["Pusher_executor"]["secretAsEnv"]
        assert (secret["secretName"], len(secret["keyToEnv"])) == ("keys", 2)


def notes(workload, project, *sets):
    from slipway.pipeline.cloud.services.kubeflow import Kubeflow
    from slipway.pipeline.config import load_workload

    config = load_workload(workload, profile="prod", sets=read_assignments(sets), root=project)
    places = {"cloud.root": config.cloud.root, "push.destination": config.push.destination}
    return [each for each in Kubeflow(config).check(places=places, images={}) if each.startswith("note")]


def test_store_that_tasks_get_no_variables_for_is_noted_before_they_run(workload, project):
    assert notes(workload, project) == []
    [note] = notes(workload, project, *S3[:2])
    assert note.startswith(
        "note: the tasks open minio://mlpipeline/v2/artifacts themselves, and cloud.kubeflow."
    )
    assert "none of AWS_ACCESS_KEY_ID, " in note
    [note] = notes(workload, project, *S3)
    assert note.endswith("AWS_ENDPOINT_URL, its store's address, is not in cloud.kubeflow.variables")
    assert notes(workload, project, *S3, ENDPOINT) == []


@pytest.mark.parametrize(
    ("root", "command"),
    [
        ("gs://my-bucket/p/", "gcloud storage rm 'gs://my-bucket/p/records/taxi/tfx.ModelBlessing/*'"),
        ("s3://my-bucket/p", "aws s3 rm --recursive s3://my-bucket/p/records/taxi/tfx.ModelBlessing/"),
        (
            "minio://my-bucket/p",
            "aws s3 rm --recursive --endpoint-url $AWS_ENDPOINT_URL "
            "s3://my-bucket/p/records/taxi/tfx.ModelBlessing/",
        ),
    ],
)
def test_baseline_is_said_to_be_a_record_with_the_command_that_removes_it(workload, root, command):
    chosen = CloudChoice(workload, read_assignments([f"cloud.root={root}"]), "prod")
    with pytest.raises(
        UsageError, match=r"the latest record in .*/p/records/taxi/tfx\.ModelBlessing\."
    ) as caught:
        list(baseline(chosen, clear=True, reason=""))
    assert caught.value.hint.startswith(f"{command}   #")

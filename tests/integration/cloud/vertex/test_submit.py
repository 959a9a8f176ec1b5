"""`cloud_runner.py submit` with Vertex AI on loopback."""

import json
import re
import shlex
import signal
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest
from called import called
from counted import commands_run, lines_run
from installed import needed

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.compile_and_rehearse import compile_workload
from slipway.pipeline.cloud.submit import check, submit_workload
from slipway.pipeline.config import read_assignments
from slipway.pipeline.config.track import TrackConfig
from slipway.pipeline.errors import ConfigError, PipelineError

needed("kfp", reason="TFX brings kfp to Python 3.11 only")


BOTH = ("taxi", "digits")


def submit(workload, *sets):
    return submit_workload(CloudChoice(workload, read_assignments(sets), "prod"), wait=False)


@pytest.mark.parametrize("key", ["project", "region"])
def test_missing_place_is_named(google, workload, key):
    with pytest.raises(ConfigError, match=rf"cloud\.vertex\.{key} is not set"):
        submit(workload, f"cloud.vertex.{key}=null")
    assert google.requests == []


def test_missing_credentials_are_named_with_the_command_that_makes_them(
    google, workload, monkeypatch, tmp_path
):
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    with pytest.raises(ComponentError, match="There are no credentials for Google Cloud") as caught:
        submit(workload)
    assert caught.value.hint.startswith("gcloud auth application-default login")


def test_credentials_that_are_no_longer_valid_are_named(google, workload):
    google.fails("/token", 400, "invalid_grant", times=9)
    with pytest.raises(ComponentError, match="credentials for Google Cloud do not work"):
        submit(workload)


def test_missing_bucket_is_named_with_the_command_that_makes_it(google, workload):
    google.buckets.clear()
    with pytest.raises(PipelineError, match="there is no bucket gs://my-bucket") as caught:
        submit(workload)
    assert "gcloud storage buckets create gs://my-bucket --project my-project" in caught.value.hint
    assert not any("pipelineJobs" in request for request in google.requests)


@pytest.mark.parametrize(
    ("key", "place"),
    [("push.destination", "gs://nope/serving"), ("data.source", "gs://nope/{YYYY}-{MM}-{DD}/*.csv")],
)
def test_missing_bucket_of_models_or_data_is_named_before_a_run_is_paid_for(google, workload, key, place):
    with pytest.raises(PipelineError, match=f"{key}: there is no bucket gs://nope"):
        submit(workload, f"{key}={place}")
    assert not any("pipelineJobs" in request for request in google.requests)


def test_missing_image_is_named_with_the_command_that_makes_it(google, workload):
    google.images.clear()
    with pytest.raises(PipelineError, match=r"slipway:1\.0 is not in its registry") as caught:
        submit(workload)
    assert "docker push" in caught.value.hint


def test_missing_image_of_the_training_machines_is_named_too(google, workload):
    with pytest.raises(
        PipelineError, match=r"cloud\.training\.image: .*slipway:1\.0-tpu is not in its"
    ) as caught:
        submit(workload, "train={device: tpu, tpu: v5e-8, backend: jax}")
    assert re.search(r"make image IMAGE=\S+:1\.0-tpu TARGET=training-tpu && docker push", caught.value.hint)
    assert not any("pipelineJobs" in request for request in google.requests)


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        (403, "SERVICE_DISABLED", "the API of Cloud Storage is not enabled in the project my-project"),
        (401, "", "looking for gs://my-bucket failed: the credentials are not accepted"),
        (409, "", "looking for gs://my-bucket failed: it broke"),
        (429, "", r"looking for gs://my-bucket failed: a quota is used up \(it broke\)"),
        (500, "", "looking for gs://my-bucket failed: the service has an internal error, 500"),
        (0, "", "looking for gs://my-bucket failed: Cloud Storage does not answer"),
    ],
)
def test_cloud_storage_that_refuses_is_reported(
    google, workload, monkeypatch, impatient, code, reason, words
):
    monkeypatch.setattr("slipway.pipeline.cloud.services.google._RETRY_S", 0.5)
    if code:
        google.fails("/storage", code, reason=reason, times=99, service="storage.googleapis.com")
    else:
        impatient("pipeline.cloud.services.google._TIMEOUT_S", 0.2)
        google.is_silent("/storage")
    with pytest.raises(PipelineError, match=words):
        submit(workload)


@pytest.mark.parametrize(
    ("code", "words"),
    [(401, "answers 401; a private image needs: docker login 127."),
     (403, "answers 403; a private image needs: docker login 127."),
     (429, "answers 429"), (500, "answers 500"), (0, "does not answer (ReadTimeout)")],
)  # fmt: skip
def test_what_cannot_be_checked_is_no_refusal_but_said(google, vertex, impatient, code, words):
    google.fails("/storage", 403, "no storage.buckets.get")
    if code:
        google.fails("/v2/", code, "denied")
    else:
        impatient("pipeline.cloud.services.image_registry._TIMEOUT_S", 0.2)
        google.is_silent("/v2/")
    image = f"{google.address.removeprefix('http://')}/slipway:1.0"
    notes = list(vertex.check(places={"cloud.root": "gs://my-bucket/pipelines"}, images={image: ""}))
    assert notes[0] == "not checked: gs://my-bucket, whose settings you may not see (storage.buckets.get)"
    host = image.partition("/")[0]
    assert notes[1].startswith(f"not checked: the image {image}; {host} {words}")
    assert ("docker login" in notes[1]) == (code in (401, 403))


def test_unsafe_endpoint_is_refused(workload):
    with pytest.raises(ConfigError, match="must begin with https://"):
        submit(workload, "cloud.vertex.endpoint=http://example.com")


@pytest.mark.slow
def test_submitted_run_is_followed_to_its_end(google, workload, cloud_here):
    google.buckets["my-bucket"] = "US-EAST1"
    done = [{"taskName": name, "state": "SUCCEEDED"} for name in ("Ingest", "Trainer")]
    google.lives = [
        {"state": "PIPELINE_STATE_PENDING"},
        {
            "state": "PIPELINE_STATE_RUNNING",
            "jobDetail": {"taskDetails": [{"taskName": "Ingest", "state": 2}]},
        },
        {"state": "PIPELINE_STATE_SUCCEEDED", "jobDetail": {"taskDetails": done}},
    ]
    words = ("--wait", "--accept-data", "asked on Monday")
    finished = cloud_here("submit", str(workload), "--profile", "prod", *words)
    assert finished.returncode == 0, finished.stderr
    (name,) = google.jobs
    assert re.fullmatch(r"taxi-\d{8}-\d{6}-[0-9a-f]{4}", name)
    assert finished.stdout.count("\n") == 1
    assert finished.stdout.endswith(f"/pipelines/runs/{name}?project=my-project\n")
    lines = finished.stderr.splitlines()
    assert (
        lines[0] == "gs://my-bucket is in us-east1, the pipeline in europe-west4: "
        "moving data costs time and money"
    )
    assert any(line.startswith("✓ Trainer") for line in lines)
    assert any(line.startswith("Done: taxi") for line in lines)
    made = google.jobs[name]
    assert made.runtime_config.gcs_output_directory == "gs://my-bucket/pipelines"
    tasks = json.loads(type(made).to_json(made))["pipelineSpec"]["root"]["dag"]["tasks"]
    reason = tasks["DataGate"]["inputs"]["parameters"]["accept_data"]["runtimeValue"]["constant"]
    assert reason == "asked on Monday"


@pytest.mark.slow
@pytest.mark.external  # a program that imports TFX; following that is interrupted is seen in test_follow.py
def test_ctrl_c_leaves_the_run_and_the_commands_that_are_told_then_work_as_pasted(google, workload, project):
    google.lives = [{"state": "PIPELINE_STATE_RUNNING"}]
    words = [sys.executable, "cloud_runner.py", "submit", str(workload), "--profile", "prod", "--wait"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=project, **pipes) as waiting:
        google.on_request = lambda request: "GET" in request and "Jobs" in request and interrupt(waiting)
        link, told = waiting.communicate(timeout=300)
    assert waiting.returncode == 130, told
    google.on_request = lambda request: None
    assert f"the run continues: {link}" in told
    [cancel] = re.findall(r"hint: (.* cancel .*)", told)
    finished = pasted(cancel)
    assert (finished.returncode, finished.stdout) == (0, f"cancelled: {link}"), finished.stderr
    [follow] = re.findall(r"hint: (.* follow .*)", told)
    finished = pasted(follow)
    assert finished.returncode == 1
    assert "Cancelled: " in finished.stderr


def pasted(command):
    """Calls what is told, as a shell takes it apart."""
    _, program, *words = shlex.split(command, comments=True)
    assert program == "cloud_runner.py"
    return called("cloud_runner", *words)


def interrupt(process):
    """As Ctrl-C does, once."""
    if not getattr(process, "was_interrupted", False):
        process.was_interrupted = True
        process.send_signal(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_compiling_starts_no_process_and_takes_part_of_a_second_beyond_imports(
    google, workload, name, tmp_path
):
    import_module("slipway.pipeline.cloud.compile")
    found = []

    def compiled():
        compile_workload(CloudChoice(workload, profile="prod"), file=tmp_path / "job.json")

    commands = commands_run(lambda: found.append(lines_run(compiled)))
    assert commands == []
    assert found[0] < 3_000_000  # 2.1 million measured, in half a second
    assert google.requests == []


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_submitting_asks_for_each_thing_once(google, workload, name):
    codes = []
    assert commands_run(lambda: codes.append(submit(workload))) == []
    assert codes == [0]
    assert [request.partition(" ")[0] for request in google.requests] == ["POST", "GET", "HEAD", "POST"]
    (made,) = google.jobs.values()
    assert made.display_name == name


def test_when_trackers_are_told_of_it_is_said(capsys):
    track = TrackConfig(mlflow="http://127.0.0.1:5000", opentelemetry="http://127.0.0.1:4318")
    target = SimpleNamespace(places={}, images={}, config=SimpleNamespace(track=track, notify=None))
    check(SimpleNamespace(check=lambda **_: ["from the service"]), target)
    assert capsys.readouterr().err.splitlines() == [
        "from the service",
        "note: track.mlflow, track.opentelemetry: a cloud run is sent once `follow` has seen its end",
    ]
    check(SimpleNamespace(check=lambda **_: []), target, is_followed=True)
    assert capsys.readouterr().err == ""

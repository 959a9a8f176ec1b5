"""Training on other machines: the real client, a job service on loopback, and a worker in its own process.

It is forked from the warm one, as trainings are in a run.

The service reads requests by the types that the client library publishes, and runs what the container would.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs

import loopback
import pytest
from installed import needed
from requests.adapters import HTTPAdapter

from slipway.components import python_process

needed("google.cloud.aiplatform_v1", reason="Vertex AI's client is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]

TIMEOUT_S = 0.3
NAME = "projects/p/locations/europe-west4/customJobs"
SPEC = {
    "workerPoolSpecs": [
        {
            "machineSpec": {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x2"},
            "replicaCount": "1",
            "containerSpec": {
                "imageUri": "registry/slipway:1.0-tpu",
                "command": ["python", "-m", "slipway.components.trainer.remote.worker"],
                "env": [{"name": "KERAS_BACKEND", "value": "tensorflow"}],
            },
        }
    ],
    "scheduling": {"strategy": "SPOT"},
}


def drain(stream):
    """Reads what a worker prints, as a service does for its logs."""
    with stream:
        stream.read()


class Service(loopback.Server):
    """Takes jobs, runs their command, and tells their state.

    Attributes:
        jobs: as they were asked for.
        cancelled: names.
        codes: that the workers ended with.
        refuse: code and message instead of a job, or 0 for no answer at all; None: none.
        lost: codes instead of the answers to the next jobs that it takes; 0: no answer at all.
        unavailable: how many of the next questions for a state are answered with 503.
        faults: codes that the next requests about a job are answered with; 0: too late.
        preempted: what the service does for each worker that gets SIGTERM once it has a new checkpoint:
            "starts it again" or "gives up".
    """

    def __init__(self, environment, checkpoints):
        super().__init__(("127.0.0.1", 0), Handler)
        self.environment, self.checkpoints = environment, checkpoints
        self.jobs, self.states, self.cancelled = [], {}, []
        self.worker, self.codes, self.threads = None, [], []
        self.refuse, self.preempted, self.unavailable = None, [], 0
        self.faults, self.lost = [], []

    def run(self, name, job):
        container = job.job_spec.worker_pool_specs[0].container_spec
        assert container.command[:2] == ["python", "-m"]
        [module] = container.command[2:]
        variables = {each.name: each.value for each in container.env}
        while True:
            self.states[name] = "JOB_STATE_RUNNING"
            self.worker = worker = python_process.start_module(
                module, container.args, environment={**self.environment, **variables}, may_fork=True
            )
            printing = threading.Thread(target=drain, args=(worker.stdout,), daemon=True)
            printing.start()
            before = self.saved()
            while self.preempted and worker.poll() is None:
                if self.saved() - before:
                    worker.terminate()
                    break
                time.sleep(0.01)
            code = worker.wait()
            self.codes.append(code)
            printing.join()
            if code == 138 and self.preempted.pop(0) == "starts it again":
                continue  # as a spot machine that comes back
            self.states[name] = "JOB_STATE_SUCCEEDED" if code == 0 else "JOB_STATE_FAILED"
            return

    def saved(self):
        return set(self.checkpoints.glob("*/*.npz"))


class Handler(loopback.JsonAnswers, BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0].removeprefix("/v1/")
        if path.endswith(":cancel"):
            if self.server.faults:
                return self.fail(self.server.faults.pop(0))
            if self.server.states[path.removesuffix(":cancel")].endswith(("SUCCEEDED", "FAILED")):
                return self.answer(400, {"error": {"code": 400, "message": "it has ended"}})
            self.server.cancelled.append(path.removesuffix(":cancel"))
            return self.answer(200, {})
        assert path == NAME
        if self.server.refuse:
            code, message = self.server.refuse
            if not code:
                return None  # the connection closes without an answer
            return self.answer(code, {"error": {"code": code, "message": message}})
        from google.cloud import aiplatform_v1 as vertex

        job = vertex.CustomJob.from_json(body)
        self.server.jobs.append(job)
        name = f"{NAME}/{len(self.server.jobs)}"
        self.server.states[name] = "JOB_STATE_PENDING"
        self.server.threads.append(threading.Thread(target=self.server.run, args=(name, job), daemon=True))
        self.server.threads[-1].start()
        if self.server.lost:
            code = self.server.lost.pop(0)
            return self.answer(code, {"error": {"code": code, "message": "it broke"}}) if code else None
        return self.answer(200, {"name": name, "state": "JOB_STATE_PENDING"})

    def do_GET(self):
        name, _, query = self.path.removeprefix("/v1/").partition("?")
        if name == NAME:
            return self.answer(200, {"customJobs": self.labelled(parse_qs(query)["filter"][0])})
        if self.server.faults:
            return self.fail(self.server.faults.pop(0))
        if self.server.unavailable:
            self.server.unavailable -= 1
            return self.answer(503, {"error": {"code": 503, "message": "try again"}})
        return self.answer(200, {"name": name, "state": self.server.states[name]})

    def labelled(self, wanted):
        key, value = wanted.removeprefix("labels.").split("=")
        return [
            {"name": name, "state": state}
            for job, (name, state) in zip(self.server.jobs, self.server.states.items(), strict=True)
            if job.labels[key] == value
        ]

    def fail(self, code):
        if not code:
            time.sleep(2 * TIMEOUT_S)
        said = {"error": {"code": code or 503, "message": "try again"}}
        if code == "gateway":
            code, said = 504, {"error": "upstream timed out"}
        with suppress(ConnectionError):  # the client no longer waits
            self.answer(code or 503, said)


@pytest.fixture
def service(project, tmp_path):
    path = os.pathsep.join([str(project), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": path, "TF_USE_LEGACY_KERAS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"}
    running = Service(environment, tmp_path / "checkpoints")
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.preempted.clear()
    while any(thread.is_alive() for thread in running.threads):
        # Its own thread waits for it: who else asked would take that answer away.
        with suppress(ProcessLookupError, AttributeError):
            os.kill(running.worker.pid, signal.SIGKILL)
        time.sleep(0.01)
    running.shutdown()
    running.server_close()


@pytest.fixture
def elsewhere(service, tmp_path):
    from slipway.components.trainer.launch import Elsewhere

    request = {
        "project": "p",
        "region": "europe-west4",
        "endpoint": f"http://127.0.0.1:{service.server_port}",
        "customJob": {"displayName": "tiny", "labels": {"team": "rides"}, "jobSpec": SPEC},
    }
    # TensorFlow's way to files by address, as to gs://.
    return Elsewhere(request, f"file://{tmp_path}/remote", poll_s=0.05)


@pytest.fixture
def carried_out(job, elsewhere, tmp_path, monkeypatch):
    """Carries out the job elsewhere with some settings changed; its result."""
    from dataclasses import replace

    from slipway.components.trainer.launch import launch

    monkeypatch.syspath_prepend(tmp_path)  # the pipeline's own process can import the model as well

    def call(**changes):
        here = tmp_path / "here"
        here.mkdir(exist_ok=True)
        (tmp_path / "checkpoints" / "tiny").mkdir(parents=True, exist_ok=True)
        changed = replace(
            job, output_dir=str(here), checkpoint_dir=f"file://{tmp_path}/checkpoints/tiny", **changes
        )
        made, result = launch(changed, interpreter=None, meanwhile=lambda: "made", elsewhere=elsewhere)
        assert made == "made"
        return result

    return call


def test_training_whose_machines_are_taken_back_goes_on_and_what_it_leaves_comes_back(
    carried_out, service, tmp_path
):
    from slipway.components.trainer.settings.checkpoint import CheckpointSettings

    service.preempted, service.unavailable = ["starts it again", "gives up"], 2
    result = carried_out(epochs=60, checkpoint=CheckpointSettings(steps=5))
    assert service.codes == [138, 138, 0]
    assert len(service.jobs) == 2, "what the service gives up, the Trainer asks for again"
    assert (result["epochs"], result["steps"], result["time"]["restarts"]) == (60, 300, 2)
    here = tmp_path / "here"
    assert result == json.loads((here / "result.json").read_text())
    assert len(json.loads((here / "history.json").read_text())["epochs"]) == 60
    assert (here / "model.weights.h5").stat().st_size > 1000
    assert service.cancelled == []
    asked = service.jobs[0]
    [pool] = asked.job_spec.worker_pool_specs
    assert (asked.display_name, asked.labels["team"]) == ("tiny", "rides")
    assert (pool.machine_spec.machine_type, pool.machine_spec.tpu_topology) == ("ct5lp-hightpu-4t", "2x2")
    assert list(pool.container_spec.args) == [f"file://{tmp_path}/remote/job.json"]
    assert asked.job_spec.scheduling.strategy.name == "SPOT"


def test_failure_of_the_training_comes_back_in_its_own_words(carried_out, service):
    from slipway.components.errors import ComponentError

    with pytest.raises(ComponentError, match=r"training failed: train.batch_size \(4800\) is larger") as no:
        carried_out(batch_size=4800)
    assert no.value.hint == "set train.batch_size to 240 or less"


@pytest.mark.parametrize("code", [400, 403, 404, 409, 429])
def test_job_that_the_service_refuses_is_refused_with_its_words_and_the_remedies(carried_out, service, code):
    from slipway.components.errors import ComponentError

    service.refuse = (code, "Permission 'aiplatform.customJobs.create' denied")
    with pytest.raises(
        ComponentError, match=f"Vertex AI did not create the training job: {code} Perm"
    ) as refused:
        carried_out()
    assert "roles/aiplatform.user" in refused.value.hint


def test_credentials_that_the_service_does_not_accept_are_reported(carried_out, service):
    from slipway.components.errors import ComponentError

    service.refuse = (401, "no valid token")
    with pytest.raises(ComponentError, match="Vertex AI did not create the training job: ") as refused:
        carried_out()
    assert "roles/aiplatform.user" in refused.value.hint


@pytest.mark.parametrize(("code", "words"), [(500, "500 it broke"), (0, "ConnectionError")])
def test_job_that_may_have_begun_without_an_answer_is_reported_with_the_page_to_look_at(
    carried_out, service, code, words
):
    from slipway.components.errors import ComponentError

    service.refuse = (code, "it broke")
    with pytest.raises(ComponentError, match=f"did not create the training job: {words}") as lost:
        carried_out()
    assert lost.value.hint.endswith(
        "cancel it there: https://console.cloud.google.com/vertex-ai/training?project=p"
    )


@pytest.mark.parametrize("code", [500, 502, 504, 0])
def test_job_whose_creation_was_not_answered_is_found_and_followed(carried_out, service, code):
    service.lost = [code]
    assert carried_out(epochs=2)["epochs"] == 2
    assert (len(service.jobs), service.cancelled, service.lost) == (1, [], [])


def test_job_that_an_earlier_attempt_left_is_followed_unless_it_ends(
    job, elsewhere, service, monkeypatch, tmp_path
):
    from dataclasses import replace

    from slipway.components.trainer.remote.vertex import VertexTraining

    monkeypatch.setattr(service, "run", lambda name, asked: None)
    VertexTraining(job, **vars(elsewhere))
    (tmp_path / "remote" / "outcome.json").write_text("{}")
    with VertexTraining(job, **vars(elsewhere)) as again:
        assert len(service.jobs) == 1
        assert (tmp_path / "remote" / "outcome.json").exists()
        assert again.link.endswith("/training/1?project=p")
    assert service.cancelled == [f"{NAME}/1"]
    VertexTraining(replace(job, epochs=7), **vars(elsewhere))
    assert len(service.jobs) == 2, "another training"
    for number, state in enumerate(["CANCELLING", "CANCELLED", "FAILED", "SUCCEEDED"], start=3):
        service.states[f"{NAME}/1"] = service.states[f"{NAME}/{number - 1}"] = f"JOB_STATE_{state}"
        VertexTraining(job, **vars(elsewhere))
        assert len(service.jobs) == number


def test_training_that_was_done_when_the_one_who_waited_was_killed_is_taken_and_not_repeated(
    job, elsewhere, service, monkeypatch, tmp_path
):
    from dataclasses import replace

    from slipway.components.trainer.remote.vertex import VertexTraining

    monkeypatch.setattr(service, "run", lambda name, asked: None)
    job, remote = replace(job, output_dir=str(tmp_path)), tmp_path / "remote"

    def done(number, *, but=None):
        service.states[f"{NAME}/{number}"] = "JOB_STATE_SUCCEEDED"
        for name in ("model.weights.h5", "history.json", "result.json", "sbom.cdx.json"):
            if name != but:
                (remote / name).write_text(f"{name} of {number}")
        (remote / "outcome.json").write_text(json.dumps({"event": "done", "steps": number}))

    VertexTraining(job, **vars(elsewhere))
    done(1)
    with VertexTraining(job, **vars(elsewhere)) as again:
        assert again.wait(print) == {"steps": 1}
    assert (tmp_path / "history.json").read_text() == "history.json of 1"
    with pytest.raises(SystemExit), VertexTraining(job, **vars(elsewhere)):
        raise SystemExit(138)
    assert (len(service.jobs), service.cancelled) == (1, []), "one that has ended cannot be cancelled"

    VertexTraining(replace(job, epochs=7), **vars(elsewhere))
    done(2)
    VertexTraining(job, **vars(elsewhere))
    assert len(service.jobs) == 3, "what is in the folder now is of the other training"
    done(3, but="model.weights.h5")
    (remote / "model.weights.h5").unlink()
    VertexTraining(job, **vars(elsewhere))
    assert len(service.jobs) == 4, "not whole"


def test_job_is_cancelled_when_the_one_who_asks_for_it_is_told_to_end_before_its_answer(
    job, elsewhere, service, monkeypatch
):
    from slipway.components.trainer.remote.vertex import VertexTraining

    ask = VertexTraining._call

    def told_to_end(self, what, method, **arguments):
        answer = ask(self, what, method, **arguments)
        if what == "create":
            raise SystemExit(138)
        return answer

    monkeypatch.setattr(service, "run", lambda name, asked: None)
    monkeypatch.setattr(VertexTraining, "_call", told_to_end)
    with pytest.raises(SystemExit):
        VertexTraining(job, **vars(elsewhere))
    assert service.cancelled == [f"{NAME}/1"]


def test_error_stands_where_the_job_had_just_ended_and_cannot_be_cancelled(
    job, elsewhere, service, monkeypatch
):
    from slipway.components.errors import ComponentError
    from slipway.components.trainer.remote.vertex import VertexTraining

    monkeypatch.setattr(service, "run", lambda name, asked: None)

    def fails():
        with VertexTraining(job, **vars(elsewhere)):
            service.states[f"{NAME}/1"] = "JOB_STATE_FAILED"
            raise ComponentError("the model cannot be built")

    with pytest.raises(ComponentError, match="the model cannot be built"):
        fails()


def test_service_that_stays_out_of_reach_while_a_training_runs_is_reported(carried_out, service, monkeypatch):
    from slipway.components.errors import ComponentError

    monkeypatch.setattr("slipway.components.trainer.remote.vertex.PATIENCE_S", 0.5)
    monkeypatch.setattr(service, "run", lambda name, asked: None)  # one that ended could not be cancelled
    service.unavailable = 10**6
    with pytest.raises(ComponentError, match="did not follow the training job: 503 try again") as lost:
        carried_out()
    assert "/training/1?project=p" in lost.value.hint
    assert service.cancelled == [f"{NAME}/1"]


def test_job_is_cancelled_when_the_one_who_waits_is_told_to_end(job, elsewhere, service, tmp_path):
    from slipway.components.trainer.remote.vertex import VertexTraining

    def leave(line):
        raise SystemExit(138)

    with pytest.raises(SystemExit), VertexTraining(job, **vars(elsewhere)) as training:
        training.wait(leave)
    assert service.cancelled == [f"{NAME}/1"]


def does_not_wait_for_the_late_answer(service, monkeypatch):
    """One request for each fault has a short limit; all others are answered, if late on a busy machine."""
    send, faults = HTTPAdapter.send, [service.faults]

    def sent(adapter, request, **options):
        if "/customJobs/" in request.url and service.faults and service.faults is not faults[-1]:
            faults.append(service.faults)
            options["timeout"] = TIMEOUT_S
        return send(adapter, request, **options)

    monkeypatch.setattr(HTTPAdapter, "send", sent)


@pytest.mark.parametrize("code", [429, 502, 503, 504, 0, "gateway"])
def test_fault_that_passes_neither_ends_a_training_nor_leaves_its_machines(
    job, elsewhere, service, monkeypatch, code
):
    from slipway.components.trainer.remote.vertex import VertexTraining

    monkeypatch.setattr(service, "run", lambda name, asked: None)
    if code == 0:
        does_not_wait_for_the_late_answer(service, monkeypatch)
    told = []

    def leave_once_the_state_is_known(line):
        told.append(line)
        if len(told) == 2:
            service.faults = [code]
            raise SystemExit(138)

    def follow():
        with VertexTraining(job, **vars(elsewhere)) as training:
            service.faults = [code]
            training.wait(leave_once_the_state_is_known)

    with pytest.raises(SystemExit):
        follow()
    assert told[1] == "training job is pending"
    assert (service.faults, service.cancelled) == ([], [f"{NAME}/1"])


def test_worker_that_is_not_the_first_host_writes_nothing(job, service, tmp_path):
    """Each host has the same weights, and one outcome tells that all is there."""
    Path(tmp_path, "job.json").write_text(job.to_json())
    code = f"""
import sys
from slipway.components.trainer import train
from slipway.components.trainer.remote import worker
train.main = lambda arguments, tell: tell("done", steps=1) or 0
sys.exit(worker.main(["{tmp_path}/job.json"]))
"""
    hosts = {"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "1"}
    subprocess.run([sys.executable, "-c", code], env={**service.environment, **hosts}, check=True)
    assert not (tmp_path / "outcome.json").exists()


def test_worker_that_cannot_tell_which_host_it_is_leaves_the_reason(job, service, tmp_path):
    Path(tmp_path, "job.json").write_text(job.to_json())
    code = f"""
from slipway.components.trainer import train
from slipway.components.trainer.remote import worker
train.main = lambda arguments, tell: tell("failed", message="this is host 7 of 2", hint="") or 1
print(worker.main(["{tmp_path}/job.json"]))
"""
    hosts = {"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "7"}
    subprocess.run([sys.executable, "-c", code], env={**service.environment, **hosts}, check=True)
    assert json.loads((tmp_path / "outcome.json").read_text())["message"] == "this is host 7 of 2"


def test_worker_that_is_killed_leaves_no_outcome_of_the_one_before_it_on_this_machine(job, service, tmp_path):
    """A worker that comes back after it was preempted may fail otherwise, and not get to tell it."""
    Path(tmp_path, "job.json").write_text(job.to_json())
    Path(tmp_path, "outcome.json").write_text('{"event": "preempted", "step": 5}')
    code = f"""
import os
from slipway.components.trainer import train
from slipway.components.trainer.remote import worker
train.main = lambda arguments, tell: os._exit(9)
worker.main(["{tmp_path}/job.json"])
"""
    ended = subprocess.run([sys.executable, "-c", code], env=service.environment, check=False)
    assert ended.returncode == 9
    assert not (tmp_path / "outcome.json").exists()

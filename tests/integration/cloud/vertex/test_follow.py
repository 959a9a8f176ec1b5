"""A run at Vertex AI, followed to its end."""

import io

import pytest

from pipeline.cloud.submit import follow
from pipeline.errors import PipelineError
from pipeline.local.progress import LineDisplay

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")


@pytest.fixture
def followed(google, vertex, job, monkeypatch):
    """Follows a run through the given states, as the service tells them; gives the exit code and lines."""
    monkeypatch.setattr("pipeline.cloud.submit._FIRST_LOOK_S", 0.01)
    monkeypatch.setattr("pipeline.cloud.submit._TICK_S", 0.01)

    def run(*lives):
        google.lives = list(lives)
        lines = io.StringIO()
        submitted = vertex.submit(job, run_id="taxi-20270101-020304-ab12")
        return follow(vertex, job, submitted, display=LineDisplay(lines)), lines.getvalue()

    return run


def failed(name, message):
    task = {"taskName": name, "state": "FAILED", "error": {"code": 3, "message": message}}
    return {
        "state": "PIPELINE_STATE_FAILED",
        "jobDetail": {"taskDetails": [task]},
        "error": {"message": "failed"},
    }


def test_run_ends_with_3_where_a_gate_stopped_it(followed, capsys):
    running = {
        "state": "PIPELINE_STATE_RUNNING",
        "jobDetail": {"taskDetails": [{"taskName": "Ingest", "state": 2}]},
    }
    said = "exited with a non-zero status of 3. Termination reason: Error. error: fare is wrong\nhint: look"
    code, lines = followed(running, failed("DataGate", said))
    assert code == 3
    assert "▸ Ingest" in lines
    assert "✗ DataGate" in lines
    assert "Stopped: DataGate" in capsys.readouterr().err


def test_run_ends_with_1_where_a_task_failed(followed, capsys):
    code, _ = followed(
        failed("Trainer", "exited with a non-zero status of 137. Termination reason: OOMKilled.")
    )
    assert code == 1
    assert (
        "Trainer: exited with a non-zero status of 137. Termination reason: OOMKilled."
        in capsys.readouterr().err
    )


def test_run_ends_with_3_where_the_model_is_not_blessed(followed, capsys):
    artifact = {"schemaTitle": "tfx.ModelBlessing", "uri": "gs://b/x", "metadata": {"blessed": 0}}
    gate = {"taskName": "ModelGate", "state": "SUCCEEDED", "outputs": {"blessing": {"artifacts": [artifact]}}}
    code, _ = followed({"state": "PIPELINE_STATE_SUCCEEDED", "jobDetail": {"taskDetails": [gate]}})
    assert code == 3
    assert "Stopped: the model is not blessed" in capsys.readouterr().err


def test_times_and_cached_tasks_are_told(followed):
    took = {"startTime": "2027-01-01T00:00:00Z", "endTime": "2027-01-01T00:01:05Z"}
    tasks = [
        {"taskName": "Ingest", "state": "SKIPPED"},
        {"taskName": "Trainer", "state": "SUCCEEDED", **took},
    ]
    code, lines = followed({"state": "PIPELINE_STATE_SUCCEEDED", "jobDetail": {"taskDetails": tasks}})
    assert code == 0
    assert "an equal task ran before" in lines
    assert "65 s" in lines


def test_service_that_no_longer_answers_is_told_with_the_link(google, followed, capsys):
    google.fails("GET .*/pipelineJobs/", 503, times=99)
    with pytest.raises(PipelineError, match=r"looking at the run taxi-\S+ failed"):
        followed({"state": "PIPELINE_STATE_RUNNING"})
    assert "The run goes on: https://console.cloud.google.com/" in capsys.readouterr().err

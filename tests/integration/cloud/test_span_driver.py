"""Ingest's driver in a scheduled run, as its container starts it."""

import json
import subprocess
import sys

import pytest
from installed import needed

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = pytest.mark.slow


@pytest.fixture
def resolved(project, tmp_path):
    """Runs the driver over three days of files, named by day and by number, and gives what it resolved.

    Apart: in a process of its own; else in this one, which imports TFX once.
    """
    for span in ("2027-01-29", "2027-01-30", "2027-01-31", "20847", "20848", "20849"):
        (tmp_path / "data" / span).mkdir(parents=True)
        (tmp_path / "data" / span / "rows.csv").write_text("a\n1\n")
    texts = {"input_base": str(tmp_path / "data"), "input_config": ""}
    examples = {"name": "1", "uri": str(tmp_path / "examples"), "type": {"schemaTitle": "tfx.Examples"}}
    given = {
        "inputs": {"parameterValues": texts},
        "outputs": {
            "artifacts": {"examples": {"artifacts": [examples]}},
            "outputFile": str(tmp_path / "out" / "output.json"),
        },
    }
    declared = {"parameters": {name: {"parameterType": "STRING"} for name in texts}}

    def run(scheduled_at, pattern, *, apart):
        texts["input_config"] = json.dumps({"splits": [{"name": "all", "pattern": pattern}]})
        words = [
            f"--scheduled_at={scheduled_at}", "--lag_days=1", "--time_zone=Europe/Berlin",
            "--json_serialized_invocation_args", json.dumps(given),
            "--json_serialized_inputs_spec_args", json.dumps(declared), "--runner=FnApiRunner",
        ]  # fmt: skip
        if apart:
            command = [sys.executable, "-m", "slipway.pipeline.cloud.container.span_driver", *words]
            finished = subprocess.run(
                command, cwd=project, capture_output=True, text=True, timeout=300, check=False
            )
            assert finished.returncode == 0, finished.stderr[-2000:]
        else:
            from slipway.pipeline.cloud.container import span_driver

            span_driver.driver.main(span_driver.parse_or_exit(["driver", *words]))
        return json.loads((tmp_path / "out" / "output.json").read_text())["parameterValues"]

    return run


@pytest.mark.parametrize(
    ("pattern", "found", "apart"),
    [("{YYYY}-{MM}-{DD}/*.csv", "2027-01-30/*.csv", True), ("{SPAN}/*.csv", "20848/*.csv", False)],
)
def test_scheduled_run_takes_the_span_of_its_day_not_the_latest(resolved, pattern, found, apart):
    # In Berlin it is the 31st, less one day.
    output = resolved("2027-01-30T23:30:00.000000Z", pattern, apart=apart)
    assert output["span"] == 20848
    assert json.loads(output["input_config"])["splits"][0]["pattern"] == found


def test_moment_that_the_service_did_not_fill_in_is_refused_in_words(capsys):
    from slipway.pipeline.cloud.container import span_driver

    words = ["--scheduled_at={{$.pipeline_job_schedule_time_utc}}", "--lag_days=1", "--time_zone=UTC"]
    with pytest.raises(SystemExit) as ended:
        span_driver.parse_or_exit(["driver", *words])
    assert ended.value.code == 1
    assert "error: the service did not say when this run was scheduled" in capsys.readouterr().err

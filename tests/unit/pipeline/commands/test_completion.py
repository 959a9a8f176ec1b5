import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from slipway.pipeline.commands import completion
from slipway.pipeline.runs.record import RunRecord


@pytest.fixture
def complete(project, tmp_path):
    """What a shell is told after Tab, at the end of these words."""

    def call(*words):
        line = ["local_runner.py", *words]
        environment = {
            **os.environ,
            "_LOCAL_RUNNER.PY_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(line),
            "COMP_CWORD": str(len(line) - 1),
        }
        done = subprocess.run(
            [sys.executable, "-X", "importtime", str(project / "local_runner.py")],
            env=environment, cwd=project, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        for slow in ("tfx", "tensorflow", "apache_beam", "keras"):
            assert f" {slow}\n" not in done.stderr
        return done.stdout.split("\n")[:-1] if done.stdout.endswith("\n") else done.stdout.split("\n")

    return call


@pytest.fixture
def output(tmp_path):
    folder = tmp_path / "runs" / "20260101-000000-abcd"
    folder.mkdir(parents=True)
    record = RunRecord(run_id=folder.name, workload="digits", started_at="")
    nodes = [{"id": each} for each in ("Ingest", "Transform", "Trainer")]
    (folder / "run.json").write_text(json.dumps({**record.to_json(), "nodes": nodes}), encoding="utf-8")
    (tmp_path / "runs" / "20260102-000000-dead").mkdir()
    (tmp_path / "runs" / "20260102-000000-dead" / "run.json").write_text("{", encoding="utf-8")
    return str(tmp_path)


def test_names_on_this_disk_are_offered(complete, output):
    assert complete("run", "di") == ["digits"]
    assert complete("show", "--output", output, "2026") == ["20260102-000000-dead", "20260101-000000-abcd"]
    assert complete("run", "digits", "--output", output, "--from", "T") == ["Transform", "Trainer"]
    assert complete("baseline", "--output", output, "--set", "20260101") == ["20260101-000000-abcd"]
    assert complete("baseline", "--output", output, "--set", "metadata.h") == ["metadata.host="]


def test_keys_profiles_and_commands_are_offered(complete):
    assert complete("run", "--set", "train.batch") == ["train.batch_size="]
    assert complete("run", "digits", "--profile", "m") == ["mnist"]
    assert complete("rollb") == ["rollback"]
    assert complete("versions", "--set", "push.dest") == ["push.destination="]


@pytest.fixture
def context(tmp_path, monkeypatch):
    monkeypatch.setattr(completion, "PROJECT_ROOT", tmp_path)
    (tmp_path / "runs/20260101-000000-abcd").mkdir(parents=True)
    (tmp_path / "workloads/toy").mkdir(parents=True)
    return SimpleNamespace(params={"output": tmp_path, "workload": "toy"}, args=[])


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('{"workload": "toy", "nodes": 5}', []),
        ('{"workload": "toy", "nodes": [1, {}, {"id": 3}, {"id": "Trainer"}]}', ["Trainer"]),
        ("[" * 100_000, []),
    ],
    ids=["no list", "no nodes", "nested"],
)
def test_damaged_record_of_a_run_is_no_error_after_tab(context, tmp_path, record, expected):
    (tmp_path / "runs/20260101-000000-abcd/run.json").write_text(record, encoding="utf-8")
    assert completion.complete_node(context, "") == expected


@pytest.mark.parametrize("content", ["profiles: 3", "profiles: [small]", "profiles: {1: {}}", "[" * 5000])
def test_wrong_workload_file_is_no_error_after_tab(context, tmp_path, content):
    (tmp_path / "workloads/toy/workload.yaml").write_text(content, encoding="utf-8")
    assert completion.complete_profile(context, "") == []

"""The clean process: what it said as a report, and that nothing keeps it alive."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.components.serving_check import clean_process
from slipway.components.serving_check.clean_process import CLIENT, ask_in_clean_process, report_of

# As the client begins, and then hangs as a model may.
HANGS = f"""
import runpy, sys, time
runpy.run_path({CLIENT.path!r})["bound"](int(sys.argv[1]), float(sys.argv[2]))
print("bound", flush=True)
time.sleep(3600)
"""
STARTS = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-c", {HANGS!r}, str(os.getpid()), "3600"], stdout=-1)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""

EVENTS = [
    {"event": "imported", "import_s": 3.5, "tensorflow": "2.21.0"},
    {"event": "stage", "stage": "loading"},
    {"event": "loaded", "load_s": 0.4, "memory_before_bytes": 5},
    {"event": "stage", "stage": "answering perturbed rows"},
    {"event": "not_finite", "row": 4},
    {"event": "refused", "row": 7, "type": "InvalidArgumentError", "error": "x"},
    {"event": "latency", "rows": 128, "p99_ms": 3.0},
]


def test_findings_are_sorted_into_a_report():
    report = report_of(EVENTS, ending="")
    assert report["crash"] == ""
    assert (report["load_s"], report["tensorflow"], report["not_finite"]) == (0.4, "2.21.0", [4])
    assert report["refused"] == [{"row": 7, "type": "InvalidArgumentError", "error": "x"}]
    assert report["latency"] == {"128": {"p99_ms": 3.0}}


def test_crash_is_reported_with_what_it_was_doing_and_keeps_what_was_found_before():
    report = report_of(EVENTS[:5], ending="was killed by SIGSEGV")
    assert report["crash"] == "was killed by SIGSEGV while answering perturbed rows"
    assert report["not_finite"] == [4]


def test_process_that_says_nothing_did_not_start():
    assert report_of([], ending="ended with exit code 1")["crash"] == "ended with exit code 1 while starting"


def _is_alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it may end at any moment, also while this is read
        return False


def test_client_does_not_outlive_the_process_that_started_it():
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True) as parent:
        client = int(parent.stdout.readline())
        parent.kill()
    while _is_alive(client):
        time.sleep(0.01)


@pytest.mark.parametrize("parent", ["itself", "another"])
def test_client_ends_after_its_own_limit_or_at_once_where_its_parent_is_gone(parent):
    pid = os.getpid() if parent == "itself" else 2**22
    done = subprocess.run(
        [sys.executable, "-I", "-c", HANGS, str(pid), "0.2"], capture_output=True, check=False
    )
    assert done.returncode == (-signal.SIGALRM if parent == "itself" else 1)


def test_client_can_be_found_by_the_engine_and_has_no_other_variable_of_ours(tmp_path, monkeypatch):
    stub = tmp_path / "client.py"
    stub.write_text(
        "import json, os, sys\n"
        "print(json.dumps({'event': 'told', 'variables': dict(os.environ), 'words': sys.argv[1:]}))\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(clean_process, "CLIENT", replace(CLIENT, path=str(stub)))
    monkeypatch.setenv("SLIPWAY_RUN_DIR", "/data/output/runs/1")
    monkeypatch.setenv("SLIPWAY_STATE", "/data/state")
    monkeypatch.setenv("PYTHONPATH", "/data/ours")
    report = ask_in_clean_process(tmp_path, tmp_path, limit_s=60)
    assert report["variables"]["SLIPWAY_RUN_DIR"] == "/data/output/runs/1"
    assert not {"SLIPWAY_STATE", "PYTHONPATH"} & report["variables"].keys()
    assert report["words"] == [str(os.getpid()), str(tmp_path), str(tmp_path), "70.0"]


def test_client_sees_no_gpu_whatever_this_process_sees(tmp_path, monkeypatch):
    client = tmp_path / "client.py"
    client.write_text("import json, os\nprint(json.dumps({'event': 'imported', 'sees': dict(os.environ)}))\n")
    monkeypatch.setattr(clean_process, "CLIENT", replace(CLIENT, path=str(client)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    seen = ask_in_clean_process(tmp_path / "model", tmp_path, limit_s=300)["sees"]
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["HIP_VISIBLE_DEVICES"]) == ("-1", "-1")

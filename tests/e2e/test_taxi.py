"""The taxi workload as a user runs it: real trips to a served model, with fewer epochs.

Seen only here: the thirteen nodes of a real workload hand each other real artifacts, and a user's commands
on what they left.
"""

import contextlib
import csv
import functools
import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from watched import listeners_of

import slipway
from slipway.components.pusher.publish_to_folder import publish
from slipway.components.pusher.version_store import version_store_at
from slipway.components.saved_model.digest import CARD, MANIFEST, PICTURE
from slipway.pipeline.report.predictions import predictions as shown_predictions

pytestmark = [pytest.mark.slow]

NODES = {
    "Ingest", "StatisticsGen", "SchemaGen", "ExampleValidator", "Reference", "DataGate", "Transform",
    "Trainer", "Baseline", "Evaluator", "ServingCheck", "ModelGate", "Pusher",
}  # fmt: skip

LOGGED = {"logged_at": "2026-11-22T00:00:00Z", "logged_version": 1}

# Runs where nothing of this project can be imported, as a serving process would.
CLIENT = """
import gc, json, sys
gc.disable()  # imports make no garbage, and to look for some takes a quarter of their time
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
trip = {
    "trip_miles": [4.2], "fare": [14.5], "trip_seconds": [900], "trip_start_hour": [18],
    "trip_start_day": [5], "trip_start_month": [5], "trip_start_timestamp": [1400269500],
    "payment_type": [b"Credit Card"], "company": [b"Taxi Affiliation Services"], "pickup_community_area": [8],
}
def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))
example = tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in trip.items()}))
serialized = model.signatures["serving_default"](examples=tf.constant([example.SerializeToString()] * 2))
raw = model.signatures["serve_raw"]
_, wanted = raw.structured_input_signature
empty = {tf.string: b"", tf.int64: -2**63, tf.float32: float("nan")}
tensors = {
    name: tf.constant([trip.get(name, [empty[spec.dtype]])], dtype=spec.dtype)
    for name, spec in wanted.items()
}
print(json.dumps({
    "serialized": next(iter(serialized.values())).numpy().tolist(),
    "raw": next(iter(raw(**tensors).values())).numpy().tolist(),
    "raw_inputs": sorted(wanted),
}))
"""


@pytest.fixture(scope="module")
def output(first_output):
    """The folder of the first run itself: whether a changed Pusher reruns is seen only where it pushed."""
    return first_output


@pytest.fixture(scope="module")
def latest(warm_runner, output):
    """The record of the latest run, as `show --json` prints it: asked for once a run."""

    @functools.cache
    def shown(_newest):
        return json.loads(warm_runner("show", "--json", "--output", str(output)).stdout)

    return lambda: shown(max(path.parent.name for path in (output / "runs").glob("*/run.json")))


@pytest.fixture(scope="module")
def first(first_record, warm_runner, output):
    """The record of the run that all tests begin with, as `show --json` prints it."""
    return json.loads(warm_runner("show", first_record.run_id, "--json", "--output", str(output)).stdout)


@pytest.fixture(scope="module")
def answers(first, tmp_path_factory):
    """The pushed model's predictions in a process without this project's code."""
    finished = subprocess.run(
        [sys.executable, "-P", "-c", CLIENT, first["pushed"]["path"]],
        cwd=tmp_path_factory.mktemp("client"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


def test_run_completes_every_node_and_pushes_a_version(first, output):
    assert first["state"] == "complete"
    assert first["exit_code"] == 0
    assert {node["id"]: node["state"] for node in first["nodes"]} == dict.fromkeys(NODES, "complete")
    pushed = Path(first["pushed"]["path"])
    assert pushed.parent == output / "serving" / "taxi"
    assert pushed.name == str(first["pushed"]["version"])
    assert (pushed / "saved_model.pb").is_file()


def test_run_leaves_no_temporary_files(first_run, temporary):
    """It leaves by os._exit from nodes that TensorFlow has written Python for."""
    assert list(temporary.iterdir()) == []


def test_model_has_learned_more_than_the_majority(first):
    # Always answering no scores an accuracy of 0.775.
    metrics = first["metrics"]
    assert metrics["auc"] >= 0.94
    assert metrics["binary_accuracy"] >= 0.885


def test_screen_tells_the_outcome_and_what_to_do_next(first_run):
    assert first_run.stdout == ""
    lines = first_run.stderr.splitlines()
    assert len(lines) < 40
    assert any(line.startswith("Pushed: taxi version ") for line in lines)
    assert any(line.startswith("Blessed: auc ") for line in lines)
    assert lines[-1].startswith("hint: ")
    assert " show " in lines[-1]


def test_run_leaves_a_page_of_at_most_500_kb_with_every_part(first_run, first, output):
    page = (output / "runs" / first["run_id"] / "report.html").read_text(encoding="utf-8")

    assert "no report was written" not in first_run.stderr
    assert "cannot be shown" not in page
    parts = ("Key numbers", "Pipeline", "Timeline", "Data", "Model", "Training", "Lineage")
    assert [part for part in parts if f"{part}</h2>" not in page] == []
    assert all(f"<h4>{name}</h4>" in page for name in ("ROC curve", "Precision and recall", "Calibration"))
    assert len(page) < 500_000


def test_the_answers_on_the_page_add_up_to_the_evaluators_metrics(first):
    (blessing,) = next(n for n in first["nodes"] if n["id"] == "ModelGate")["outputs"]["blessing"]
    verdict = json.loads(Path(blessing["uri"], "verdict.json").read_text(encoding="utf-8"))
    told = shown_predictions(verdict["answers"])
    assert told.rows == verdict["metrics"]["example_count"]
    assert told.binary.even.accuracy == pytest.approx(verdict["metrics"]["binary_accuracy"], abs=1e-6)


def test_no_node_packs_tfx_for_workers_elsewhere(first, output):
    log = (output / "runs" / first["run_id"] / "logs" / "Transform.log").read_text(errors="replace")
    assert "Nonempty beam arg sdk_container_image" in log
    assert "Added --extra_package" not in log


def test_pushed_model_answers_serialized_examples_in_a_fresh_process(answers):
    [one], [other] = answers["serialized"]
    assert 0 < one < 1
    assert one == other


def test_pushed_model_answers_raw_tensors_alike_and_never_asks_for_the_label(answers):
    assert answers["raw"][0][0] == pytest.approx(answers["serialized"][0][0], abs=1e-6)
    assert "tips" not in answers["raw_inputs"]


def test_pushed_version_is_what_its_manifest_says_and_is_listed_as_live(first, warm_runner, output):
    pushed = first["pushed"]
    verified = warm_runner("verify", "--output", str(output))
    assert verified.returncode == 0
    assert verified.stdout == f"{pushed['path']}: is what its manifest says\n"
    [version] = json.loads(warm_runner("versions", "--json", "--output", str(output)).stdout)
    assert (str(version["version"]), version["live"]) == (pushed["version"], True)
    assert version["metrics"] == first["metrics"]
    assert version["run"] == first["run_id"]
    manifest = json.loads((Path(pushed["path"]) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["data_gate"]["message"].startswith("nothing found in 15,002 rows")
    picture = (Path(pushed["path"]) / "metrics_by_slice.svg").read_text(encoding="utf-8")
    assert "payment_type=Cash" in picture
    (Path(pushed["path"]) / "variables/more").touch()
    try:
        assert warm_runner("verify", "--output", str(output)).returncode == 1
    finally:
        (Path(pushed["path"]) / "variables/more").unlink()


def test_pushed_version_answers_serve_as_its_card_says_and_as_without_it(first, answers, output, project):
    card = (Path(first["pushed"]["path"]) / "MODEL_CARD.md").read_text(encoding="utf-8")
    [curl] = [line for line in card.splitlines() if line.startswith("curl")]
    example = json.loads(shlex.split(curl)[2])
    trip = {
        "trip_miles": [4.2], "fare": [14.5], "trip_seconds": [900], "trip_start_hour": [18],
        "trip_start_day": [5], "trip_start_month": [5], "trip_start_timestamp": [1400269500],
        "payment_type": ["Credit Card"], "company": ["Taxi Affiliation Services"],
        "pickup_community_area": [8],
    }  # fmt: skip
    empty = {str: "", int: -(2**63), float: float("nan")}
    rows = [{name: trip.get(name, [empty[type(value)]]) for name, [value] in example["instances"][0].items()}]
    command = [sys.executable, "local_runner.py", "serve", "--port", "0", "--output", str(output)]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = next(line for line in server.stderr if line.startswith("http")).split(":predict")[0]
            # It starts without what only a run needs: seconds of imports. Each of these has compiled code.
            code = Path("/proc", str(server.pid), "maps").read_text(encoding="utf-8")
            assert "/tensorflow/" in code
            assert [each for each in ("apache_beam", "ml_metadata", "tfx_bsl") if f"/{each}/" in code] == []
            answered = [
                ask(f"{url}:predict", {**example, "instances": each}) for each in (rows, example["instances"])
            ]
            status = ask(url)
            listeners = [each.address for each in listeners_of(server.pid)]
        finally:
            server.terminate()
        assert server.wait(60) == 0, (
            "who stops a service sends SIGTERM; it ends as by Ctrl-C, with its log written"
        )
    assert listeners == [url.partition("://")[2].partition("/")[0]], "one port of loopback"
    assert answered[0]["predictions"][0] == pytest.approx(answers["raw"][0], abs=1e-6)
    assert 0 < answered[1]["predictions"][0][0] < 1
    assert status["model_version_status"][0]["version"] == first["pushed"]["version"]


def ask(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(url, data, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def test_pushed_version_predicts_the_rows_of_a_file(first_run, warm_runner, output, tmp_path, taxi_csv):
    lines = taxi_csv.read_text(encoding="utf-8").splitlines()[:101]
    lines[7] = lines[7] + ",more"
    (tmp_path / "trips.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    finished = warm_runner(
        "predict",
        "--input",
        str(tmp_path / "trips.csv"),
        "--to",
        str(tmp_path / "out"),
        "--output",
        str(output),
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[0].startswith("99 rows predicted by version ")
    predictions = (tmp_path / "out/predictions-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line)["row"] for line in predictions]
    assert rows == [row for row in range(100) if row != 6]
    frame = pd.read_csv(tmp_path / "trips.csv", on_bad_lines="skip")
    assert frame.isna().any(axis=None)
    answers = slipway.load("taxi", output=output).predict(frame)
    assert [each["prediction"] for each in answers] == [
        json.loads(line)["prediction"] for line in predictions
    ]
    [reject] = (tmp_path / "out/rejects-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    assert (json.loads(reject)["row"], json.loads(reject)["reason"]) == (6, "too many fields")


def test_two_versions_answer_the_same_logged_requests(first_run, warm_runner, output, tmp_path, taxi_csv):
    there, base = output / "serving/taxi", tmp_path / "output/serving/taxi"
    store = version_store_at(str(there))
    first = store.numbers()[-1]
    shutil.copytree(there / str(first), base / str(first))
    shutil.copytree(
        there / str(first), tmp_path / "model", ignore=shutil.ignore_patterns(MANIFEST, CARD, PICTURE)
    )
    (tmp_path / "model/assets.extra").mkdir(exist_ok=True)
    (tmp_path / "model/assets.extra/note.txt").write_text("the same model", encoding="utf-8")
    provenance = store.manifest(first).provenance
    model = {key: value for key, value in provenance["model"].items() if key != "digest"}
    again = publish(tmp_path / "model", base=base, provenance={**provenance, "model": model}).version
    assert again != first
    (tmp_path / "logs").mkdir()
    with taxi_csv.open(encoding="utf-8") as trips, (tmp_path / "logs/requests-1.jsonl").open("w") as log:
        for trip in itertools.islice(csv.DictReader(trips), 100):
            log.write(json.dumps({name: value_of(cell) for name, cell in trip.items()} | LOGGED) + "\n")
    finished = warm_runner(
        "compare", "taxi", str(first), str(again), "--on", str(tmp_path / "logs"), "--json",
        "--output", str(tmp_path / "output"),
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    found = json.loads(finished.stdout)
    assert (found["rows"], found["otherwise"], found["mean_absolute_difference"]) == (100, 0, 0)
    assert found["told"] == {}


def value_of(cell):
    """A cell of a table as a logged value."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(cell)
    return cell or None


def test_metrics_of_every_slice_are_kept_with_the_verdict(first):
    gate = next(node for node in first["nodes"] if node["id"] == "ModelGate")
    folder = Path(gate["outputs"]["blessing"][0]["uri"])
    verdict = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert {"overall", "payment_type=Cash", "trip_start_hour=18"} <= verdict["slices"].keys()


def test_training_step_goes_through_the_preflight(first_run, preflight, output, jax_python):
    found = preflight("taxi", output)

    assert found["step"]["error"] == ""
    assert found["parameters"] > 1000
    assert not [each for each in found["findings"] if each["severity"] == "error"]
    assert found["can_train"] == (found["target"] == "tpu")  # nothing is promised without libtpu


def test_unchanged_rerun_is_answered_without_starting_anything(first_run, fewer, warm_runner, output, latest):
    finished = warm_runner("run", *fewer, "--output", str(output))
    assert finished.returncode == 0
    record = latest()
    assert {node["state"] for node in record["nodes"]} == {"cached"}
    assert record["pushed"] is not None
    assert not (output / "runs" / record["run_id"] / "logs" / "engine.log").exists()
    assert len(finished.stderr.splitlines()) <= 7


def test_lost_pushed_version_is_noticed_and_pushed_again(first, fewer, warm_runner, output):
    pushed = Path(first["pushed"]["path"])
    pushed.rename(pushed.with_name("away"))
    try:
        planned = json.loads(warm_runner("plan", *fewer, "--json", "--output", str(output)).stdout)
    finally:
        pushed.with_name("away").rename(pushed)
    running = {node["id"]: node["why"] for node in planned["nodes"] if node["action"] == "run"}
    assert running == {"Pusher": f"{pushed.name} of PushedModel is gone"}


def test_changed_batch_size_reruns_the_trainer_and_says_so(first_run, fewer, warm_runner, output):
    other = ("--set", "train.batch_size=512")
    planned = warm_runner("plan", *fewer, *other, "--json", "--output", str(output))
    why = {node["id"]: (node["action"], node["why"]) for node in json.loads(planned.stdout)["nodes"]}
    assert why["Trainer"] == ("run", "train.batch_size 256 -> 512")
    assert why["Transform"][0] == "reuse"
    assert why["Pusher"][0] == "run"


@pytest.fixture(scope="module")
def below(first_run, fewer, warm_runner, output, latest):
    """The run of a model below its threshold: how it ended, its record, and the versions before and after."""
    serving = output / "serving" / "taxi"
    before = sorted(serving.iterdir())
    threshold = "evaluate.thresholds.auc.min=0.999"
    finished = warm_runner("run", *fewer, "--set", threshold, "--output", str(output))
    return SimpleNamespace(finished=finished, record=latest(), before=before, after=sorted(serving.iterdir()))


def test_model_below_its_threshold_is_not_pushed_and_ends_with_code_3(below, warm_runner):
    finished, record = below.finished, below.record
    assert finished.returncode == 3
    assert "Not pushed: auc 0.9" in finished.stderr
    assert "needs at least 0.999" in finished.stderr
    head, line, *_ = (
        line for line in finished.stderr.splitlines() if line.startswith(("  check ", "  auc "))
    )
    assert head.split() == ["check", "slice", "required", "got", "baseline", "verdict"]
    assert re.fullmatch(r"  auc +overall +at least 0\.999 +0\.9\d+ +FAILED", line)
    [hint] = (line for line in finished.stderr.splitlines() if "--bless 'why it is right'" in line)
    command, *arguments = shlex.split(hint.removeprefix("hint: ").partition("   # ")[0])[1:]
    assert command.endswith("local_runner.py")
    pasted = warm_runner(*arguments)
    assert pasted.returncode == 2
    assert "is a placeholder" in pasted.stderr
    assert record["state"] == "stopped"
    assert record["blessed"] is False
    assert record["pushed"] is None
    assert record["blessing_reasons"]
    assert below.after == below.before
    assert {node["id"] for node in record["nodes"] if node["state"] == "complete"} == {"ModelGate", "Pusher"}


def test_what_both_gates_refuse_passes_with_reasons_that_stand_in_run_verdict_and_manifest(
    first_run, fewer, warm_runner, output, latest, tmp_path
):
    # To another place: where it was pushed before, the same model is not pushed again.
    place = f"push.destination={tmp_path / 'serving'}"
    refused = ("evaluate.thresholds.auc.min=0.999", "data_gate.min_rows=20000", place)
    reasons = ("--bless", "the old one is broken", "--accept-data", "a short month")
    sets = [part for each in refused for part in ("--set", each)]
    finished = warm_runner("run", *fewer, *sets, *reasons, "--output", str(output))
    assert finished.returncode == 0, finished.stderr
    record = latest()
    assert record["overrides"] == {"bless": "the old one is broken", "accept_data": "a short month"}
    assert record["blessed"] is True
    gates = {node["id"]: node for node in record["nodes"] if node["id"] in ("DataGate", "ModelGate")}
    uri = gates["ModelGate"]["outputs"]["blessing"][0]["uri"]
    [blessed] = json.loads(Path(uri, "verdict.json").read_text(encoding="utf-8"))["overrides"]
    assert blessed["reason"] == "the old one is broken"
    assert blessed["overridden"][0].startswith("auc 0.9")
    uri = gates["DataGate"]["outputs"]["verdict"][0]["uri"]
    accepted = json.loads(Path(uri, "verdict.json").read_text(encoding="utf-8"))
    assert (accepted["passed"], accepted["accepted"]) == (True, "a short month")
    assert accepted["lines"][0] == "15,002 rows in total, needs 20,000"
    manifest = json.loads(Path(record["pushed"]["path"], "manifest.json").read_text(encoding="utf-8"))
    assert manifest["gate"]["overrides"] == [blessed]
    assert manifest["data_gate"]["overrides"] == [{"reason": "a short month"}]
    assert manifest["run"] == record["run_id"]


def test_function_that_fails_when_called_is_named_with_file_and_line(warm_runner, output, latest, first_run):
    wrong = "transform.preprocessing_fn=workloads.taxi.model.build_model"
    finished = warm_runner("run", "--set", wrong, "--to", "Transform", "--output", str(output))
    assert finished.returncode == 1
    assert "Traceback" not in finished.stderr
    assert "TypeError" in finished.stderr
    assert len(finished.stderr[finished.stderr.index("Failed:") :].splitlines()) < 30
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("hint: ")
    assert "local_runner.py resume " in last
    record = latest()
    assert record["state"] == "failed"
    assert record["pushed"] is None
    page = (output / "runs" / record["run_id"] / "report.html").read_text(encoding="utf-8")
    assert "<h1>Failed: Transform, after " in page
    assert page.index("What went wrong</h2>") < page.index("Pipeline</h2>")

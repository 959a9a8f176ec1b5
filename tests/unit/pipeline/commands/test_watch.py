import json
import signal
import stat
import tempfile
from dataclasses import replace

import numpy as np
import pytest
from small_workload import small_workload

from fuzzing.prediction_logs import prediction_log
from slipway.components.data_gate.statistics import Distribution, FeatureStatistics, SplitStatistics
from slipway.components.ingest.tfrecord import frame
from slipway.components.pusher.publish_to_folder import publish
from slipway.pipeline.commands import watch as module
from slipway.pipeline.commands.watch import late_labels, watch
from slipway.pipeline.errors import UsageError

ROW = {"logged_at": "2026-11-22T00:00:00Z", "logged_version": 0, "fare": 1.0}


@pytest.fixture
def training():
    """Fares evenly from 0 to 10."""
    deciles = np.linspace(0, 1, 11)
    evenly = Distribution(deciles * 10, deciles)
    fare = FeatureStatistics("fare", "float", 10_000, 10_000, 10_000, max=10, distribution=evenly)
    return SplitStatistics(10_000, {"fare": fare})


@pytest.fixture
def push(output, tmp_path):
    """Publishes a version of a model; returns its number."""

    def call(**more):
        model = tmp_path / "model"
        model.mkdir()
        (model / "saved_model.pb").write_bytes(b"model")
        provenance = {"workload": "toy", "run": "20261122-000000-abcd", "metrics": {"binary_accuracy": 0.9}}
        return publish(model, base=output / "serving/toy", provenance={**provenance, **more}).version

    return call


@pytest.fixture
def pushed(push):
    return push()


def run(config, output, **more):
    return watch(config, output, **{"on": None, "version": None, "by": "day", "reference": None, **more})


def test_workload_without_a_version_is_refused(output):
    with pytest.raises(UsageError, match="no version"):
        run(small_workload(), output)


def test_version_that_is_not_there_and_one_without_its_run_are_refused(output, pushed):
    with pytest.raises(UsageError, match="has no version 9"):
        run(small_workload(), output, version=9)
    with pytest.raises(UsageError, match=f"What version {pushed} was trained on is not known"):
        run(small_workload(), output)


def test_late_labels_say_how_right_it_is(output, pushed, training, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
    folder = output / "requests/toy"
    folder.mkdir(parents=True)
    rows = [
        {**ROW, "logged_version": pushed, "fare": row % 100 / 10, "id": row, "logged_prediction": [row % 2]}
        for row in range(600)
    ]
    (folder / "requests-1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = tmp_path / "labels.csv"
    labels.write_text("id,tips\n" + "".join(f"{row},{row % 2 if row < 150 else 0}\n" for row in range(300)))
    judged = small_workload(evaluate={"metrics": ["binary_accuracy"]})
    found, _ = run(judged, output, late=late_labels(labels, "id"))
    assert found.sentence.endswith(
        "In 300 rows with a label: binary_accuracy 0.7500 (0.7068 to 0.7888), 0.9000 at its push: worse."
    )
    assert (found.drifted, found.exit_code) == ((), 3)
    assert found.to_json()["live"][0]["worse"]


@pytest.fixture
def watched(output, pushed, training, monkeypatch, tmp_path):
    """Watches 600 requests with these answers, all of which have one label."""

    def call(answer, *, key=int, label=0, **more):
        monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
        folder = output / "requests/toy"
        folder.mkdir(parents=True)
        row = {**ROW, "logged_version": pushed}
        rows = [
            {**row, "fare": n % 100 / 10, "id": key(n), "logged_prediction": [answer(n)]} for n in range(600)
        ]
        (folder / "requests-1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
        labels = tmp_path / "labels.csv"
        labels.write_text("id,tips\n" + "".join(f"{n},{label}\n" for n in range(600)))
        judged = small_workload(evaluate={"metrics": ["binary_accuracy"]}, **more)
        return run(judged, output, late=late_labels(labels, "id"))[0]

    return call


def test_rows_of_a_request_that_was_repeated_count_once(watched):
    found = watched(lambda _: 0.0, key=lambda n: n // 2)
    told = "labelled rows whose key was logged again later"
    assert (found.labelled, found.to_json()["told"]) == (300, {told: 300})
    assert found.text().endswith(f"\nLeft out or incomplete: {told} (300).")


def test_label_that_a_metric_does_not_know_is_wrong_usage(watched):
    """As of the column before preprocessing, which has the same name: a tip in dollars."""
    words = r"A late label is 3\.5, but binary_accuracy needs labels from 0 to 1"
    with pytest.raises(UsageError, match=words) as told:
        watched(lambda _: 0.0, label=3.5)
    assert told.value.exit_code == 2


def test_answers_that_are_no_number_are_as_wrong_as_drift(watched):
    found = watched(lambda n: None if n < 2 else 0.0)
    assert found.sentence.endswith(
        "In 600 rows with a label, of which 2 have an answer that is no finite number: binary_accuracy nan "
        "(nan to nan), 0.9000 at its push: worse."
    )
    assert (found.exit_code, found.to_json()["not_finite"]) == (3, 2)


def test_metrics_without_weights_are_not_held_against_weighted_ones(watched):
    found = watched(lambda n: float(n % 2), transform={"weight": "w"})
    assert found.sentence.endswith("In 600 rows with a label: binary_accuracy 0.5000 (0.4665 to 0.5335).")
    assert found.exit_code == 0


def test_names_of_classes_have_the_codes_that_the_version_knows(
    push, output, training, monkeypatch, tmp_path
):
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
    version, folder = push(classes=["yes", "no"]), output / "requests/toy"
    folder.mkdir(parents=True)
    row = {**ROW, "logged_version": version, "logged_prediction": [0.9]}  # surely "no"
    rows = ({**row, "id": n, "fare": n % 100 / 10} for n in range(600))
    (folder / "requests-1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    labels = tmp_path / "labels.csv"
    labels.write_text("id,tips\n" + "".join(f"{n},no\n" for n in range(600)))
    since = {"classes": ["no", "yes"]}
    judged = small_workload(evaluate={"metrics": ["binary_accuracy"]}, transform=since)
    found, _ = run(judged, output, late=late_labels(labels, "id"))
    assert (found.live[0].value, found.exit_code) == (1.0, 0)


def test_metrics_of_a_few_labels_are_not_judged(watched):
    found = watched(lambda _: 1.0, key=lambda n: n % 19)  # all wrong
    assert found.sentence.endswith(
        "In 19 rows with a label, too few to judge (data_gate.min_rows is 20): binary_accuracy 0.0000 "
        "(0.0000 to 0.1246)."
    )
    assert found.exit_code == 0


def test_labels_and_key_belong_together(tmp_path):
    assert late_labels(None, None) is None
    with pytest.raises(UsageError, match="belong together"):
        late_labels(tmp_path, None)


def test_live_metrics_are_of_one_label(output, pushed, training, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
    folder = output / "requests/toy"
    folder.mkdir(parents=True)
    rows = "".join(json.dumps({**ROW, "logged_version": pushed}) + "\n" for _ in range(30))
    (folder / "requests-1.jsonl").write_text(rows)
    several = small_workload(
        transform={"label": {"a": "x", "b": "y"}}, evaluate={"metrics": ["a/auc", "b/auc"]}
    )
    with pytest.raises(UsageError, match="need a model with one label"):
        run(several, output, late=late_labels(tmp_path / "l.csv", "id"))


def test_drift_is_judged_told_and_notified(output, pushed, training, monkeypatch, capsys):
    sent = []
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
    monkeypatch.setattr(module, "send", lambda *asked: sent.append(asked) or ["nobody is there"])
    folder = output / "requests/toy"
    folder.mkdir(parents=True)
    rows = (json.dumps({**ROW, "logged_version": pushed, "fare": row / 30}) for row in range(600))
    (folder / "requests-1.jsonl").write_text("\n".join(rows) + "\n")
    notified = small_workload(notify={"command": ["tell"]})
    found, page = run(notified, output)
    assert (found.exit_code, [each.column for each in found.drifted]) == (3, ["fare"])
    assert page == output / "watch/toy.html"
    assert page.is_file()
    [(command, variable, told)] = sent
    assert (command, variable, told["text"], told["page"]) == (("tell",), None, found.sentence, str(page))
    assert found.drifted[0].finding.rows
    assert told["drifted"] == [
        {
            "column": "fare", "since": "2026-11-22", "rule": found.drifted[0].finding.rule,
            "measured": found.drifted[0].finding.measured, "limit": found.drifted[0].finding.limit,
            "key": found.drifted[0].finding.key,
        }
    ], "logged values stay here"  # fmt: skip
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert capsys.readouterr().err == "warning: nobody is there.\n"
    for silent in (small_workload(), small_workload(notify={"command": ["tell"], "when": ["failed"]})):
        run(silent, output)
    assert len(sent) == 1
    lenient = small_workload(data_gate={"max_scale": 9, "max_drift_jensen_shannon": 1})
    assert run(lenient, output)[0].exit_code == 0


def test_time_that_decides_the_split_always_advances(output, pushed, training, monkeypatch):
    at = replace(training.features["fare"], name="at")
    timed = SplitStatistics(10_000, {**training.features, "at": at})
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: timed)
    (output / "requests/toy").mkdir(parents=True)
    rows = ({**ROW, "logged_version": pushed, "fare": row % 100 / 10, "at": 50 + row} for row in range(600))
    (output / "requests/toy/requests-1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    by_time = {"split_by": {"time": "at", "starts": {"train": None, "eval": 5}}}
    assert run(small_workload(data=by_time), output)[0].drifted == ()
    assert [each.column for each in run(small_workload(), output)[0].drifted] == ["at"]


def test_drift_is_notified_even_if_its_page_cannot_be_written(output, pushed, training, monkeypatch):
    sent = []
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
    monkeypatch.setattr(module, "send", lambda *asked: sent.append(asked) or [])
    (output / "requests/toy").mkdir(parents=True)
    (output / "watch").touch()
    rows = (json.dumps({**ROW, "logged_version": pushed, "fare": row / 30}) for row in range(600))
    (output / "requests/toy/requests-1.jsonl").write_text("\n".join(rows) + "\n")
    with pytest.raises(OSError, match="watch"):
        run(small_workload(notify={"command": ["tell"]}), output)
    assert [(told["exit_code"], told["page"]) for _, _, told in sent] == [(3, None)]


def test_sigterm_leaves_no_row_behind(output, pushed, training, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
    monkeypatch.setattr(module, "watch_requests", lambda *_: signal.raise_signal(signal.SIGTERM))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    for name in ("logs", "temporary"):
        (tmp_path / name).mkdir()
    record = prediction_log({"fare": [1.0]}, [0.5], version=pushed)
    (tmp_path / "logs/a.tfrecord").write_bytes(frame([record]))
    with pytest.raises(KeyboardInterrupt):
        run(small_workload(), output, on=tmp_path / "logs")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_requests_to_tensorflow_serving_are_watched(output, pushed, training, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "training_statistics", lambda *_, **__: training)
    (tmp_path / "logs").mkdir()
    records = (
        prediction_log({"fare": [row % 100 / 10], "id": [row]}, [float(row % 2)], version=pushed)
        for row in range(600)
    )
    (tmp_path / "logs/a.tfrecord").write_bytes(frame([*records, b"\xff"]))
    labels = tmp_path / "labels.csv"
    labels.write_text("id,tips\n" + "".join(f"{row},{row % 2}\n" for row in range(300)))
    judged = small_workload(evaluate={"metrics": ["binary_accuracy"]})
    found, _ = run(judged, output, on=tmp_path / "logs", late=late_labels(labels, "id"))
    assert (found.rows, found.columns, found.labelled) == (600, ("fare",), 300)
    assert found.exit_code == 0
    assert found.text().endswith("\nLeft out or incomplete: records that are no PredictionLog (1).")
    assert found.to_json()["told"] == {"records that are no PredictionLog": 1}

"""Two pushed versions on the same logged requests."""

import gzip
import json

import pytest
from small_workload import small_workload

from fuzzing.prediction_logs import example, prediction_log
from slipway.components.ingest.tfrecord import frame
from slipway.pipeline.commands.compare_versions import compare
from slipway.pipeline.commands.watch import late_labels
from slipway.pipeline.errors import UsageError

pytestmark = pytest.mark.slow

SIGNATURES = {
    "serve_raw": {"inputs": {"fare": {}, "company": {}}, "outputs": {}},
}


@pytest.fixture
def config():
    return small_workload(evaluate={"metrics": ["binary_accuracy", "mean_absolute_error"]})


@pytest.fixture
def log(tmp_path):
    """Writes logged rows with fares from 0 to 1, some of them of another version; returns the folder."""

    def write(rows=40, name="requests-1.jsonl", **more):
        folder = tmp_path / "logs"
        folder.mkdir(exist_ok=True)
        lines = (
            {
                "logged_at": "2026-11-22T00:00:00Z", "logged_version": row % 2, "id": row, "fare": row / rows,
                "company": None, "logged_prediction": [0.5], **more,
            }
            for row in range(rows)
        )  # fmt: skip
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    return write


@pytest.fixture
def run(config, tmp_path, pushed):
    """Compares the models with two factors."""

    def call(first, second, folder, **more):
        champion, challenger = (
            pushed(each, model={"signatures": SIGNATURES}).version for each in (first, second)
        )
        return compare(
            more.pop("config", config),
            tmp_path / "output",
            champion=champion,
            challenger=challenger,
            on=folder,
            **more,
        )

    return call


def test_answers_to_the_same_rows_are_compared(run, log):
    log(rows=4, name="requests-2.jsonl", fare=None)  # which the models refuse
    folder = log()
    with (folder / "requests-1.jsonl").open("a") as file:
        file.write('{"fare": 1')  # torn by a kill
    found = run(1, 2, folder)
    assert found.exit_code == 0
    difference = found.difference
    assert (difference.rows, difference.otherwise, difference.not_finite) == (40, 10, 0)
    assert difference.mean == pytest.approx(sum(range(40)) / 40 / 40)
    assert difference.quantiles[-1] == pytest.approx(39 / 40)
    assert f"version {found.challenger} decides otherwise in 10 (25 %)" in found.sentence
    first = found.most[0]
    assert (first.file, first.line, first.row) == ("requests-1.jsonl", 40, 39)
    assert (first.champion, first.challenger) == ([pytest.approx(39 / 40)], [pytest.approx(39 / 20)])
    refused = [many for what, many in found.left_out_counts.items() if "the model refuses it" in what]
    assert refused == [4, 4]
    assert found.verdict is None
    assert (
        json.loads(json.dumps(found.to_json(), allow_nan=False))["quantiles"]["1.0"]
        == difference.quantiles[-1]
    )


def test_requests_to_tensorflow_serving_are_compared_too(run, tmp_path):
    """Of the examples the models themselves refuse the one without a fare."""
    examples = [example(fare=row / 40, company=b"a") for row in range(40)] + [example(company=b"a")]
    record = prediction_log({"examples": examples}, [0.5] * 41)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a.tfrecord.gz").write_bytes(gzip.compress(frame([record])))
    found = run(1, 2, tmp_path / "logs")
    assert (found.difference.rows, found.difference.otherwise) == (40, 10)
    assert (found.most[0].file, found.most[0].line, found.most[0].row) == ("a.tfrecord.gz", None, 39)
    assert sum(found.left_out_counts.values()) == 2


def test_labels_tell_which_is_better(run, log, tmp_path):
    folder = log(rows=400)
    labels = tmp_path / "tips.csv"
    labels.write_text("id,tips\n" + "".join(f"{row},{int(row >= 200)}\n" for row in range(300)))
    late = late_labels(labels, "id")
    worse = run(1, 3, folder, late=late)
    assert (worse.verdict, worse.exit_code, worse.labelled) == ("worse", 3, 300)
    assert "In 300 rows with a label the challenger is worse: binary_accuracy" in worse.sentence
    better = run(3, 1, folder, late=late)
    assert (better.verdict, better.exit_code) == ("better", 0)
    same = run(1, 1.0001, folder, late=late)
    assert (same.verdict, same.exit_code) == ("no difference shown", 0)


def test_what_cannot_be_judged_is_one_sentence(run, log, tmp_path, config):
    with pytest.raises(UsageError, match=r"19 rows of .*, too few to compare; data_gate.min_rows is 20"):
        run(1, 2, log(rows=19))
    labels = tmp_path / "tips.csv"
    labels.write_text("id,tips\n1,0\n")
    with pytest.raises(UsageError, match="1 row with a label and an answer of both versions: too few"):
        run(1, 2, log(), late=late_labels(labels, "id"))
    labels.write_text("trip,tips\n1,0\n")
    with pytest.raises(UsageError, match="no column 'trip' to join"):
        run(1, 2, log(), late=late_labels(labels, "trip"))
    (tmp_path / "logs/requests-1.jsonl").write_text('{"logged_at": "x", "logged_version": 1, "id": 1}\n')
    with pytest.raises(
        UsageError, match=r"lack columns that version \d+ or \d+ takes: fare, company"
    ) as error:
        run(1, 2, tmp_path / "logs")
    assert "request_log.columns" in error.value.hint
    with pytest.raises(UsageError, match="does not exist: there are no logged requests"):
        run(1, 2, tmp_path / "none")


def test_versions_must_be_two_that_are_there(config, log, pushed, tmp_path):
    version = pushed(1).version
    for champion, challenger, words in (
        (version, 9, "has no version 9"),
        (version, version, "both champion and"),
    ):
        with pytest.raises(UsageError, match=words):
            compare(config, tmp_path / "output", champion=champion, challenger=challenger, on=log())

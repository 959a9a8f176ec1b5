"""The fares workload as a user runs it: a model with two heads, weights, and columns that pass through.

Seen only here: outputs by their names from the model to the gate and to the answers of `predict`.
"""

import json
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

METRICS = ("cost/mean_absolute_error", "cost/root_mean_squared_error", "tip/auc", "tip/binary_accuracy")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("fares") / "output"


@pytest.fixture(scope="module")
def record(record_of, output):
    return record_of("fares", output)


def test_each_head_has_metrics_and_passes_its_own_gate(record):
    assert record["metrics"].keys() == {"example_count", *METRICS}
    assert record["metrics"]["example_count"] == 4966, "rows are counted as they are, whatever they weigh"
    (blessing,) = next(n for n in record["nodes"] if n["id"] == "ModelGate")["outputs"]["blessing"]
    verdict = json.loads(Path(blessing["uri"], "verdict.json").read_text(encoding="utf-8"))
    assert verdict["blessed"]
    assert {check["metric"] for check in verdict["checks"]} > set(METRICS), "each beats a constant answer"
    assert set(verdict["slices"]["payment_type=Cash"]) > {"cost/mean_absolute_error", "tip/binary_accuracy"}


def test_predictions_are_by_output_beside_the_columns_that_are_passed_through(
    record, warm_runner, output, taxi_csv, tmp_path
):
    lines = taxi_csv.read_text(encoding="utf-8").splitlines()[:4]
    place = lines[0].split(",").index("trip_miles")
    rows = [",".join(cell for at, cell in enumerate(line.split(",")) if at != place) for line in lines]
    (tmp_path / "new.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    to = tmp_path / "predicted"
    options = ("--input", str(tmp_path / "new.csv"), "--to", str(to), "--output", str(output))
    finished = warm_runner("predict", "fares", *options)
    assert finished.returncode == 0, finished.stderr
    written = (to / "predictions-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in written]
    assert len(found) == 3
    for line in found:
        assert {name: len(answer) for name, answer in line["prediction"].items()} == {"cost": 1, "tip": 1}
        assert 0 <= line["prediction"]["tip"][0] <= 1
    fares = [float(line.split(",")[lines[0].split(",").index("fare")]) for line in lines[1:]]
    assert [line["columns"]["fare"] for line in found] == pytest.approx(fares)
    assert [line["columns"]["trip_miles"] for line in found] == [None] * 3, "no file must have them"

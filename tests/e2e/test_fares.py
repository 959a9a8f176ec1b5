"""The fares workload as a user runs it: a model with two heads, weights, and columns that pass through.

Seen only here: outputs by their names from the model to the gate and to the answers of `predict`, and that
TFX's own executors (`beam.stock_nodes`) make the same of a number and a class, of weights and logarithms.
"""

import json
from pathlib import Path

import pytest
from same_evaluation import assert_same, content

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
    [accuracy] = [check for check in verdict["checks"] if check["metric"] == "tip/binary_accuracy"]
    assert "(always answering small)" in accuracy["required"], "the workload names the classes of this head"
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
        assert line["class"] == {"tip": "big" if line["prediction"]["tip"][0] > 0.5 else "small"}
    fares = [float(line.split(",")[lines[0].split(",").index("fare")]) for line in lines[1:]]
    assert [line["columns"]["fare"] for line in found] == pytest.approx(fares)
    assert [line["columns"]["trip_miles"] for line in found] == [None] * 3, "no file must have them"


def test_tfx_s_transformed_examples_are_ours(record, differences_in_data, output):
    # The statistics are those of the taxi workload, whose columns these are: test_stock_nodes.py.
    found = differences_in_data("fares", output, nodes=["Transform"])
    assert found == dict.fromkeys(("transform_graph", "transformed_examples"), ())


def test_tfx_s_metrics_of_every_output_slice_model_and_difference_are_ours(record, evaluations, output):
    from slipway.components.model_gate.evaluation import read_evaluation

    ours, theirs = evaluations("fares", output)
    assert_same(*(without_counts_of_costs(content(folder)) for folder in (ours, theirs)))
    found = read_evaluation(theirs)
    assert found.baseline.keys() == found.candidate.keys() > {"overall", "payment_type=Cash"}
    for name in METRICS:
        assert found.baseline["overall"][name] != found.candidate["overall"][name], "two models"


def without_counts_of_costs(found):
    """Leaves out what counts the different values of a logarithm.

    TensorFlow computes eight at once, rounded otherwise than one alone: 318 fares give 318 to 336 labels,
    as many as the rows' places in their batches will have it. No check reads that of a number.
    """
    counted = [f'name: "label_{each}"\n' for each in ("classes", "entropy", "majority", "majority_share")]
    kept = {
        where: {
            key: value
            for key, value in each.items()
            if not (key.startswith(tuple(counted)) and 'output_name: "cost"' in key)
        }
        for where, each in found.items()
    }
    assert [len(each) - len(kept[where]) for where, each in found.items()] == [len(counted)] * len(found)
    return kept

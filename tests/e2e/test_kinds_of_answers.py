"""Workloads whose models answer with several labels, quantiles, scores to rank by, and a vector, whole.

Seen only here: from a file to the pushed model, the gates by the names of its outputs, and the answers of
`predict`. What each metric is, and which rules hold it, is seen in the unit tests.
"""

import json
import random
from pathlib import Path

import pytest
from copied import commands_in, copy_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

PREPROCESSING = '''
"""The columns as they are."""


def preprocessing_fn(inputs):
    return dict(inputs)
'''
SEVERAL_LABELS = """
name: visits
data: {source: visits.csv, format: csv, label: sport}
schema: schemas/visits.pbtxt
transform:
  preprocessing_fn: workloads.visits.preprocessing.preprocessing_fn
  label: [sport, music]
  pass_through: [music]
train: {model: workloads.visits.model.build_model, batch_size: 8, epochs: 1, seed: 1}
evaluate:
  metrics: [auc, binary_accuracy]
  thresholds: {auc: {min: 0.8}, sport/auc: {min: 0.8}, music/binary_accuracy: {min: 0.8}}
"""
QUANTILES = """
name: waits
data: {source: waits.csv, format: csv, label: minutes}
schema: schemas/waits.pbtxt
transform: {preprocessing_fn: workloads.waits.preprocessing.preprocessing_fn}
train:
  model: workloads.waits.model.build_model
  hyperparameters: {quantiles: [0.1, 0.5, 0.9]}
  batch_size: 8
  epochs: 1
  seed: 1
evaluate:
  quantiles: [0.1, 0.5, 0.9]
  metrics: [pinball_loss, interval_coverage, interval_width, quantile_crossing]
  thresholds: {interval_coverage: {min: 0.6, max: 0.95}, quantile_crossing: {max: 0}}
"""
RANKING = """
name: searches
data: {source: searches.csv, format: csv, label: relevance, split_by: {key: query}}
schema: schemas/searches.pbtxt
transform:
  preprocessing_fn: workloads.searches.preprocessing.preprocessing_fn
  group: query
  weight: weight
train: {model: workloads.searches.model.build_model, batch_size: 8, epochs: 1, seed: 1}
evaluate:
  metrics: [ndcg, ndcg_5, mean_reciprocal_rank]
  thresholds: {ndcg_5: {min: 0.8}, mean_reciprocal_rank: {min: 0.7}}
"""
VECTORS = """
name: landings
data: {source: landings.jsonl, format: jsonl, label: place}
schema: schemas/landings.pbtxt
transform: {preprocessing_fn: workloads.landings.preprocessing.preprocessing_fn}
train: {model: workloads.landings.model.build_model, batch_size: 8, epochs: 5, seed: 1}
evaluate:
  metrics: [mean_absolute_error, root_mean_squared_error]
  thresholds: {root_mean_squared_error: {max: 0.5}}
  beat_trivial: all
"""
MODEL = '''
"""A layer on all features."""

import keras

from slipway.components.trainer.models.quantiles import PinballLoss, rising


def build_model(features, hyperparameters):
    inputs = {{name: keras.Input(feature.shape, name=name) for name, feature in features.items()}}
    both = keras.layers.Concatenate()(list(inputs.values()))
    model = keras.Model(inputs, {answers})
    model.compile(keras.optimizers.Adam(0.1), loss={loss})
    return model
'''
SIGMOIDS = 'keras.layers.Dense(2, activation="sigmoid")(both)'
RISING = "rising(keras.layers.Dense(3)(both))"
COLUMN = """feature {{ name: "{name}" type: {kind} shape {{ dim {{ size: {size} }} }}
  presence {{ min_fraction: 1 min_count: 1 }} {more}}}
"""
NOT_SERVED = 'not_in_environment: "SERVING" '


def visits(drawn):
    """Sport above the one diagonal, music about above the other: no model can be right about each."""
    for _ in range(400):
        x, y = round(drawn.uniform(-1, 1), 3), round(drawn.uniform(-1, 1), 3)
        yield {"x": x, "y": y, "sport": int(x + y > 0), "music": int(x - y + drawn.uniform(-0.3, 0.3) > 0.3)}


def waits(drawn):
    """The more people, the longer, and the less certain."""
    for _ in range(600):
        people = round(drawn.uniform(0, 3), 3)
        yield {"people": people, "minutes": round(people + drawn.uniform(-1, 1) * (0.5 + people / 4), 3)}


def searches(drawn):
    """Of six rows of a query, those that match it are relevant, more or less."""
    for query in range(80):
        for _ in range(6):
            match, length = drawn.random(), drawn.random()
            row = {"query": f"q{query}", "match": round(match, 3), "length": round(length, 3)}
            yield {
                **row,
                "weight": drawn.choice([1.0, 2.0]),
                "relevance": int(match > 0.6) + int(match > 0.8),
            }


def landings(drawn):
    """Two numbers around 0 and around 10, each of its own: one number for both misses each by five."""
    for _ in range(400):
        x, y = round(drawn.uniform(-1, 1), 3), round(drawn.uniform(-1, 1), 3)
        place = [2 * x + drawn.uniform(-0.3, 0.3), 10 - y + drawn.uniform(-0.3, 0.3)]
        yield {"x": x, "y": y, "place": [round(each, 3) for each in place]}


WORKLOADS = {
    "visits": (SEVERAL_LABELS, visits, SIGMOIDS, '"binary_crossentropy"'),
    "waits": (QUANTILES, waits, RISING, 'PinballLoss(hyperparameters["quantiles"])'),
    "searches": (RANKING, searches, "keras.layers.Dense(1)(both)", '"mse"'),
    "landings": (VECTORS, landings, "keras.layers.Dense(2)(both)", '"mse"'),
}
KINDS = {int: "INT", float: "FLOAT", str: "BYTES"}
# The labels; group and weight are no inputs either, without a word about it in the schema.
LABELS = {"sport", "music", "minutes", "relevance", "place"}


def write_csv(path, rows):
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_json_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def column_of(name, value):
    """A column of the schema: of a list, as many numbers as it has."""
    of_one, size = (value[0], len(value)) if isinstance(value, list) else (value, 1)
    more = NOT_SERVED if name in LABELS else ""
    return COLUMN.format(name=name, kind=KINDS[type(of_one)], size=size, more=more)


@pytest.fixture(scope="module")
def copy(tmp_path_factory, project):
    """A copy of the project, with the workloads in it."""
    folder = copy_of(project, tmp_path_factory.mktemp("answers"), "workloads")
    for name, (settings, rows_of, answers, loss) in WORKLOADS.items():
        code = folder / "workloads" / name
        code.mkdir()
        (code / "__init__.py").write_text(f'"""{name}."""\n', encoding="utf-8")
        (code / "preprocessing.py").write_text(PREPROCESSING, encoding="utf-8")
        (code / "model.py").write_text(MODEL.format(answers=answers, loss=loss), encoding="utf-8")
        (code / "workload.yaml").write_text(settings, encoding="utf-8")
        rows = list(rows_of(random.Random(1)))  # noqa: S311 (a sample, no secret)
        if name == "landings":
            write_json_lines(folder / f"{name}.jsonl", rows)
        else:
            write_csv(folder / f"{name}.csv", rows)
        columns = [column_of(*each) for each in rows[0].items()]
        environments = 'default_environment: "TRAINING"\ndefault_environment: "SERVING"\n'
        (folder / "schemas" / f"{name}.pbtxt").write_text(environments + "".join(columns), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def call(copy, warm):
    """Gives commands to the local_runner.py of the copy."""
    with commands_in(copy, warm) as commands:
        yield commands


@pytest.fixture(scope="module")
def here(call):
    """The same, for commands that succeed; returns what they say."""

    def successful(*words):
        done = call("local_runner", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return successful


@pytest.fixture
def pushed(copy, here):
    """Runs a workload, which is pushed; returns its metrics, and what its gate required of each."""

    def run(name):
        here("run", name)
        record = json.loads(here("show", "--json"))
        assert record["pushed"], "gates and serving check passed"
        page = (copy / "output" / "runs" / record["run_id"] / "report.html").read_text(encoding="utf-8")
        assert "cannot be shown" not in page
        [gate] = [node for node in record["nodes"] if node["id"] == "ModelGate"]
        [blessing] = gate["outputs"]["blessing"]
        checks = json.loads(Path(blessing["uri"], "verdict.json").read_text(encoding="utf-8"))["checks"]
        return record["metrics"], {(check["metric"], check["required"]) for check in checks}

    return run


@pytest.fixture
def predicted(copy, here):
    """The lines that `predict` writes for rows."""

    def predict(name, rows):
        write, ending = (write_json_lines, "jsonl") if name == "landings" else (write_csv, "csv")
        write(copy / f"new.{ending}", rows)
        to = copy / f"predicted-{name}"
        here("predict", name, "--input", f"new.{ending}", "--to", str(to))
        summary = json.loads((to / "summary.json").read_text(encoding="utf-8"))
        assert (summary["predicted"], summary["rejected"]) == (len(rows), {})
        written = (to / "predictions-00000-of-00001.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in written.splitlines()]

    return predict


def test_several_labels_are_judged_and_answered_each_by_its_name(pushed, predicted, call):
    metrics, checks = pushed("visits")
    named = [
        f"{label}{metric}" for metric in ("auc", "binary_accuracy") for label in ("", "sport/", "music/")
    ]
    assert metrics.keys() == {"example_count", *named}
    assert metrics["auc"] == pytest.approx((metrics["sport/auc"] + metrics["music/auc"]) / 2)
    assert checks > {(name, "at least 0.8") for name in ("auc", "sport/auc")}
    assert ("music/binary_accuracy", "at least 0.8") in checks
    beaten = {name for name, required in checks if "random models" in required or "(always" in required}
    assert beaten >= {"sport/auc", "music/auc", "sport/binary_accuracy", "music/binary_accuracy"}, checks
    answers = [
        line["prediction"] for line in predicted("visits", [{"x": 0.9, "y": 0.8}, {"x": 0.9, "y": -0.95}])
    ]
    both, music = ({name: round(answer) for name, [answer] in each.items()} for each in answers)
    assert (both["sport"], music) == (1, {"sport": 0, "music": 1})
    assert all(0 <= answer <= 1 for each in answers for [answer] in each.values())

    refused = call("local_runner", "run", "visits", "--set", "evaluate.thresholds.music/auc.min=1")
    assert refused.returncode == 3, refused.stderr
    assert f"Not pushed: music/auc {metrics['music/auc']:.4g}, needs at least 1." in refused.stderr


def test_quantiles_rise_cover_and_are_answered_in_their_order(pushed, predicted):
    metrics, checks = pushed("waits")
    assert metrics.keys() == {
        *("example_count", "pinball_loss", "interval_coverage", "interval_width", "quantile_crossing")
    }
    assert metrics["quantile_crossing"] == 0
    assert checks > {("interval_coverage", "at least 0.6"), ("interval_coverage", "at most 0.95")}
    assert [name for name, required in checks if "always answering the same quantiles" in required] == [
        "pinball_loss"
    ], checks
    few, many = (line["prediction"] for line in predicted("waits", [{"people": 0.5}, {"people": 2.5}]))
    assert len(few) == 3
    assert few == sorted(few)
    assert many == sorted(many)
    assert all(high > low + 1 for low, high in zip(few, many, strict=True))


def test_a_vector_is_judged_by_each_of_its_numbers_and_answered_whole(pushed, predicted):
    metrics, checks = pushed("landings")
    assert metrics.keys() == {"example_count", "mean_absolute_error", "root_mean_squared_error"}
    beaten = {name: required for name, required in checks if "of each number of the label)" in required}
    assert beaten.keys() == {"mean_absolute_error", "root_mean_squared_error"}, checks
    # Around one mean of both numbers, the labels would be five apart.
    assert all(float(required.split()[1]) < 2 for required in beaten.values()), beaten
    answers = [
        line["prediction"] for line in predicted("landings", [{"x": 0.5, "y": 0.5}, {"x": -1.0, "y": 0.0}])
    ]
    assert answers == [pytest.approx(place, abs=0.5) for place in ([1.0, 9.5], [-2.0, 10.0])]


def test_scores_rank_the_rows_of_a_group_and_group_and_weight_reach_the_predictions(pushed, predicted):
    metrics, checks = pushed("searches")
    assert metrics.keys() == {"example_count", "ndcg", "ndcg_5", "mean_reciprocal_rank"}
    assert checks > {("ndcg_5", "at least 0.8"), ("mean_reciprocal_rank", "at least 0.7")}
    beaten = {name for name, required in checks if "a random order" in required}
    assert beaten == {"ndcg", "ndcg_5", "mean_reciprocal_rank"}, checks
    rows = [
        {"query": "q9", "weight": 2.0, "match": 0.1, "length": 0.5},
        {"query": "q9", "weight": 0.5, "match": 0.9, "length": 0.5},
    ]
    low, high = predicted("searches", rows)
    assert low["columns"] == {"query": "q9", "weight": 2.0}
    assert high["columns"] == {"query": "q9", "weight": 0.5}
    assert high["prediction"][0] > low["prediction"][0] + 0.5

"""Our executor against TFX's own as oracle: every metric, slice and model, and all that the files hold.

What asks the oracle is external. `make test` sees ours alone below, and its values computed by hand in
tests/unit/components/evaluator/: each formula, weights, outputs, slices, parts that add up, bounds.
"""

import functools
import json
import math
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest
from same_evaluation import assert_same, close, content

from slipway.components.metrics.definitions import METRICS

pytestmark = [
    pytest.mark.slow,
    # TFX's and TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

# A cross with numbers is in the other cases; TFX's executor takes its time over each slice.
SLICES = [["text"], ["whole"], ["fraction"], ["tags"], ["tags", "text"], ["bucket"]]
ROWS = 300
COMPARED = 120
"""Rows where TFX's executor, which takes its time over each, evaluates them as well."""
# The one in the process, which is not asked, and another of Beam that needs no server.
RUNNERS = ("FnApiRunner", "BundleBasedDirectRunner")
# The other one is external where what it does with rows, and what it says of them, is seen by another test.
FIRST_RUNNER = [RUNNERS[0], pytest.param(RUNNERS[1], marks=pytest.mark.external)]
SCHEMA = """
feature { name: "text" type: BYTES }
feature { name: "whole" type: INT presence { min_fraction: 1 } shape { dim { size: 1 } } }
feature { name: "fraction" type: FLOAT }
feature { name: "tags" type: BYTES }
feature { name: "kind" type: BYTES }
feature { name: "label" type: FLOAT }
feature { name: "candidate" type: FLOAT }
feature { name: "baseline" type: FLOAT }
"""


@pytest.fixture(scope="module")
def tfx():
    """TFX's and our executor with what they need, imported once."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    import tensorflow as tf
    import tensorflow_model_analysis as tfma
    from tfx.components.evaluator.executor import Executor as Stock
    from tfx.types import standard_artifacts
    from tfx.utils import path_utils, proto_utils

    from slipway.components.evaluator.executor import Executor

    return SimpleNamespace(
        Executor=Executor,
        Stock=Stock,
        artifacts=standard_artifacts,
        path_utils=path_utils,
        proto_utils=proto_utils,
        tf=tf,
        tfma=tfma,
    )


@pytest.fixture(scope="module")
def saved(tfx):
    """Writes a model that answers what stands in a column; it transforms `kind`, too, as many models do."""
    tf = tfx.tf

    def save(folder, column, *, outputs, labels, label_dtype=tf.float32, called="label", weighed_by="weight"):
        floats = {column: tf.io.FixedLenFeature([outputs], tf.float32)}
        both = {
            "label": tf.io.FixedLenFeature([labels], tf.float32),
            "whole": tf.io.FixedLenFeature([1], tf.int64),
            weighed_by: tf.io.FixedLenFeature([1], tf.float32, default_value=[1.0]),
        }
        spec = [tf.TensorSpec([None], tf.string, name="examples")]
        module = tf.Module()

        @tf.function(input_signature=spec)
        def serve(examples):
            return {"outputs": tf.io.parse_example(examples, floats)[column]}

        @tf.function(input_signature=spec)
        def transform(examples):
            found = tf.io.parse_example(examples, both)
            as_text = label_dtype == tf.string
            label = tf.strings.as_string(found["label"]) if as_text else tf.cast(found["label"], label_dtype)
            bucket = {"bucket": found["whole"] % 3, "other": found["whole"], "kind": found["whole"] + 40}
            return {called: label, "weight": found[weighed_by], **bucket}

        module.serve, module.transform = serve, transform
        model = tfx.artifacts.Model()
        model.uri = str(folder)
        signatures = {"serving_default": serve, "transform_features": transform}
        tf.saved_model.save(module, tfx.path_utils.serving_model_path(model.uri), signatures=signatures)
        return model

    return save


@pytest.fixture(scope="module")
def evaluate(tfx, tmp_path_factory):
    """Runs an executor; returns the folder of its results."""

    def ran(examples, config, models, *, stock=False, runner="FnApiRunner", checked=None):
        out = tmp_path_factory.mktemp("stock" if stock else "ours")
        schema = tfx.artifacts.Schema()
        schema.uri = str(out / "schema")
        Path(schema.uri).mkdir()
        Path(schema.uri, "schema.pbtxt").write_text(SCHEMA)
        evaluation, blessing = tfx.artifacts.ModelEvaluation(), tfx.artifacts.ModelBlessing()
        evaluation.uri, blessing.uri = str(out / "evaluation"), str(out / "blessing")
        executor_class = checked or (tfx.Stock if stock else tfx.Executor)
        context = executor_class.Context(
            # Without it TFX packs all of its own files for other machines, each time.
            beam_pipeline_args=[f"--runner={runner}", "--sdk_container_image=none"],
            tmp_dir=str(out / "tmp"),
            unique_id="1",
        )
        executor_class(context).Do(
            {
                "examples": [examples],
                "schema": [schema],
                "model": [models["candidate"]],
                **({"baseline_model": [models["baseline"]]} if "baseline" in models else {}),
            },
            {"evaluation": [evaluation], "blessing": [blessing]},
            {"eval_config": tfx.proto_utils.proto_to_json(config), "example_splits": "null"},
        )
        return Path(evaluation.uri)

    return ran


def made_rows(outputs, labels, *, label, answer, count=ROWS):
    """Rows with columns to slice by, some of them empty, and what each model answers."""
    draw, weigh = random.Random(7), random.Random(8)  # noqa: S311
    rows = []
    for _ in range(count):
        wanted = label(draw)
        rows.append(
            {
                "kind": [weigh.choice(["north", "south"])],
                "text": draw.choice([["a"], ["b"], ["ü"], [], ["a"]]),
                "whole": [draw.choice([0, 2, 7])],
                "fraction": draw.choice([[0.5], [-1.25], [0.1], []]),
                "tags": draw.choice([[], ["x"], ["x", "y"], ["y", "y"], ["z", "x", "y"]]),
                "label": [float(value) for value in wanted],
                "weight": [weigh.choice([0.0, 0.25, 1.0, 3.5])],
                "candidate": [float(value) for value in answer(draw, wanted, 0.6)],
                "baseline": [float(value) for value in answer(draw, wanted, 0.2)],
            }
        )
    return rows


def probability(draw, wanted, skill):
    found = min(max(skill * (wanted[0] - 0.5) + draw.random(), 0.0), 1.0)
    return [draw.choice([found, found, found, round(found, 4), 0.5, 0.0, 1.0, 1 - 1e-8])]


def probabilities(draw, wanted, skill):
    hot = wanted if len(wanted) > 1 else [float(place == wanted[0]) for place in range(7)]
    weights = [draw.random() + skill * each for each in hot]
    return [weight / sum(weights) for weight in weights]


def a_class(draw):
    return [draw.randrange(7)]


def one_hot_class(draw):
    place = draw.randrange(7)
    return [float(place == each) for each in range(7)]


CASES = {
    "binary": (1, 1, lambda draw: [draw.randrange(2)], probability, ("one", None)),
    "shares": (1, 1, lambda draw: [draw.choice([0, 1, 0.25])], probability, ("one", None)),
    "classes": (7, 1, a_class, probabilities, ("classes", None)),
    "one-hot": (7, 7, one_hot_class, probabilities, ("classes", None)),
    "numbers": (
        1,
        1,
        lambda draw: [draw.choice([0, 10 * draw.random(), 3, 700 * draw.random()])],
        lambda draw, wanted, skill: [abs(wanted[0] + draw.gauss(0, 1 / skill))],
        ("one",),
    ),
}
OF_PROBABILITIES = {"auc", "binary_crossentropy"}
OF_ONE_NUMBER = ("sparse_",)


def metrics_of(case):
    """The metrics that make sense there."""
    _, labels, _, _, kinds = CASES[case]
    names = [name for name, metric in METRICS.items() if metric.outputs in kinds]
    if case == "numbers":
        not_there = OF_PROBABILITIES | {"binary_accuracy"}
        return [name for name in names if name not in not_there]
    return [name for name in names if not (name.startswith(OF_ONE_NUMBER) and labels > 1)]


def config_of(case, slices=None, *, weight=None):
    from slipway.components.model_gate.eval_config import eval_config

    if slices is None:  # the stock executor takes a tenth of a second for each of some cases
        slices = SLICES if case == "binary" else [["text"], ["tags", "whole"]]
    return eval_config(label="label", metrics=metrics_of(case), slices=slices, weight=weight)


@pytest.fixture(scope="module")
def pair(saved, evaluate, tmp_path_factory):
    """Both executors' results of a case, or ours alone (`stock=(False,)`), made once."""
    from slipway.pipeline.testing import tiny_examples

    made = {}

    def results(case, *names, weight=None, stock=(False, True)):
        if (case, names, weight, stock) not in made:
            folder = tmp_path_factory.mktemp("given")
            outputs, labels, label, answer, _ = CASES[case]
            count = COMPARED if True in stock else ROWS
            rows = made_rows(outputs, labels, label=label, answer=answer, count=count)
            examples = tiny_examples({"train": [], "eval": rows}, into=folder)
            models = {name: saved(folder / name, name, outputs=outputs, labels=labels) for name in names}
            config = config_of(case, [["text"]], weight=weight) if weight else config_of(case)
            made[case, names, weight, stock] = tuple(
                evaluate(examples, config, models, stock=each) for each in stock
            )
        return made[case, names, weight, stock]

    return results


HEADS = {
    "number": ("mean_absolute_error", "root_mean_squared_error"),
    "yes": ("auc", "precision", "binary_accuracy"),
}


@pytest.fixture(scope="module")
def heads(tfx, tmp_path_factory):
    """Rows, their examples, and models with two outputs."""
    tf = tfx.tf
    from slipway.pipeline.testing import tiny_examples

    folder, draw = tmp_path_factory.mktemp("heads"), random.Random(3)  # noqa: S311
    names = ("number", "yes", "weight", "candidate", "baseline")
    rows = []
    for _ in range(ROWS):
        number, yes = 9 * draw.random(), float(draw.random() > 0.6)
        weight, skill = draw.choice([0.0, 0.5, 2.0]), draw.random()
        values = (number, yes, weight, number + 2 * skill - 1, (yes + skill) / 2)
        text = draw.choice([["a"], ["b"], []])
        rows.append(
            {"text": text, "whole": [0], **{name: [value] for name, value in zip(names, values, strict=True)}}
        )
    examples = tiny_examples({"train": [], "eval": rows}, into=folder)
    spec = {name: tf.io.FixedLenFeature([1], tf.float32) for name in names}
    models = {}
    for name in ("candidate", "baseline"):
        module, off = tf.Module(), 0.0 if name == "candidate" else 0.25

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serve(given, off=off):
            found = tf.io.parse_example(given, spec)
            return {
                "number": found["candidate"] + off,
                "yes": tf.clip_by_value(found["baseline"] + off, 0, 1),
            }

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def transform(given):
            found = tf.io.parse_example(given, spec)
            return {"n": found["number"], "y": found["yes"], "weight": found["weight"]}

        module.serve, module.transform = serve, transform
        models[name] = tfx.artifacts.Model()
        models[name].uri = str(folder / name)
        signatures = {"serving_default": serve, "transform_features": transform}
        tf.saved_model.save(
            module, tfx.path_utils.serving_model_path(models[name].uri), signatures=signatures
        )
    return rows, examples, models


@pytest.fixture(scope="module")
def two_heads(heads, evaluate):
    """Both executors' results of models with two outputs, with weights and without."""
    from slipway.components.model_gate.eval_config import eval_config

    _, examples, models = heads

    def results(weight, mean=None):
        metrics = [f"{output}/{metric}" for output, of_it in HEADS.items() for metric in of_it]
        if mean:  # TFX's executor has none
            metrics = [mean, *(f"{output}/{mean}" for output in HEADS)]
        label = {"number": "n", "yes": "y"}
        config = eval_config(label=label, metrics=metrics, slices=[["text"]], weight=weight)
        return [evaluate(examples, config, models, stock=stock) for stock in (False, True)[: 2 - bool(mean)]]

    return results


def test_mean_over_outputs_stands_beside_the_values_of_each(two_heads):
    from slipway.components.model_gate.evaluation import read_evaluation

    [folder] = two_heads("weight", mean="mean_squared_error")
    found = read_evaluation(str(folder))
    for values in (*found.candidate.values(), *found.baseline.values()):
        each = [values[f"{output}/mean_squared_error"] for output in HEADS]
        assert values["mean_squared_error"] == pytest.approx(sum(each) / len(each))
    for spreads in (found.spreads["text=a"], found.difference_spreads["overall"]):
        assert spreads.keys() == {"mean_squared_error", *(f"{output}/mean_squared_error" for output in HEADS)}


@pytest.mark.external
@pytest.mark.parametrize("weight", [None, "weight"])
def test_every_output_has_the_values_of_the_stock_executor(two_heads, weight):
    from slipway.components.model_gate.evaluation import read_evaluation

    folders = two_heads(weight)
    assert_same(*map(content, folders))
    ours, theirs = (read_evaluation(str(folder)) for folder in folders)
    names = {f"{output}/{metric}" for output, of_it in HEADS.items() for metric in of_it}
    assert ours.candidate["overall"].keys() == theirs.candidate["overall"].keys() > names
    assert ours.spreads["overall"].keys() == names
    assert ours.slices()["text=a"].labels_of_outputs.keys() == set(HEADS)


@pytest.mark.external
@pytest.mark.parametrize("case", CASES)
def test_every_value_is_that_of_the_stock_executor(pair, case):
    ours, theirs = map(content, pair(case, "candidate", "baseline"))
    assert len(theirs) > 12
    assert_same(ours, theirs)


@pytest.mark.external
@pytest.mark.parametrize("case", ["binary", "classes", "numbers"])
def test_rows_with_weights_count_as_much_as_in_the_stock_executor(pair, case):
    ours, theirs = map(content, pair(case, "candidate", "baseline", weight="weight"))
    assert_same(ours, theirs)
    overall = next(each for where, each in ours.items() if "text" not in where)
    counts = {key: value for key, value in overall.items() if 'name: "example_count"' in key}
    assert set(counts.values()) == {COMPARED, 0.0}, "rows are counted as they are"
    assert sum("value: true" in key for key in overall) > 12


BOUNDS = {
    "binary": {"auc": {"min": 0.6, "max_drop": 0.05}, "precision": {"min": 0.99}},
    "classes": {
        "sparse_categorical_accuracy": {"min": 0.2, "max_drop": 0},
        "sparse_categorical_crossentropy": {"max": 1.5, "max_rise": 0.1},
    },
    "numbers": {"mean_absolute_error": {"max": 2, "max_rise": 0.5}, "mean_squared_error": {"max": 1}},
}


@pytest.mark.external
@pytest.mark.parametrize("case", BOUNDS)
def test_gate_says_the_same_of_both(pair, case):
    from slipway.components.model_gate.evaluation import read_evaluation
    from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
    from slipway.components.model_gate.trivial_rules import trivial_checks

    limits = {name: Threshold(**values) for name, values in BOUNDS[case].items()}
    said = []
    for folder in pair(case, "candidate", "baseline"):
        found = read_evaluation(str(folder))
        slices = {name: replace(at, spreads={}) for name, at in found.slices().items()}
        checks, notes = threshold_checks({"overall": limits, "all": limits}, slices, min_slice_rows=20)
        more, more_notes = trivial_checks(list(limits), limits, slices["overall"], beat="one")
        answers = {name: (told["kind"], told["rows"]) for name, told in found.answers.items()}
        said.append(([(each.reason, each.stops) for each in checks + more], notes + more_notes, answers))
    ours, theirs = said
    assert ours == theirs
    assert ours[2].keys() == {"candidate", "baseline"}
    assert len({words.rpartition(" ")[0] for words, _ in ours[0]}) > 12


@pytest.mark.external
def test_files_are_those_of_the_stock_executor(pair, tfx):
    folders = pair("binary", "candidate", "baseline")
    ours, theirs = (sorted(path.name for path in folder.iterdir()) for folder in folders)
    assert ours == theirs
    runs = [json.loads((folder / "eval_config.json").read_text()) for folder in folders]
    assert runs[0] == runs[1]
    for kind, load in (("plots", tfx.tfma.load_plots), ("attributions", tfx.tfma.load_attributions)):
        slices = [sorted(str(record) for record in load(str(folder))) for folder in folders]
        assert slices[0] == slices[1], kind
    assert tfx.tfma.load_validation_result(str(folders[0])) == tfx.tfma.load_validation_result(
        str(folders[1])
    )
    [result] = tfx.tfma.load_eval_result(str(folders[0]), model_name="candidate").get_slice_names()[:1]
    assert isinstance(result, tuple)


def test_every_metric_has_an_interval_that_tfma_and_the_gate_read(pair, tfx):
    from slipway.components.model_gate.evaluation import read_evaluation

    (ours,) = pair("binary", "candidate", "baseline", stock=(False,))
    names = metrics_of("binary")
    found = read_evaluation(str(ours))
    for spreads in (found.spreads, found.difference_spreads):
        assert spreads["overall"].keys() == set(names)
        assert all(0 <= spread.error < math.inf for spread in spreads["overall"].values())
        assert spreads.keys() > {"text=a", "whole=7", "tags=x, text=b"}
    result = tfx.tfma.load_eval_result(str(ours), model_name="candidate")
    shown = result.get_metrics_for_slice()
    for name in names:
        interval = shown[name]["boundedValue"]
        half = found.spreads["overall"][name].half(0.975)
        assert interval["upperBound"] - interval["value"] == pytest.approx(half)
        assert interval["value"] == found.candidate["overall"][name]
    # The widget of notebooks.
    rows = tfx.tfma.view.render_slicing_metrics(result, slicing_column="text").data
    assert {row["slice"] for row in rows} == {"text:a", "text:b", "text:ü"}
    assert all("boundedValue" in row["metrics"][""][""][name] for row in rows for name in names)


@pytest.fixture(scope="module")
def alone(saved, tmp_path_factory):
    """A binary model without a baseline, and its rows in three files."""
    from slipway.pipeline.testing import tiny_examples

    folder = tmp_path_factory.mktemp("alone")
    _, _, label, answer, _ = CASES["binary"]
    rows = made_rows(1, 1, label=label, answer=answer)
    parts = {"eval": rows[:100], "one": rows[100:101], "two": rows[101:]}
    examples = tiny_examples(parts, into=folder)
    for place, part in enumerate(("one", "two")):
        [file] = Path(examples.uri, f"Split-{part}").iterdir()
        file.rename(Path(examples.uri, "Split-eval", f"data_tfrecord-0000{place + 1}-of-00003.gz"))
    return examples, {"candidate": saved(folder / "model", "candidate", outputs=1, labels=1)}


@pytest.fixture(scope="module")
def in_shards(alone, evaluate):
    """What all metrics are where each file is a shard of its own, in one process."""
    from slipway.components import beam_engine_workers, shards

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "LEAST_BYTES", 1)
        patch.setattr(beam_engine_workers, "process_count", lambda *_, **__: 1)
        return evaluate(alone[0], config_of("binary"), alone[1])


def test_an_engine_of_beam_gives_the_same_to_the_last_bit(alone, in_shards, evaluate, monkeypatch):
    from slipway.components import shards

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    there = evaluate(alone[0], config_of("binary"), alone[1], runner=RUNNERS[1])
    ours, theirs = content(in_shards, spreads=True), content(there, spreads=True)
    assert ours.keys() == theirs.keys()
    assert {len(each) for each in ours.values()} != {len(each) for each in content(in_shards).values()}
    assert {path.name for path in there.iterdir()} == {path.name for path in in_shards.iterdir()}
    assert repr(theirs) == repr(ours)  # NaN is there, too


def test_two_processes_give_the_same_to_the_last_bit(alone, in_shards, evaluate, monkeypatch, forked, beside):
    from slipway.components import beam_engine_workers, shards

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    monkeypatch.setattr(beam_engine_workers, "process_count", lambda *_, **__: 2)
    by_two = evaluate(alone[0], config_of("binary"), alone[1])
    assert len(beside) == 1
    # NaN is there, too.
    assert repr(content(by_two, spreads=True)) == repr(content(in_shards, spreads=True))


@pytest.fixture
def loaded_once(tfx, monkeypatch):
    """Loads each model once: that takes longer than asking it."""
    monkeypatch.setattr(tfx.tf.saved_model, "load", functools.cache(tfx.tf.saved_model.load))


@pytest.mark.parametrize("runner", RUNNERS)
def test_what_is_wrong_with_rows_is_said_in_words(alone, loaded_once, evaluate, tmp_path, runner):
    from slipway.components.errors import ComponentError
    from slipway.pipeline.testing import tiny_examples

    row = {"whole": [1], "label": [1.0], "candidate": [0.5], "text": ["a"]}
    for wrong, sentence in {
        "candidate=nan": "the candidate model answers NaN for 1 of 2 rows of the eval split, so auc cannot",
        "label=3": "a label of the eval split is 3, and a metric that counts positives needs labels from",
        "candidate=": "the candidate model refuses rows of the eval split: candidate has no value",
    }.items():
        column, _, value = wrong.partition("=")
        bad = {**row, column: [float(value)] if value else []}
        examples = tiny_examples({"eval": [row, bad]}, into=tmp_path / wrong)
        with pytest.raises(ComponentError) as told:
            evaluate(examples, config_of("binary", []), alone[1], runner=runner)
        assert sentence in told.value.message


@pytest.mark.parametrize("runner", FIRST_RUNNER)
def test_bounds_that_are_left_out_are_reported(alone, evaluate, tmp_path, monkeypatch, runner, caplog):
    from slipway.components.evaluator import tally
    from slipway.components.progress import PROGRESS_VARIABLE

    shown = tmp_path / "progress.json"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(shown))
    config = config_of("binary", [["whole"]])
    evaluate(alone[0], config, alone[1], runner=runner)
    assert json.loads(shown.read_text())["text"] == "300 rows, 4 slices"
    monkeypatch.setattr(tally, "MOST_SLICES_WITH_BOUNDS", 3)
    evaluate(alone[0], config, alone[1], runner=runner)
    assert json.loads(shown.read_text())["text"] == "300 rows, 4 slices; confidence bounds of all rows only"
    assert "confidence bounds of all rows only" in caplog.text


def test_where_memory_runs_out_smaller_batches_give_the_same_and_are_reported(
    alone, loaded_once, evaluate, tfx, monkeypatch, caplog, tmp_path
):
    from slipway.components.errors import ComponentError
    from slipway.components.evaluator.reading import _Model
    from slipway.components.progress import PROGRESS_VARIABLE

    examples, models = alone
    config = config_of("binary", [["text"]])
    whole = content(evaluate(examples, config, models), spreads=True)
    judge, most, asked, shown = _Model.judge, 20, [], tmp_path / "progress.json"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(shown))

    def short_of_memory(model, batch):
        asked.append(len(batch))
        if len(batch) > most:
            raise tfx.tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
        return judge(model, batch)

    monkeypatch.setattr(_Model, "judge", short_of_memory)
    parts = content(evaluate(examples, config, models), spreads=True)
    said = json.loads(shown.read_text())["text"]
    assert said == "300 rows, 4 slices; batches of at most 12 rows: memory ran out"
    assert parts.keys() == whole.keys()
    assert all(
        close(parts[where][key], value) for where, each in whole.items() for key, value in each.items()
    )
    assert asked == [100, 50, 25, 12, 12, 1, 12, 12, 1, 12, 12, 12, 12, 2, 1, *[12] * 16, 7]
    assert sum(rows for rows in asked if rows <= most) == 300, "each row is counted once"
    for more, fewer in ((100, 50), (50, 25), (25, 12)):
        assert f"memory ran out over {more} rows; from here at most {fewer}" in caplog.text
    most = 0
    with pytest.raises(ComponentError, match="ran out of memory while a model answered one row"):
        evaluate(examples, config, models)


def test_baseline_of_other_columns_is_reported_and_the_engine_s_own_hint_is_left_room(
    saved, evaluate, tmp_path
):
    from slipway.components.errors import ComponentError
    from slipway.pipeline.testing import tiny_examples

    examples = tiny_examples({"eval": [{"whole": [1], "label": [1.0], "candidate": [0.5]}]}, into=tmp_path)
    models = {name: saved(tmp_path / name, name, outputs=1, labels=1) for name in ("candidate", "baseline")}
    with pytest.raises(ComponentError) as told:
        evaluate(examples, config_of("binary", []), models)
    assert told.value.message == (
        "the baseline model refuses rows of the eval split: baseline has no value, but the model needs one "
        "in every row"
    )
    assert told.value.hint == ""


def test_baseline_that_knows_no_such_label_is_reported_and_not_left_to_tfx(saved, evaluate, tmp_path):
    from slipway.components.errors import ComponentError
    from slipway.components.model_gate.eval_config import eval_config
    from slipway.pipeline.testing import tiny_examples

    examples = tiny_examples({"eval": [{"whole": [1], "label": [1.0], "candidate": [0.5]}]}, into=tmp_path)
    models = {
        name: saved(tmp_path / name, "candidate", outputs=1, labels=1, called=called)
        for name, called in {"candidate": "cost", "baseline": "label"}.items()
    }
    with pytest.raises(ComponentError, match="the last blessed model has no label cost: the two") as told:
        evaluate(examples, eval_config(label="cost", metrics=["auc"], slices=[]), models)
    assert told.value.hint == ""


def test_baseline_whose_files_changed_is_refused_before_anything_is_compared_with_it(
    saved, evaluate, tmp_path
):
    from slipway.components.errors import ComponentError
    from slipway.components.saved_model.digest_files import keep_digest
    from slipway.pipeline.testing import tiny_examples

    examples = tiny_examples({"eval": [{"whole": [1], "label": [1.0], "candidate": [0.5]}]}, into=tmp_path)
    models = {
        name: saved(tmp_path / name, "candidate", outputs=1, labels=1) for name in ("candidate", "baseline")
    }
    model = tmp_path / "baseline" / "Format-Serving"
    keep_digest(str(model))
    (model / "assets" / "words").write_text("swapped")  # TensorFlow notices changes of weights only
    with pytest.raises(ComponentError, match=f"the baseline model, {model}, is damaged: the SHA") as told:
        evaluate(examples, config_of("binary", []), models)
    assert told.value.hint == ""  # the engine's own


def test_baseline_that_is_gone_is_reported_and_the_engine_s_own_hint_is_left_room(saved, evaluate, tmp_path):
    from slipway.components.errors import ComponentError
    from slipway.pipeline.testing import tiny_examples

    examples = tiny_examples({"eval": [{"whole": [1], "label": [1.0], "candidate": [0.5]}]}, into=tmp_path)
    models = {
        name: saved(tmp_path / name, "candidate", outputs=1, labels=1) for name in ("candidate", "baseline")
    }
    for name, hint in {"baseline": "", "candidate": "run the training again"}.items():
        shutil.rmtree(tmp_path / name)
        with pytest.raises(ComponentError) as told:
            evaluate(examples, config_of("binary", []), models)
        assert told.value.message.startswith(f"the {name} model, {tmp_path / name}")
        assert "cannot be loaded: OSError" in told.value.message
        assert told.value.hint == hint


@pytest.fixture(scope="module")
def of_other_labels(saved, tfx, tmp_path_factory):
    """Models whose labels are texts, and halves of a float."""
    folder = tmp_path_factory.mktemp("other")
    return [
        {"candidate": saved(folder / kind.name, "candidate", outputs=1, labels=1, label_dtype=kind)}
        for kind in (tfx.tf.string, tfx.tf.float16)
    ]


@pytest.mark.parametrize("runner", FIRST_RUNNER)
def test_what_is_not_known_goes_to_the_stock_executor_with_the_reason(
    alone, of_other_labels, evaluate, tfx, runner, monkeypatch, caplog
):
    asked = []
    monkeypatch.setattr(tfx.Stock, "Do", lambda self, *arguments: asked.append(arguments))
    # Of what TFX's would have written.
    monkeypatch.setattr("slipway.components.evaluator.executor._overall_metrics", lambda folder: {})
    examples, models = alone
    config = config_of("binary")
    config.metrics_specs[0].metrics.add(class_name="MeanLabel")
    evaluate(examples, config, models, runner=runner)
    assert "TFX's own executor evaluates, row by row: it has the metric MeanLabel" in caplog.text
    for kind, models in zip(("string", "float16"), of_other_labels, strict=True):
        evaluate(examples, config_of("binary"), models, runner=runner)
        assert f"TFX's own executor evaluates, row by row: label is {kind}" in caplog.text
    assert len(asked) == 3


@pytest.mark.external
def test_model_whose_answers_no_metric_takes_is_refused_in_words(tfx, alone, evaluate, tmp_path):
    from slipway.components.errors import ComponentError

    tf = tfx.tf
    for answered, (told, words) in {
        "texts": (
            "the model answers string",
            "TypeError: can't multiply sequence by non-int of type 'float'",
        ),
        "classes": (
            "a row has 1 label and 3 answers, which accuracy may not accept",
            "ValueError: Shapes (300, 1) and (300, 3) are incompatible",
        ),
    }.items():
        module = tf.Module()

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serve(examples, answered=answered):
            return {"outputs": examples[:, None] if answered == "texts" else tf.zeros([tf.size(examples), 3])}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def transform(examples):
            return tf.io.parse_example(examples, {"label": tf.io.FixedLenFeature([1], tf.float32)})

        module.serve, module.transform = serve, transform
        model = tfx.artifacts.Model()
        model.uri = str(tmp_path / answered)
        signatures = {"serving_default": serve, "transform_features": transform}
        tf.saved_model.save(module, tfx.path_utils.serving_model_path(model.uri), signatures=signatures)
        with pytest.raises(ComponentError) as refused:
            evaluate(alone[0], config_of("binary", []), {"candidate": model})
        failed, _, why = refused.value.message.partition(f"{told}: ")
        assert failed == "TFX's own executor failed at what ours does not support: "
        assert why == words


def test_a_batch_of_large_rows_has_fewer_of_them(tfx, monkeypatch, tmp_path):
    from slipway.components.evaluator import reading

    file = str(tmp_path / "rows.gz")
    with tfx.tf.io.TFRecordWriter(file, "GZIP") as writer:
        for _ in range(10):
            writer.write(b"x" * 1000)
    assert [len(batch) for batch in reading._batches(file)] == [10]
    monkeypatch.setattr(reading, "BATCH_BYTES", 4000)
    assert [len(batch) for batch in reading._batches(file)] == [4, 4, 2]
    monkeypatch.setattr(reading, "BATCH_BYTES", 1)
    assert [len(batch) for batch in reading._batches(file)] == [1] * 10


OWN = """
import apache_beam as beam
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.utils.keras_lib import tf_keras


class Gain(tfma.metrics.Metric):
    def __init__(self, name="gain", fare=1.0, called=""):
        super().__init__(computations, name=name, fare=fare, called=called)


def computations(name, fare, called, model_names=None, output_names=None, example_weighted=False, **_):
    keys = [
        tfma.metrics.MetricKey(
            called or name, model_name=each, output_name=output, example_weighted=example_weighted
        )
        for each in model_names or [""]
        for output in output_names or [""]
    ]
    return [
        tfma.metrics.MetricComputation(keys=[key], preprocessors=None, combiner=Sum(key, fare))
        for key in keys
    ]


class Sum(beam.CombineFn):
    def __init__(self, key, fare):
        self.key, self.fare = key, fare

    def create_accumulator(self):
        return 0.0

    def add_input(self, total, element):
        if self.fare < 0:
            raise ValueError("no fares")
        label, answer = map(self.of_key, (element.labels, element.predictions))
        weight = self.of_key(element.example_weights).item() if self.key.example_weighted else 1.0
        return total + self.fare * weight * float(label.item()) * float(answer.item())

    def of_key(self, values):
        for name in (self.key.model_name, self.key.output_name):
            values = values.get(name, values) if isinstance(values, dict) else values
        return values

    def merge_accumulators(self, totals):
        return sum(totals)

    def extract_output(self, total):
        return {self.key: total}


class Above(tf_keras.metrics.Metric):
    def __init__(self, name="above", cut=0.5, **more):
        super().__init__(name=name, **more)
        self.cut = cut
        self.total = self.add_weight("total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        above = tf.reshape(tf.cast(y_pred > self.cut, tf.float32), [-1])
        weights = 1.0 if sample_weight is None else tf.reshape(tf.cast(sample_weight, tf.float32), [-1])
        self.total.assign_add(tf.reduce_sum(above * weights))

    def result(self):
        return self.total

    def get_config(self):
        return {**super().get_config(), "cut": self.cut}


class MeanLabel(Above):
    pass
"""


@pytest.fixture
def with_own(monkeypatch, tmp_path):
    """The configuration of the binary case with metrics of one's own in it."""
    from slipway.components.model_gate.eval_config import eval_config

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_of_a_test.py").write_text(OWN)

    def made(slices, *, more=MappingProxyType({}), **own):
        named = {name: (f"own_of_a_test.{path}", settings) for name, (path, settings) in own.items()}
        return eval_config(**{"label": "label", "metrics": ["auc"], "slices": slices, "own": named, **more})

    return made


def test_metrics_of_one_s_own_stand_beside_the_others(alone, with_own, evaluate, tfx, monkeypatch, tmp_path):
    from slipway.components.model_gate.evaluation import read_evaluation
    from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
    from slipway.components.progress import PROGRESS_VARIABLE

    shown = tmp_path / "progress.json"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(shown))
    examples, models = alone
    config = with_own([["whole"], ["kind"]], gain=("Gain", {"fare": 2.0}), above=("Above", {"cut": 0.6}))
    folder = evaluate(examples, config, {**models, "baseline": models["candidate"]})
    _, _, label, answer, _ = CASES["binary"]
    rows = made_rows(1, 1, label=label, answer=answer)
    found = read_evaluation(str(folder))
    # The raw column's values: `new` names a feature as its column, whose codes say nothing.
    assert [name for name in found.candidate if "kind" in name] == ["kind=north", "kind=south"]
    for name, of_it in {
        "overall": rows,
        "whole=2": [row for row in rows if row["whole"] == [2]],
        "kind=north": [row for row in rows if row["kind"] == ["north"]],
    }.items():
        gain = sum(2 * row["label"][0] * row["candidate"][0] for row in of_it)
        above = sum(row["candidate"][0] > 0.6 for row in of_it)
        for model in (found.candidate, found.baseline):
            assert (model[name]["gain"], model[name]["above"]) == (pytest.approx(gain), above)
            assert model[name]["example_count"] == len(of_it)
    text = json.loads(shown.read_text())["text"]
    assert text.startswith("300 rows, 6 slices; gain, above by TFX's own executor, row by row: ")
    assert text.endswith(" s")
    assert sorted(path.name for path in folder.iterdir()) == [
        "attributions-00000-of-00001.tfrecord",
        "eval_config.json",
        "metrics-00000-of-00001.tfrecord",
        "plots-00000-of-00001.tfrecord",
        "validations.tfrecord",
    ]
    result = tfx.tfma.load_eval_result(str(folder), model_name="candidate")
    assert {"gain", "above", "auc"} <= result.get_metrics_for_slice().keys()
    assert {each.class_name for spec in result.config.metrics_specs for each in spec.metrics} >= {
        "Gain",
        "AUC",
    }
    # The gate judges them; their bounds are not known, which it says.
    limits = {"gain": Threshold(min=1e9, confidence=0.95), "above": Threshold(max_drop=0.5)}
    checks, notes = threshold_checks({"overall": limits}, found.slices(), min_slice_rows=1)
    assert [(check.metric, check.passed) for check in checks] == [("gain", False), ("above", True)]
    [note] = notes
    assert note.startswith("gain is judged without the confidence asked for on overall: ")


@pytest.mark.parametrize("runner", FIRST_RUNNER)
def test_a_metric_of_one_s_own_that_fails_is_reported_in_words(alone, with_own, evaluate, runner):
    from slipway.components.errors import ComponentError

    for settings, words in {
        -1.0: r"the metric gain \(own_of_a_test.Gain\) failed at own_of_a_test.py:\d+: ValueError: no fares",
        1.0: r"the metric gain \(own_of_a_test.Gain\) gives no result of that name; there is other",
    }.items():
        config = with_own([], gain=("Gain", {"fare": settings, "called": "other"}))
        with pytest.raises(ComponentError, match=words):
            evaluate(alone[0], config, alone[1], runner=runner)
    for path, words in {
        "Sum": r"the metric gain \(own_of_a_test.Sum\) is no metric",
        "None": r"own_of_a_test has no None",
    }.items():
        with pytest.raises(ComponentError, match=words):
            evaluate(alone[0], with_own([], gain=(path, {})), alone[1], runner=runner)


def test_own_metrics_of_several_outputs_count_rows_by_their_weights_in_slices_and_crosses(
    heads, with_own, evaluate
):
    from slipway.components.model_gate.evaluation import read_evaluation

    rows, examples, models = heads
    named = {f"{output}/{name}": path for output in HEADS for name, path in OF_AN_OUTPUT.items()}
    more = {"label": {"number": "n", "yes": "y"}, "metrics": ["yes/auc"], "weight": "weight"}
    folder = evaluate(examples, with_own([["text"], ["text", "whole"]], more=more, **named), models)
    found = read_evaluation(str(folder))
    for name, of_it in {
        "overall": rows,
        "text=a": [row for row in rows if row["text"] == ["a"]],
        "text=b, whole=0": [row for row in rows if row["text"] == ["b"]],
    }.items():
        for model, off in ((found.candidate, 0.0), (found.baseline, 0.25)):
            answers = {
                "number": [row["candidate"][0] + off for row in of_it],
                "yes": [min(row["baseline"][0] + off, 1.0) for row in of_it],
            }
            for output, each in answers.items():
                weighed = [
                    (row["weight"][0], row[output][0], got) for row, got in zip(of_it, each, strict=True)
                ]
                gain = sum(weight * label * got for weight, label, got in weighed)
                above = sum(weight * (got > 0.5) for weight, _, got in weighed)
                assert model[name][f"{output}/gain"] == pytest.approx(gain, rel=1e-5)
                assert model[name][f"{output}/above"] == pytest.approx(above, rel=1e-5)
    # Only our own metrics have bounds.
    assert found.spreads["overall"].keys() == {"yes/auc"}


def test_own_metrics_leave_out_rows_of_no_weight_whose_label_is_no_number(
    heads, with_own, evaluate, tmp_path
):
    from slipway.components.model_gate.evaluation import read_evaluation
    from slipway.pipeline.testing import tiny_examples

    rows, examples, models = heads
    unlabelled = [{**row, "number": [math.nan]} if row["weight"] == [0.0] else row for row in rows]
    assert unlabelled != rows
    config = with_own(
        [["text"]],
        more={"label": {"number": "n", "yes": "y"}, "metrics": ["yes/auc"], "weight": "weight"},
        **{f"number/{name}": path for name, path in OF_AN_OUTPUT.items()},
    )
    without = tiny_examples({"train": [], "eval": unlabelled}, into=tmp_path)
    found, wanted = (read_evaluation(str(evaluate(each, config, models))) for each in (without, examples))
    for name, values in wanted.candidate.items():
        for metric in ("number/gain", "number/above"):
            assert found.candidate[name][metric] == values[metric]


def test_own_metrics_of_both_models_are_measured_with_the_candidate_s_weights(
    saved, with_own, evaluate, tmp_path
):
    from slipway.components.model_gate.evaluation import read_evaluation
    from slipway.pipeline.testing import tiny_examples

    _, _, label, answer, _ = CASES["binary"]
    rows = made_rows(1, 1, label=label, answer=answer, count=40)
    examples = tiny_examples({"train": [], "eval": rows}, into=tmp_path)
    alike = {"outputs": 1, "labels": 1}
    models = {
        "candidate": saved(tmp_path / "candidate", "candidate", **alike),
        "baseline": saved(tmp_path / "baseline", "candidate", weighed_by="what_no_row_has", **alike),
    }
    config = with_own([], more={"weight": "weight"}, above=("Above", {"cut": 0.6}))
    found = read_evaluation(str(evaluate(examples, config, models)))
    above = sum(row["weight"][0] for row in rows if row["candidate"][0] > 0.6)
    for model in (found.candidate, found.baseline):
        assert model["overall"]["above"] == pytest.approx(above)


def test_metrics_of_several_outputs_are_kept_by_output(heads, evaluate):
    from slipway.components.evaluator.executor import _overall_metrics
    from slipway.components.model_gate.eval_config import eval_config
    from slipway.components.model_gate.evaluation import read_evaluation

    _, examples, models = heads
    names = ["number/mean_absolute_error", "yes/mean_absolute_error"]
    config = eval_config(label={"number": "n", "yes": "y"}, metrics=names, slices=[])
    folder = str(evaluate(examples, config, models))
    overall = read_evaluation(folder).candidate["overall"]
    assert _overall_metrics(folder) == {name: overall[name] for name in ("example_count", *names)}


OF_AN_OUTPUT = {"gain": ("Gain", {}), "above": ("Above", {})}


@pytest.mark.external  # TFX's own executor; the same words of ours are seen above
def test_own_metrics_are_checked_wherever_the_stock_executor_computes_them(alone, with_own, evaluate, tfx):
    from slipway.components.errors import ComponentError
    from slipway.components.evaluator.stock_executor import CheckedExecutor

    def told(config, **how):
        with pytest.raises(ComponentError) as refused:
            evaluate(*(alone[0], config, alone[1]), **how)
        return refused.value.message

    taken = with_own([], above=("MeanLabel", {}))
    words = "the metric above (own_of_a_test.MeanLabel) has the name of one of TensorFlow Model Analysis, "
    settings = with_own([], gain=("Gain", {"called": "other"}))
    failing = with_own([], gain=("Gain", {"fare": -1.0}))
    for config in (taken, settings, failing):
        # A metric of Keras with settings of its own: the whole evaluation goes to TFX's executor.
        config.metrics_specs[0].metrics.add(class_name="AUC", config='{"name": "pr", "curve": "PR"}')
    for how in ({}, {"checked": CheckedExecutor}):
        assert told(taken, **how).startswith(words)
    assert "failed at own_of_a_test.py:" in told(failing)
    assert told(settings, checked=CheckedExecutor).startswith(
        "the metric gain (own_of_a_test.Gain) gives no result of that name; there is "
    )
    two = with_own([], gain=("Gain", {"called": "auc"}), above=("Above", {}))
    # Under the name that it should have it also gives nothing, which is told first; of no name it may.
    for metric in two.metrics_specs[0].metrics:
        if metric.class_name == "Gain":
            metric.config = '{"called": "auc"}'
    assert told(two).endswith("gives a result called auc, which is the name of another metric")


def test_own_metrics_are_taken_out_and_what_applies_to_them_stays(tfx):
    from slipway.components.evaluator.own_metrics import OwnMetric, apart, own_metrics

    own = tfx.tfma.MetricConfig(class_name="Gain", module="mine.metrics", config='{"name": "gain"}')
    auc = tfx.tfma.MetricConfig(class_name="AUC", config='{"name": "auc"}')
    of_the_gate = tfx.tfma.MetricConfig(
        class_name="PredictionCountsMetric", module="slipway.components.model_gate.prediction_counts_metric"
    )
    judged = tfx.tfma.MetricConfig(class_name="Gain", module="mine.metrics")
    judged.threshold.value_threshold.lower_bound.value = 1

    def config(*specs):
        named = [tfx.tfma.MetricsSpec(metrics=list(each), output_names=["a"]) for each in specs]
        return tfx.tfma.EvalConfig(metrics_specs=named)

    rest, apart_from_it = apart(config([auc, own, of_the_gate], [own], [auc]))
    assert rest == config([auc, of_the_gate], [auc])
    assert apart_from_it == config([own], [own])
    of_it = OwnMetric("gain", "mine.metrics", "Gain", {"name": "gain"}, "a")
    assert own_metrics(apart_from_it) == [of_it] * 2
    assert [each.class_name for each in own_metrics(config([auc, own, of_the_gate], [judged]))] == [
        "Gain"
    ] * 2
    apart_from_it.model_specs.add(name="old")
    apart_from_it.model_specs.add(name="new")
    assert own_metrics(apart_from_it)[0] == replace(of_it, models=("old", "new"))
    for metrics in ([auc, of_the_gate], [auc, judged], []):
        assert apart(config(metrics)) == (config(metrics), None)


def test_a_part_that_is_done_again_is_asked_of_the_models_that_are_there(alone, evaluate, tfx, monkeypatch):
    from slipway.components import beam_engine_workers, shards
    from slipway.components.evaluator.reading import LoadedModels

    load, tally, loaded, asked = tfx.tf.saved_model.load, LoadedModels.tally, [], []

    def counted(folder):
        loaded.append(folder)
        return load(folder)

    def short_of_memory(models, file, place, into):
        asked.append((place, models.most_rows))
        if asked == [(0, 4096)]:
            raise MemoryError
        yield from tally(models, file, place, into)

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    monkeypatch.setattr(beam_engine_workers, "process_count", lambda *_, **__: 1)
    whole = content(evaluate(alone[0], config_of("binary", []), alone[1]))
    monkeypatch.setattr(tfx.tf.saved_model, "load", counted)
    monkeypatch.setattr(LoadedModels, "tally", short_of_memory)
    again = content(evaluate(alone[0], config_of("binary", []), alone[1]))
    assert len(loaded) == 1
    assert sorted(asked) == [(0, 512), (0, 4096), (1, 512), (2, 512)]
    assert repr(again) == repr(whole)

import json

import pytest

from slipway.components.evaluator.request import NotOursError, read_request

MODEL = {
    "signature_name": "serving_default",
    "label_key": "big_tip",
    "preprocessing_function_names": ["transform_features"],
}
METRICS = [
    {"class_name": "ExampleCount"},
    {"class_name": "AUC", "config": json.dumps({"name": "auc"})},
    {
        "class_name": "LabelStatisticsMetric",
        "module": "slipway.components.model_gate.label_statistics_metric",
    },
    {
        "class_name": "PredictionCountsMetric",
        "module": "slipway.components.model_gate.prediction_counts_metric",
    },
]


def config(**changes):
    return {
        "model_specs": [{**MODEL, "name": "candidate"}, {**MODEL, "name": "baseline", "is_baseline": True}],
        "slicing_specs": [{}, {"feature_keys": ["hour", "company"]}, {"feature_keys": ["company", "hour"]}],
        "metrics_specs": [{"metrics": METRICS, "model_names": ["candidate", "baseline"]}],
        **changes,
    }


def with_metric(**metric):
    return config(metrics_specs=[{"metrics": [*METRICS, metric]}])


def weighted(counts, others):
    """With weights; how the counts and the other metrics take them."""
    models = config()["model_specs"]
    return config(
        model_specs=[{**model, "example_weight_key": "w"} for model in models],
        metrics_specs=[
            {"metrics": [METRICS[0], METRICS[3]], "example_weights": counts},
            {"metrics": METRICS[1:3], **({"example_weights": others} if others else {})},
        ],
    )


HEAD = {**{key: MODEL[key] for key in MODEL if key != "label_key"}, "label_keys": {"b": "y", "a": "x"}}


def with_heads(*specs, heads=HEAD):
    models = [{**heads, "name": "candidate"}, {**heads, "name": "baseline", "is_baseline": True}]
    return config(model_specs=models, metrics_specs=list(specs))


MEAN = {"metrics": METRICS[1:2], "output_names": ["a", "b"], "aggregate": {"macro_average": True}}
COUNT, OF_A, OF_B = (
    {"metrics": METRICS[:1]},
    *({"metrics": METRICS[1:], "output_names": [output]} for output in "ab"),
)


def test_every_output_has_metrics_of_its_own():
    found = read_request(with_heads(COUNT, OF_A, OF_B))
    assert [(model.name, model.output, model.label) for model in found.models] == [
        ("candidate", "a", "x"), ("candidate", "b", "y"), ("baseline", "a", "x"), ("baseline", "b", "y")
    ]  # fmt: skip
    assert found.metrics == {"a/auc": "AUC", "b/auc": "AUC"}
    assert found.metrics_of("b") == {"b/auc": "AUC"}
    assert (found.example_count, found.label_statistics, found.answers) == ("example_count", True, True)


def test_a_mean_over_outputs_stands_beside_the_metric_of_each():
    each = [{"metrics": METRICS[1:2], "output_names": [name]} for name in "ab"]
    asked = read_request(with_heads(COUNT, *each, MEAN))
    assert (set(asked.metrics), asked.averages) == ({"a/auc", "b/auc"}, {"auc": "AUC"})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (with_heads(COUNT, OF_A), "it has LabelStatisticsMetric of some outputs only"),
        (with_heads({"metrics": METRICS}), "it has metrics of other outputs than those with a label"),
        (
            with_heads({**OF_A, "output_names": ["c"]}),
            "it has metrics of other outputs than those with a label",
        ),
        (with_heads({**COUNT, "output_names": ["a"]}), "it counts the rows of an output"),
        (
            config(model_specs=[HEAD, {**MODEL, "is_baseline": True, "name": "baseline"}]),
            "its models have labels of different outputs",
        ),
        (
            with_heads(COUNT, {**MEAN, "aggregate": {"weighted_macro_average": True}}),
            "it aggregates otherwise than by the mean over all outputs",
        ),
        (with_heads(COUNT, MEAN), "it has the mean of auc over outputs that it is not computed of"),
    ],
)
def test_other_uses_of_outputs_are_left_to_tfx(given, reason):
    with pytest.raises(NotOursError) as told:
        read_request(given)
    assert str(told.value) == reason


@pytest.mark.parametrize("others", [None, {"weighted": True}])
def test_rows_and_answers_are_counted_and_the_rest_is_weighted(others):
    found = read_request(weighted({"unweighted": True}, others))
    assert found.weight == "w"
    assert [found.is_weighted(name) for name in ("auc", "label_rows", "example_count")] == [True, True, False]


def test_what_a_workload_asks_for_is_known():
    found = read_request(config())
    assert [(model.name, model.label, model.is_baseline) for model in found.models] == [
        ("candidate", "big_tip", False),
        ("baseline", "big_tip", True),
    ]
    assert found.slices == ((), ("company", "hour")), "crosses in another order are the same"
    assert found.columns == ("company", "hour")
    assert (found.metrics, found.example_count) == ({"auc": "AUC"}, "example_count")
    assert found.label_statistics
    assert found.answers


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (with_metric(class_name="Gain", module="my.metrics"), "it has the metric my.metrics.Gain"),
        (with_metric(class_name="NDCG", config='{"name": "ndcg"}'), "it has the metric NDCG"),
        (
            with_metric(class_name="AUC", config='{"name": "pr", "curve": "PR"}'),
            "it has AUC with settings of its own",
        ),
        (with_metric(class_name="Precision"), "it has Precision with settings of its own"),
        (with_metric(class_name="Precision", config="null"), "it has Precision with settings of its own"),
        (with_metric(class_name="Recall", config='{"name": "auc"}'), "it has two metrics called auc"),
        (with_metric(class_name="ExampleCount", config='{"name": "rows"}'), "it has ExampleCount twice"),
        (with_metric(class_name="Recall", config='{"name": ""}'), "it has Recall with the name ''"),
        (with_metric(class_name="Recall", config='{"name": "_r"}'), "it has Recall with the name '_r'"),
        (with_metric(class_name="Recall", config='{"name": "a/r"}'), "it has Recall with the name 'a/r'"),
        (
            with_metric(class_name="Recall", config='{"name": "answers"}'),
            "it has Recall with the name 'answers'",
        ),
        (
            with_metric(class_name="Recall", config='{"name": "label_mean"}'),
            "it has Recall with the name 'label_mean'",
        ),
        (
            with_metric(
                class_name="Recall", config='{"name": "r"}', threshold={"value_threshold": {}, "x": 1}
            ),
            "it has metrics.threshold",
        ),
        (config(options={"compute_confidence_intervals": {"value": True}}), "it has eval_config.options"),
        (config(cross_slicing_specs=[{"baseline_spec": {}}]), "it has eval_config.cross_slicing_specs"),
        (config(slicing_specs=[{"feature_values": {"hour": "7"}}]), "it has slicing_specs.feature_values"),
        (config(slicing_specs=[{"feature_keys": ["a", "a"]}]), "it slices by one column twice: a, a"),
        (config(model_specs=[{**MODEL, "signature_name": "predict"}]), "it asks for the signature predict"),
        (
            config(model_specs=[{**MODEL, "preprocessing_function_names": []}]),
            "its labels do not come from the signature transform_features",
        ),
        (
            config(model_specs=[{**MODEL, "example_weight_key": "w"}], metrics_specs=[{"metrics": METRICS}]),
            "it has ExampleCount with weights",
        ),
        (weighted({"unweighted": True}, {"unweighted": True}), "it has AUC without weights"),
        (
            weighted({"unweighted": True}, {"weighted": True, "unweighted": True}),
            "it has metrics both with weights and without, or neither",
        ),
        (
            config(model_specs=[{**MODEL, "example_weight_key": "w"}, {**MODEL, "is_baseline": True}]),
            "it has weights of one of the models only",
        ),
        (config(model_specs=[{**MODEL, "label_key": ""}]), "it names no label"),
        (config(model_specs=[]), "it names other models than a candidate and a baseline"),
        (
            config(metrics_specs=[{"metrics": METRICS, "model_names": ["candidate"]}]),
            "it has metrics of one of the models only",
        ),
        (
            config(metrics_specs=[{"metrics": METRICS, "binarize": {"class_ids": [1]}}]),
            "it has metrics_specs.binarize",
        ),
        (config(metrics_specs=[]), "it names no metrics"),
    ],
)
def test_anything_else_is_left_to_tfx_with_the_reason(given, reason):
    with pytest.raises(NotOursError) as told:
        read_request(given)
    assert str(told.value) == reason

"""When TFX's own executor has to do what a StatisticsGen is asked for."""

import pytest

from slipway.components.statistics_gen.executor_choice import reason_for_stock_executor

OURS = {
    "examples": ("FORMAT_TF_EXAMPLE", "tfrecords_gzip"),
    "has_patterns": False,
    "splits": ["train", "eval"],
    "parameters": {"stats_options_json": "{}", "exclude_splits": "[]", "sharded_stats_output": 0},
    "options": {"label_feature": None, "slice_sqls": False},
}


def test_ours_does_what_a_workload_asks_for():
    assert reason_for_stock_executor(**OURS) is None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"examples": ("FORMAT_PROTO", "tfrecords_gzip")}, "the examples are FORMAT_PROTO in tfrecords_gzip"),
        ({"has_patterns": True}, "the examples have a pattern for each split"),
        ({"splits": []}, "no split is left"),
        ({"parameters": {"sharded_stats_output": 1}}, "sharded_stats_output is set"),
        ({"options": {"label_feature": "tips"}}, "the lift of values is requested"),
        ({"options": {"slice_sqls": True}}, "slices by SQL are requested"),
        (
            {"options": {"two_schemas": True}},
            "there is one schema in the StatsOptions and another as an input",
        ),
        ({"options": {"derived_features": True}}, "the schema has features that are derived from others"),
        ({"options": {"enable_semantic_domain_stats": True}}, "semantic domains are requested"),
    ],
)
def test_what_it_does_not_know_is_left_to_tfx(changed, why):
    assert reason_for_stock_executor(**{**OURS, **changed}) == why

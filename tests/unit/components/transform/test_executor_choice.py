"""When TFX's own executor has to do what a Transform is asked for."""

import pytest

from slipway.components.transform.executor_choice import reason_for_stock_executor

OURS = {
    "examples": [("FORMAT_TF_EXAMPLE", "tfrecords_gzip")],
    "outputs": ["examples", "schema", "transform_graph", "transformed_examples"],
    "parameters": {
        "preprocessing_fn": "it.preprocessing_fn",
        "disable_statistics": 1,
        "force_tf_compat_v1": 0,
        "custom_config": "null",
        "module_file": None,
    },
}


def test_ours_does_what_a_workload_asks_for():
    assert reason_for_stock_executor(**OURS) is None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"examples": OURS["examples"] * 2}, "there are 2 artifacts of examples"),
        ({"examples": [("FORMAT_PROTO", "tfrecords_gzip")]}, "are FORMAT_PROTO in tfrecords_gzip"),
        ({"examples": [("FORMAT_TF_EXAMPLE", "FORMAT_PARQUET")]}, "FORMAT_TF_EXAMPLE in FORMAT_PARQUET"),
        ({"outputs": ["updated_analyzer_cache"]}, "an analyzer cache is requested"),
        ({"parameters": {"disable_statistics": 0}}, "statistics are requested"),
        ({"parameters": {"disable_statistics": 1, "force_tf_compat_v1": 1}}, "force_tf_compat_v1 is set"),
        ({"parameters": {"disable_statistics": 1, "module_file": "it.py"}}, "module_file is set"),
        ({"parameters": {"disable_statistics": 1, "of_a_later_tfx": True}}, "of_a_later_tfx is set"),
    ],
)
def test_what_ours_does_not_know_is_tfx_s_to_do(changed, why):
    assert why in reason_for_stock_executor(**{**OURS, **changed})

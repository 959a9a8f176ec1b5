"""The settings of a training, as the workload file has them and as the Trainer takes them."""

import pytest

from slipway.pipeline.config.train import TrainConfig

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_run_fn_knows_each_setting_that_it_is_given_and_lacks_none():
    from slipway.components.trainer.job_layout import read_settings

    settings = TrainConfig(model="a.model.build_model").run_fn_settings()
    given = settings | {
        "label": "tip",
        "raw_label": "tips",
        "weight": None,
        "group": None,
        "pass_through": [],
    }  # fmt: skip  (as slipway.pipeline.dag adds them)
    assert read_settings(given) == (given, None)

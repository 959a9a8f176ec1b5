"""Class weights reach the trainer by the codes of the classes."""

import pytest

from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.wiring.class_weights import class_weights


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ((), None),
        (("train.class_weights=balanced",), "balanced"),
        (("train.class_weights={'1': 3, '0': 0.5}",), {"1": 3.0, "0": 0.5}),
        (("train.class_weights={1: 3}",), {"1": 3.0}),
        (("transform.classes=['no', 'yes']", "train.class_weights={'yes': 3}"), {"1": 3.0}),
    ],
)
def test_names_of_classes_become_their_codes(project, sets, expected):
    file = project / "workloads/taxi/workload.yaml"
    config = load_workload(file, sets=read_assignments(sets), root=project)
    assert class_weights(config) == expected

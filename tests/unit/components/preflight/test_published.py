"""The roofline against step times that others have measured and published.

`compiled` is what libtpu 0.0.42.1 counted of `preflight_models.resnet50` for the same slice and global batch
in bfloat16; tests/integration/preflight counts one of them anew. Keras' ResNet50 has its strides in the
first convolution of a block (v1), what was measured in the second (v1.5), with some more operations.
"""

import json

import pytest

from slipway.components.preflight.chips import CHIPS
from slipway.components.preflight.question_and_answer import Compiled, Slice
from slipway.components.preflight.roofline import estimate


@pytest.fixture(scope="module")
def published(project):
    return json.loads((project / "tests/data/preflight/published_steps.json").read_text(encoding="utf-8"))


def roofline_s(row) -> float:
    generation = row["slice"].partition("-")[0]
    wanted = Slice(name=row["slice"], generation=generation, devices=row["devices"])
    step = Compiled(batch_size=row["batch_size"], **row["compiled"])
    return estimate(step, wanted, CHIPS[generation]).step_s


def test_roofline_is_never_slower_than_what_was_measured(published):
    assert published
    for row in published:
        assert roofline_s(row) <= row["published_step_s"], row["slice"]


def test_roofline_is_no_excuse_for_any_number_at_all(published):
    for row in published:
        assert roofline_s(row) > row["published_step_s"] / 4, row["slice"]


def test_docs_show_the_same_numbers(published, project):
    page = (project / "docs/tpu.md").read_text(encoding="utf-8")
    for row in published:
        assert f"| {row['slice']}, {row['batch_size']} | {row['published_step_s'] * 1e3:.0f} ms |" in page
        assert f"| {roofline_s(row) * 1e3:.0f} ms |" in page

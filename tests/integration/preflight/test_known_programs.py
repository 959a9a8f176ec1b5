"""What the TPU's compiler counts and what is counted by hand: memory within 5%, operations within 2%."""

import json
import os
import subprocess

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.question_and_answer import Question, Slice

pytestmark = [pytest.mark.slow, pytest.mark.external]

N, IMAGES, ROWS, WIDTH = 4096, 32, 512, 512
SIDE, FILTERS = 56, 128
HEADS, HEAD_SIZE, SEQUENCES = 8, 64, 8
# By hand: the whole layer's products, without what it does element by element.
OPERATIONS = {
    "matmul_float32": 2 * N**3,
    "matmul_bfloat16": 2 * N**3,
    "dense": 2 * 1024 * 2048 * 2048,
    "convolution": 2 * IMAGES * (SIDE - 2) ** 2 * 9 * FILTERS**2,
    # Four projections of the values; then each place by each other, once for the weights and once with them.
    "attention": SEQUENCES * (4 * 2 * ROWS * WIDTH * HEADS * HEAD_SIZE + 2 * 2 * HEADS * ROWS**2 * HEAD_SIZE),
}
BYTES = {"matmul_float32": 3 * N**2 * 4, "matmul_bfloat16": 3 * N**2 * 2}


@pytest.fixture(scope="module")
def counted(project, tpu_python):
    """What the compiler says of the programs of tests/data/preflight/known_programs.py, by name."""
    done = subprocess.run(
        [tpu_python, "-W", "ignore", str(project / "tests/data/preflight/known_programs.py")],
        env={**os.environ, "PYTHONPATH": str(project), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_the_formula(counted, name):
    assert counted[name]["flops"] == pytest.approx(OPERATIONS[name], rel=0.02)


@pytest.mark.parametrize("name", BYTES)
def test_memory_of_a_product_is_that_of_its_matrices(counted, name):
    assert counted[name]["peak_bytes"] == pytest.approx(BYTES[name], rel=0.05)


def test_step_of_a_dense_net_with_adam_holds_and_computes_what_can_be_counted(asked, tpu_python):
    batch, width, depth = 1024, 2048, 8
    features = tuple(
        {"name": name, "dtype": "float32", "shape": [width], "categories": None} for name in ("x", "y")
    )
    chip = Slice(
        name="v5e-1", generation="v5e", devices=1, topology="1x1", memory_bytes=CHIPS["v5e"].usable_bytes
    )
    asked_for = Question(
        slice=chip,
        model="preflight_models.eight_dense",
        hyperparameters={},
        features=features,
        label="y",
        batch_size=batch,
        precision="float32",
    )

    (answer,) = asked(tpu_python, [asked_for])

    weights = depth * (width * width + width)
    assert answer.parameters == weights
    # The weights and Adam's two moments of each; the input, what each layer gives, and the label.
    held = 4 * (3 * weights + (depth + 2) * batch * width)
    assert answer.step.peak_bytes == pytest.approx(held, rel=0.05)
    # Forward, to the values and to the weights; the input needs no gradient.
    computed = 2 * batch * width**2 * (3 * depth - 1)
    assert answer.step.flops == pytest.approx(computed, rel=0.02)

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.finding import Evidence
from slipway.components.preflight.question_and_answer import Answer, Compiled, Layer, Question, Slice
from slipway.components.preflight.result import Preflight
from slipway.components.preflight.verdict import Training, judge

V5E = Slice(
    name="v5e-8",
    generation="v5e",
    devices=8,
    topology="2x4",
    memory_bytes=CHIPS["v5e"].usable_bytes,
    machine={"machineType": "ct5lp-hightpu-8t", "tpuTopology": "2x4"},
)


@pytest.fixture
def case() -> Callable[..., Evidence]:
    """A case that nothing is wrong with; keywords of `Question`, `Answer` and `Evidence` change it."""

    def make(**changes: Any) -> Evidence:
        question = Question(
            slice=V5E, model="a.b", hyperparameters={}, features=(), label="y", batch_size=1024
        )
        layers = (
            Layer(name="hidden", kind="Dense", matrices=((256, 512),)),
            Layer(name="output", kind="Dense", matrices=((512, 1),), is_output=True),
        )
        step = Compiled(batch_size=1024, peak_bytes=2**20, flops=1e9, moved_bytes=1e7)
        answer = Answer(step=step, target="tpu", layers=layers, variables=("hidden/kernel",))
        plain = Evidence(
            question=question, answer=answer, backend="jax", has_tensorflow=True, interpreter="python"
        )

        def changed(value: Any) -> Any:
            return replace(value, **{name: new for name, new in changes.items() if hasattr(value, name)})

        own = {name: new for name, new in changes.items() if name not in ("question", "answer")}
        assert all(hasattr(plain, name) or hasattr(question, name) or hasattr(answer, name) for name in own)
        return replace(changed(plain), question=changed(question), answer=changed(answer))

    return make


@pytest.fixture
def result(case: Callable[..., Evidence]) -> Callable[..., Preflight]:
    """The result for one slice; keywords change the answer."""

    def make(**changes: Any) -> Preflight:
        made = case(**changes)
        verdict = judge(made.question, made.answer, Training(backend="jax", epochs=2, train_rows=5000))
        at = "2026-11-22T02:00:00+00:00"
        return Preflight(workload="taxi", verdicts=(verdict,), made_at=at, region="us-central1")

    return make

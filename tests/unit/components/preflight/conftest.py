from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.finding import Evidence, Training
from slipway.components.preflight.question_and_answer import Answer, Compiled, Layer, Question, Slice
from slipway.components.preflight.result import Preflight
from slipway.components.preflight.verdict import judge

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
    """A case with nothing wrong; fields of `Question`, its `Slice`, `Answer`, `Training` and `Evidence`."""

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
        training = Training(backend="jax", epochs=1)
        plain = Evidence(question=question, answer=answer, training=training, has_libtpu=True)

        def changed(value: Any) -> Any:
            return replace(
                value, **{each.name: changes[each.name] for each in fields(value) if each.name in changes}
            )

        own = {name: new for name, new in changes.items() if name not in ("question", "answer")}
        of_any = (plain, question, question.slice, answer, training)
        assert all(any(hasattr(each, name) for each in of_any) for name in own)
        question = changed(question)
        question = replace(question, slice=changed(question.slice))
        return replace(changed(plain), question=question, answer=changed(answer), training=changed(training))

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

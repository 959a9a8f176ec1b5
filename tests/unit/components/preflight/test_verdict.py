"""What the answer of the compiler comes to for a training."""

import json
from dataclasses import asdict, replace

import pytest

from slipway.components.preflight.advice import slice_lines
from slipway.components.preflight.chip_specs import Price
from slipway.components.preflight.finding import Training
from slipway.components.preflight.question_and_answer import Compiled
from slipway.components.preflight.verdict import judge
from slipway.components.typed_json import typed


def test_examples_of_the_training_are_those_in_full_batches_times_epochs(result):
    assert result().verdicts[0].examples == 2 * (4 * 1024)
    assert result(batch_size=5008).verdicts[0].examples is None


def test_rate_that_the_files_must_deliver_is_reported_where_their_bytes_and_rows_are_known(case):
    made = case()
    files = Training(backend="jax", epochs=2, train_rows=5000, train_bytes=5000 * 2**10)

    verdict = judge(made.question, made.answer, files)

    rate = verdict.to_json()["estimate"]["input_bytes_per_s"]
    assert rate == pytest.approx(verdict.estimate.examples_per_s * 2**10)
    assert any(f": {rate / 2**20:,.0f} MiB/s of its files" in line for line in slice_lines(verdict))
    for other in ({"train_rows": None}, {"input_cache": "memory"}, {"input_cache": "file"}):
        unknown = judge(made.question, made.answer, replace(files, **other))
        assert unknown.to_json()["estimate"]["input_bytes_per_s"] is None


@pytest.mark.parametrize(
    ("step", "rules"),
    [
        (Compiled(batch_size=1024), []),
        (Compiled(batch_size=1024, error="no strings"), ["does_not_compile"]),
        (Compiled(batch_size=1024, error="Ran out", is_out_of_memory=True), ["does_not_fit"]),
    ],
)
def test_only_a_step_that_does_not_compile_or_fit_stops_a_run(result, step, rules):
    assert [each.rule for each in result(step=step, backend="torch").stopping] == rules


def test_a_compiler_that_gave_no_answer_is_a_note_and_no_recommendation(case):
    asked = case().question
    training = Training(backend="jax", epochs=1)

    verdict = judge(asked, None, training, unanswered=("it was not compiled within 5 s", "--limit 60"))

    assert [(each.rule, each.severity) for each in verdict.findings] == [("not_compiled", "note")]
    assert not verdict.can_train


def test_what_is_known_of_a_training_travels_as_json():
    own = {"v6e": Price(usd=2.1, month="2026-11")}
    training = Training(backend="jax", epochs=3, train_rows=7, prices=own)

    assert typed(Training, json.loads(json.dumps(asdict(training)))) == training

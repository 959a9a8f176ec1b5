from dataclasses import replace

import pytest

from slipway.components.preflight.question_and_answer import Trait
from slipway.components.preflight.step_rules import findings
from slipway.components.preflight.trait_rules import WORDS


@pytest.mark.parametrize("kind", WORDS)
def test_each_trait_has_one_finding_with_its_place_and_its_numbers(case, kind):
    (found,) = findings(case(traits=(Trait(kind=kind, where="the layer 'culprit'", detail="THIS"),)))

    assert (found.rule, found.severity) == (kind, "warning")
    assert found.message.startswith("the layer 'culprit': ")
    assert ("THIS" in found.message) == ("{detail}" in WORDS[kind].message)
    assert found.remedy
    assert "{" not in found.message + found.remedy
    assert "shall" not in found.remedy
    assert "belong into" not in found.remedy


def test_a_program_of_each_trace_is_reported_in_plain_words(case):
    (found,) = findings(case(traits=(Trait(kind="each_trace"),)))

    assert found.message.startswith("each trace gives a different program: ")


def test_a_train_step_of_jax_is_an_error_where_tensorflow_trains(case):
    traits = (Trait(kind="jax_train_step", where="Own"),)

    assert findings(case(traits=traits)) == ()
    [found] = [
        each for each in findings(case(traits=traits, backend="tensorflow")) if each.rule == "train_step"
    ]
    assert found.severity == "error"
    assert found.message.startswith("the train_step of Own is written for JAX: ")
    assert "train.backend=jax" in found.remedy


def test_batch_normalisation_by_replica_is_reported_where_tensorflow_trains(case):
    traits = (Trait(kind="batch_norm", where="norm"),)

    assert findings(case(traits=traits)) == ()
    found = [
        each for each in findings(case(traits=traits, backend="tensorflow")) if each.rule == "batch_norm"
    ]
    assert "8 replicas normalises its own 128 examples" in found[0].message
    one = replace(case().question.slice, devices=1)
    alone = findings(case(traits=traits, backend="tensorflow", slice=one))
    assert [each for each in alone if each.rule == "batch_norm"] == []

"""Rules about traits: what no compiler refuses, but its author may not intend, or pays for. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from slipway.components.preflight.finding import Evidence, Finding, Severity
from slipway.components.trainer.buckets import MASK


class Words(NamedTuple):
    """The words of a finding about a trait; {where} and {detail} stand for the trait's own."""

    severity: Severity
    message: str
    remedy: str


_NO_LOSS = "a loss has no weights: compute_loss of the model's own class, with one of the model"
WORDS: Mapping[str, Words] = {
    "cast": Words(
        "warning",
        "{detail}: the step asks for a type that JAX silently replaces: no TPU has it",
        "ask for the smaller type; numbers that do not fit into it belong in preprocessing_fn",
    ),
    "constant": Words(
        "warning",
        "a constant of {detail} is part of the program: each device holds it in addition to the weights, "
        "and it is compiled again with the program",
        "a weight that is not trained: add_weight(trainable=False), or an Embedding with trainable=False",
    ),
    "same_noise": Words(
        "warning",
        "its random numbers come from a fixed seed: they are the same in each step",
        "keras.random with a SeedGenerator that the layer keeps; make what must stay constant a weight",
    ),
    "each_trace": Words(
        "warning",
        "each trace gives a different program: Python or NumPy decided something (a random number, the time, "
        "a counter), and that stays the same in all steps",
        "keras.random with a SeedGenerator for random numbers, a weight (add_weight) for what changes",
    ),
    "wide_integers": Words(
        "warning",
        "the integer {detail} has more than 32 bits, and JAX silently drops the upper ones: no TPU has int64",
        "smaller codes (hash buckets, a vocabulary), made in preprocessing_fn",
    ),
    "side_effect": Words(
        "warning",
        "its value {detail} changes when the step is traced: that is once, and not in each step",
        f"a weight (add_weight, assign), which the program changes in each step; {_NO_LOSS}",
    ),
    "leaked_tracer": Words(
        "warning",
        "its value {detail} keeps a tensor of a trace, which has no value after it (a leaked tracer)",
        f"return it, or keep it in a weight (add_weight, assign); {_NO_LOSS}",
    ),
    "run_eagerly": Words(
        "warning",
        "model.compile has run_eagerly: each operation goes to the device by itself, the estimate does not "
        "hold",
        "run_eagerly=False, once the model is debugged",
    ),
    "frozen": Words(
        "warning",
        "no weight of the model can be trained: each step computes, and none learns",
        "trainable = True for the layers that should learn, before model.compile",
    ),
    "long_loop": Words(
        "warning",
        "{detail} one after the other in a step: each waits for the last one, so the real time is far above "
        "the estimate, which counts operations",
        "shorter sequences, or layers that see all of a sequence at once: Conv1D, MultiHeadAttention",
    ),
    "padding_counts": Words(
        "warning",
        "the model's answer to a made-up row changes by {detail} if its padding is cut off; the training "
        "refuses such a model when it starts",
        MASK,
    ),
    "whole_table": Words(
        "warning",
        "each step reads and writes {detail} that it looks up",
        "an optimizer that keeps less for each weight (adafactor, sgd), fewer rows (hashing), a larger batch",
    ),
}
"""The words by kind of trait. Kinds whose finding depends on more than the trait have a separate rule."""


def _traits(evidence: Evidence) -> Iterator[Finding]:
    if evidence.answer is None:
        return
    # The rule "float64" has already reported layers that compute in float64.
    named = [each.name.rpartition("/")[2] for each in evidence.answer.layers if each.dtype == "float64"]
    wide = [f"the layer {name!r} " for name in named]
    for trait in evidence.answer.traits:
        if trait.kind == "cast" and trait.where.startswith(tuple(wide)):
            continue
        if words := WORDS.get(trait.kind):
            message = words.message.format(where=trait.where, detail=trait.detail)
            yield Finding(
                rule=trait.kind,
                severity=words.severity,
                message=f"{trait.where}: {message}" if trait.where else message,
                remedy=words.remedy,
            )


def _batch_norm(evidence: Evidence) -> Iterator[Finding]:
    # The question's replicas count: the answer may be about a CPU, which has one copy of the model.
    if evidence.backend != "tensorflow" or evidence.answer is None or evidence.question.replicas == 1:
        return
    for trait in evidence.answer.traits:
        if trait.kind == "batch_norm":
            each = evidence.question.batch_size // evidence.question.replicas
            yield Finding(
                rule="batch_norm",
                severity="note",
                message=f"{trait.where}: with train.backend tensorflow each of the "
                f"{evidence.question.replicas} replicas normalises its own {each} examples; with jax, all "
                "are normalised together",
                remedy="--set train.backend=jax; or synchronized=True, which preflight cannot check",
            )


def _train_step_of_jax(evidence: Evidence) -> Iterator[Finding]:
    if evidence.backend != "tensorflow" or evidence.answer is None:
        return
    for trait in evidence.answer.traits:
        if trait.kind == "jax_train_step":
            yield Finding(
                rule="train_step",
                severity="error",
                message=f"the train_step of {trait.where} is written for JAX: it takes the model's state, "
                "and TensorFlow hands it the data alone",
                remedy="--set train.backend=jax; or compute_loss, which all backends call",
            )


RULES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (_traits, _batch_norm, _train_step_of_jax)

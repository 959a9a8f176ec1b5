"""The rules that find what is wrong or wasteful in a training on a TPU, with messages and remedies. Pure."""

import re
from collections.abc import Callable, Iterator

from slipway.components.errors import ComponentError
from slipway.components.preflight import input_and_runtime_rules, trait_rules
from slipway.components.preflight.chip_specs import CHIPS, GIB
from slipway.components.preflight.finding import Evidence, Finding
from slipway.components.preflight.memory_fit import state_shortage
from slipway.components.preflight.padding import wastes
from slipway.components.preflight.question_and_answer import Answer, Compiled, Loop, Question
from slipway.components.trainer.device_rules import (
    is_divided_by_tensorflow,
    require_custom_loop_gets,
    require_no_model_parallelism,
    require_plain_steps,
)
from slipway.components.trainer.global_batch import padding_advice, require_divisible
from slipway.components.trainer.settings.step import StepSettings

_OF_JAX = ("tensorflow", "value", "leak")
"""Causes of errors that are of JAX, and not of TPUs or of the model whatever the backend is."""
_BY_THE_COMPILER = "fixed shapes, numbers instead of strings, keras.ops instead of Python and NumPy"
_UNKNOWN = {
    "other": "another line there; model.fit on a few rows ends in the same error on any CPU, with "
    "KERAS_BACKEND=jax"
}
"""The remedy of an error that has none of its own, by its cause: of those that the user's code raised."""
DISPATCH_S = 1e-4
"""Below this order of magnitude, calling the compiled step from Python takes longer than the step itself."""


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings of all rules, errors first, then warnings, then notes."""
    order = ("error", "warning", "note")
    found = [finding for rule in RULES for finding in rule(evidence)]
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def _backend(evidence: Evidence) -> Iterator[Finding]:
    name, hosts = evidence.question.slice.name, evidence.question.slice.hosts
    # The training refuses this when it starts, on the TPU that is paid for by then.
    if evidence.backend != "jax" and (refused := _refusal(evidence)):
        yield Finding(
            rule="backend",
            severity="error",
            message=f"{refused.message}; all else here is of jax",
            remedy=refused.hint,
        )
        return
    # A run refuses this, too: Keras 3 trains on several hosts with JAX only.
    if evidence.backend == "torch" or (
        evidence.backend == "tensorflow" and (not evidence.question.slice.has_tensorflow or hosts > 1)
    ):
        yield Finding(
            rule="backend",
            severity="error",
            message=f"train.backend is {evidence.backend}, which does not train on {name} here",
            remedy="--set train.backend=jax; Keras code stays as it is",
        )
    elif evidence.backend == "tensorflow" and evidence.answer is None:
        yield Finding(
            rule="backend",
            severity="note",
            message="train.backend is tensorflow, and nothing was compiled: whether this model trains on "
            f"{name} was not checked",
            remedy="a compiler checks the same model with Keras on JAX; --set train.backend=jax trains that",
        )
    elif step := _tensorflows_own(evidence):
        yield Finding(
            rule="backend",
            severity="note",
            message="train.backend is tensorflow; what is compiled here is the same model with Keras on JAX, "
            + (
                "and this one is TensorFlow's own: "
                if step.error_cause == "tensorflow"
                else "which refuses what TensorFlow may take: "
            )
            + f"whether it trains on {name} is not known. "
            f"{_error(evidence)[:1].upper()}{_error(evidence)[1:]}",
            remedy=f"--set train.backend=jax, which can be checked: {step.error_remedy}",
        )
    elif evidence.backend == "tensorflow":
        yield Finding(
            rule="backend",
            severity="note",
            message="train.backend is tensorflow; what was compiled is the same model with Keras on JAX",
            remedy="--set train.backend=jax, which is what was checked",
        )


def _own_loop(evidence: Evidence) -> Iterator[Finding]:
    if evidence.backend == "jax" and (refused := _refusal(evidence)):
        yield Finding(rule="own_loop", severity="error", message=refused.message, remedy=refused.hint)


def _refusal(evidence: Evidence) -> ComponentError | None:
    """Return what the training refuses of its steps on a TPU; None if it takes them."""
    asked, backend = evidence.question, evidence.backend
    step = StepSettings(
        steps_per_execution=evidence.training.steps_per_execution, accumulate_steps=asked.accumulate_steps
    )
    traits = evidence.answer.traits if evidence.answer else ()
    accumulated = max((int(each.detail) for each in traits if each.kind == "accumulates"), default=1)
    is_divided = is_divided_by_tensorflow(backend=backend, kind="tpu", replicas=asked.replicas)
    try:
        require_no_model_parallelism(asked.model_parallel, backend=backend)
        if is_divided:
            require_plain_steps(step, kind="tpu", accumulated=accumulated)
        if evidence.training.has_own_loop:
            divided_by = asked.slice.name if is_divided else ""
            require_custom_loop_gets(asked.model, step, divided_by=divided_by)
    except ComponentError as error:
        return error
    return None


def _compiler(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.has_libtpu and not evidence.unanswered[0]:
        yield Finding(
            rule="interpreter",
            severity="note",
            message="no interpreter here has libtpu: memory, time and cost on a TPU were not checked",
            remedy="make tpu-compiler",
        )
    reason, remedy = evidence.unanswered
    if reason:
        yield Finding(
            rule="not_compiled",
            severity="note",
            message=f"{evidence.question.slice.name}: {reason}, so nothing is known about it",
            remedy=remedy,
        )


def _fast(evidence: Evidence) -> Iterator[Finding]:
    if evidence.answer is not None and evidence.answer.is_fast:
        yield Finding(
            rule="fast",
            severity="note",
            message="compiled with the compiler's least effort (--fast): this is not the program that would "
            "be trained: it needs more memory, and its times and costs are not those of the other",
            remedy="run without --fast before you pay",
        )


def _batch(evidence: Evidence) -> Iterator[Finding]:
    asked = evidence.question
    try:
        require_divisible(asked.batch_size, replicas=asked.replicas, hosts=asked.slice.hosts)
    except ComponentError as error:
        yield Finding(rule="indivisible", severity="error", message=error.message, remedy=error.hint)
        return
    if advice := padding_advice(asked.batch_size, replicas=asked.replicas):
        message, _, remedy = advice.partition("; ")
        yield Finding(rule="batch_padding", severity="warning", message=message, remedy=remedy)


def _model_parallel(evidence: Evidence) -> Iterator[Finding]:
    asked = evidence.question
    if asked.slice.devices % asked.model_parallel:
        yield Finding(
            rule="model_parallel",
            severity="error",
            message=f"train.model_parallel ({asked.model_parallel}) does not divide the "
            f"{asked.slice.devices} devices of {asked.slice.name}",
            remedy=f"use a divisor of {asked.slice.devices}",
        )
    if evidence.answer is None or asked.model_parallel == 1:
        return
    for pattern in asked.layout:
        if not any(re.fullmatch(pattern, path) for path in evidence.answer.variables):
            yield Finding(
                rule="layout",
                severity="error",
                message=f"train.layout: {pattern!r} matches no weight, and would be ignored",
                remedy="a pattern matches the whole path; there are "
                f"{', '.join(evidence.answer.variables[:6])}",
            )


def _precision(evidence: Evidence) -> Iterator[Finding]:
    if evidence.question.precision == "float32":
        yield Finding(
            rule="float32",
            severity="warning",
            message="train.precision is float32: a TPU multiplies bfloat16, at half the memory and traffic",
            remedy="train.precision: auto, which is mixed_bfloat16 on a TPU; weights stay float32",
        )
    if evidence.question.precision == "mixed_float16":
        yield Finding(
            rule="float16",
            severity="warning",
            message="train.precision is mixed_float16, which a TPU has no unit for",
            remedy="train.precision: auto",
        )
    elif evidence.answer and (
        half := [each.place for each in evidence.answer.layers if each.dtype == "float16"]
    ):
        yield Finding(
            rule="float16",
            severity="warning",
            message=f"{', '.join(half[:5])}: float16, which a TPU has no unit for",
            remedy="give these layers no dtype, or mixed_bfloat16",
        )
    if evidence.answer and (
        wide := [each.place for each in evidence.answer.layers if each.dtype == "float64"]
    ):
        yield Finding(
            rule="float64",
            severity="error",
            message=f"{', '.join(wide[:5])}: float64, which no TPU supports and JAX silently converts to "
            "float32",
            remedy="give these layers dtype float32",
        )


def _tensorflows_own(evidence: Evidence) -> Compiled | None:
    """Return the step if TensorFlow trains, and may take what JAX refused; else None.

    TensorFlow also takes its own operations, and Python that asks for values: it turns `if` and `while` into
    operations.
    """
    step = evidence.answer.step if evidence.answer else None
    trains = (
        evidence.backend == "tensorflow"
        and evidence.question.slice.has_tensorflow
        and evidence.question.slice.hosts == 1
    )
    return step if trains and step is not None and step.error_cause in _OF_JAX else None


def _error(evidence: Evidence) -> str:
    step = evidence.answer.step if evidence.answer else None
    if step is None:
        return ""
    where = f"layer {step.error_layer}: " if step.error_layer and step.error_layer not in step.error else ""
    return f"{where}{step.error}"


def _compiles(evidence: Evidence) -> Iterator[Finding]:
    if evidence.answer is None:
        return
    step, name = evidence.answer.step, evidence.question.slice.name
    # Without libtpu a whole copy of the model was measured; a layout divides it by model_parallel at best.
    held_bytes = evidence.answer.state_bytes
    if evidence.answer.target != "tpu":
        held_bytes //= evidence.question.model_parallel
    lacks = state_shortage(held_bytes, evidence.question.slice.memory_bytes)
    if not step.is_out_of_memory and not lacks:
        if step.error_cause == "layout":
            yield Finding(rule="layout", severity="error", message=step.error, remedy=step.error_remedy)
        elif step.error_cause == "compiler" and evidence.answer.target != "tpu":
            yield Finding(
                rule="not_compiled",
                severity="note",
                message=f"{name}: for a CPU, the only device to compile for here, the step does not compile: "
                f"{_error(evidence)}; whether it does for a TPU is not known",
                remedy="make tpu-compiler, which compiles for the TPU itself",
            )
        elif step.error and not _tensorflows_own(evidence):
            instead = (
                step.error_cause == "tensorflow"
                and evidence.question.slice.has_tensorflow
                and evidence.question.slice.hosts == 1
            )
            yield Finding(
                rule="does_not_compile",
                severity="error",
                message=f"the step does not compile for {name}: {_error(evidence)}",
                remedy=(step.error_remedy or _UNKNOWN.get(step.error_cause, _BY_THE_COMPILER))
                + ("; or --set train.backend=tensorflow, which was not checked" if instead else ""),
            )
        return
    if lacks:
        yield Finding(
            rule="does_not_fit",
            severity="error",
            message=f"the weights and the optimizer's state need {held_bytes / GIB:.2f} GiB of the "
            f"{evidence.question.slice.memory_bytes / GIB:.2f} GiB of a device of {name}, whatever the batch "
            "is",
            remedy=_for_fewer_weights(evidence.question, evidence.answer),
        )
        return
    needed = f"{step.peak_bytes / GIB:.2f} GiB" if step.peak_bytes else "more"
    fully = "run without --fast, which needs less memory; " if evidence.answer.is_fast else ""
    yield Finding(
        rule="does_not_fit",
        severity="error",
        message=f"{evidence.question.batch_size} examples a step need {needed} of the "
        f"{evidence.question.slice.memory_bytes / GIB:.2f} GiB of a device of {name}",
        remedy=fully + _for_fewer_examples(evidence, evidence.answer, held_bytes),
    )


def _for_fewer_weights(asked: Question, answer: Answer) -> str:
    """Return what can make weights and optimizer state fit that exceed a device's memory."""
    weights_bytes = 4 * answer.parameters // asked.model_parallel
    leaner = "an optimizer with fewer numbers for each weight (adafactor, sgd), "
    elsewhere = "" if asked.slice.devices > 1 else "a slice with more devices and "
    return (
        f"{leaner if weights_bytes < asked.slice.memory_bytes else ''}fewer weights (rows, units), a slice "
        f"with more memory, or {elsewhere}train.model_parallel with a train.layout that divides the largest "
        "weights"
    )


def _for_fewer_examples(evidence: Evidence, answer: Answer, held_bytes: int) -> str:
    """Return what can make a step fit whose weights and optimizer state alone do.

    Args:
        held_bytes: the size of those on one device.
    """
    asked = evidence.question
    smaller = ""
    if answer.fits_batch:
        smaller = f"train.batch_size: {answer.fits_batch}, which was compiled and fits"
    elif (answer.fails_batch or asked.batch_size) > asked.parts:
        searched = "" if asked.search_s else " (preflight --search finds the largest that fits)"
        smaller = f"a smaller train.batch_size{searched}"
    if smaller and evidence.backend != "tensorflow":  # with which Keras accumulates nothing on a TPU
        smaller += ", with train.accumulate_steps for as many examples in an update"
        if asked.accumulate_steps == 1:
            smaller += " (its sums of gradients need memory, too: preflight again with it)"
    ways = [smaller] if smaller else []
    if held_bytes > asked.slice.memory_bytes / 2 and asked.slice.devices > 1:
        ways.append("train.model_parallel with a train.layout that divides the largest weights")
    return "; or ".join([*ways, "a slice with more devices or memory"])


def _callbacks(evidence: Evidence) -> Iterator[Finding]:
    for callback in evidence.answer.callbacks if evidence.answer else ():
        yield Finding(
            rule="callback",
            severity="error" if "debug" not in callback else "warning",
            message=f"the step calls back to the host: {callback}",
            remedy="compute it with keras.ops, or before the training; remove prints",
        )


def _padding(evidence: Evidence) -> Iterator[Finding]:
    chip = CHIPS.get(evidence.question.slice.generation)
    if evidence.answer is None or chip is None:
        return
    step = evidence.answer.step
    if step.error and not step.is_out_of_memory:  # then how its layers are called may not be known
        return
    for waste in wastes(evidence.answer.layers, unit=chip.unit):
        yield Finding(
            rule="padding",
            severity="warning",
            message=f"layer {waste.layer}: {waste.units} units are padded to a multiple of {chip.unit}, "
            f"which wastes {waste.share:.0%} of its operations and {waste.memory_share:.0%} of its weights' "
            f"memory; it has {waste.model_share:.0%} of the model's operations",
            remedy=f"{waste.better} units cost the matrix unit no more",
        )


def _loops(evidence: Evidence) -> Iterator[Finding]:
    if evidence.answer is None or not evidence.answer.step.loops:
        return
    places = {each.name: each.place for each in evidence.answer.layers}
    counted, unknown = (
        [each for each in evidence.answer.step.loops if (each.turns is None) == is_unknown]
        for is_unknown in (False, True)
    )

    def named(loops: list[Loop]) -> str:
        words = [
            (f"layer {places.get(each.layer, each.layer)}" if each.layer else "a loop in no layer")
            + (f", {each.turns:,} turns" if each.turns else "")
            for each in loops[:5]
        ]
        return "; ".join(words) + (f"; {len(loops) - 5} more" if len(loops) > 5 else "")

    said = []
    if counted:
        said.append(
            f"{named(counted)}: matrix products and what is sent are counted here in each turn, the bytes "
            "moved once"
        )
    if unknown:
        said.append(f"{named(unknown)}: how often is not known, and one turn is counted")
    yield Finding(
        rule="loop",
        severity="note",
        message=f"the compiler counts a loop's body once. {'. '.join(said)}. The real time and cost are "
        f"{'far ' if unknown else ''}above the estimate",
        remedy="measure some steps before you pay for many",
    )


def _too_small(evidence: Evidence) -> Iterator[Finding]:
    loops = evidence.answer.step.loops if evidence.answer else ()
    if not loops and evidence.step_s is not None and evidence.step_s < DISPATCH_S:
        yield Finding(
            rule="too_small",
            severity="note",
            message=f"the step's own work takes about {evidence.step_s * 1e6:.1f} µs, less than it takes to "
            "start and feed a step: its real time will differ from this estimate",
            remedy="a larger batch, or a CPU: a TPU gains nothing on a model this small",
        )


RULES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    _backend,
    _own_loop,
    _batch,
    _model_parallel,
    _compiles,
    _callbacks,
    _precision,
    _padding,
    *trait_rules.RULES,
    *input_and_runtime_rules.RULES,
    _loops,
    _too_small,
    _fast,
    _compiler,
)

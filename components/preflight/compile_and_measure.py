"""The compiling process: `python -m slipway.components.preflight.compile_and_measure question.json`.

It builds the user's model with Keras on JAX, traces Keras' own training step (forward, loss, gradients,
optimizer, metrics), and compiles it for the devices of a TPU slice that libtpu describes. No TPU is needed.
Nothing is computed except the initial values of small weights; large weights have shapes only. For a slice
whose generation is "" it compiles for the CPU, which shows whether XLA accepts the model, but not what it
needs.

It prints JSON: an `Answer`; {"failed": message, "hint": ...}; {"unanswered": reason, "hint": ...} if it knows
nothing about the slice; or {"lacks": module} if this Python lacks a module that the model imports, as the one
that trains may not. Before a search for the largest batch it prints
a line with what is known by then, since the process may be ended while it searches. What the user's code
prints goes to stderr.
"""

import argparse
import importlib.util
import inspect
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from slipway.components.errors import ComponentError, SlipwayError
from slipway.components.large_imports import large_imports
from slipway.components.preflight import traced_program
from slipway.components.preflight.batch_search import SEARCH_LIMIT_ROWS, largest_batch
from slipway.components.preflight.question_and_answer import Answer, Compiled, Question, Trait
from slipway.components.preflight.slice_mesh import UnknownSliceError, distributed_as_in_training, mesh_of
from slipway.components.preflight.traced_program import Where, callbacks_in
from slipway.components.preflight.training_step import TrainingStep
from slipway.components.trainer.features import Feature
from slipway.components.typed_json import typed

JAX_STEP = (
    "train_step(self, state, data) as in Keras' guide for JAX; or compute_loss, which all backends call"
)
NO_OPTIMIZER = 'an optimizer in model.compile, such as optimizer="adam"'


def main(arguments: list[str] | None = None) -> int:
    """Answer the question in a file, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m slipway.components.preflight.compile_and_measure", description=__doc__
    )
    parser.add_argument("question", type=Path, help="a Question as JSON")
    options = parser.parse_args(arguments)
    question = typed(Question, json.loads(options.question.read_text(encoding="utf-8")))
    # The user's code may print at any time, up to the end of the process, and replace sys.stdout.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _prepare()

    def say(values: Mapping[str, object]) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    try:
        answer = answer_to(question, before_search=lambda known: say(known.to_json())).to_json()
    except UnknownSliceError as error:
        answer = {"unanswered": error.message, "hint": error.hint}
    except SlipwayError as error:
        answer = {"failed": error.message, "hint": error.hint}
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        from slipway.components.trainer.user_model import describe

        missing = missing_module(error, question.model)
        answer = {"lacks": missing} if missing else {"failed": describe(error, question.model), "hint": ""}
    with answers:
        say(answer)
    return 0


def _prepare() -> None:
    """Set the variables that libtpu and JAX read when they are loaded, so that they do not look for a TPU."""
    os.environ.update(
        KERAS_BACKEND="jax",
        JAX_PLATFORMS="cpu",
        TPU_SKIP_MDS_QUERY="1",
        TPU_ACCELERATOR_TYPE="v5litepod-8",
        TPU_WORKER_HOSTNAMES="localhost",
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",
        TPU_LOG_DIR="disabled",
    )


def missing_module(error: BaseException, dotted_path: str) -> str:
    """Return the module that this Python lacks, if that is the error, and the module is no part of a package
    that it has, nor of the user's own; else "".

    Args:
        dotted_path: of `build_model`.
    """
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    top = error.name.partition(".")[0]
    is_own = top == dotted_path.partition(".")[0]
    return "" if is_own or importlib.util.find_spec(top) is not None else top


def answer_to(question: Question, *, before_search: Callable[[Answer], None] = lambda _: None) -> Answer:
    """Build, trace and compile the model, and return what was found.

    Args:
        before_search: called with what is known before the largest batch is searched.

    Raises:
        ComponentError: `build_model` does not return a compiled model, or the model has an input that is not
            a feature.
        UnknownSliceError: libtpu does not describe the slice.
        ModuleNotFoundError: the model imports a module that this Python lacks.
        Exception: anything else the user's code raises, except errors of tracing, which are part of the
            answer.
    """
    with large_imports():
        import keras

        from slipway.components.preflight.definitions import definitions
        from slipway.components.preflight.model_traits import (
            casts,
            cut_integers,
            only_shapes_of_large_weights,
        )
        from slipway.components.trainer.devices.plain_attention import keep_plain_attention

    keep_plain_attention()
    # Keras rebuilds errors to add the call's arguments, which fails for JAX's: they take more than a message.
    keras.config.disable_traceback_filtering()
    found: list[Trait] = []
    mesh = mesh_of(question)
    with (
        distributed_as_in_training(question, mesh),
        only_shapes_of_large_weights(),
        casts(found, question.model),
        cut_integers(found, question.model),
        definitions(question.model) as lines,
    ):
        answer = _answer(question, mesh, lines, lambda known: before_search(_with(known, found)))
    return _with(answer, found)


def _with(answer: Answer, found: list[Trait]) -> Answer:
    return replace(answer, traits=tuple(dict.fromkeys((*answer.traits, *found))))


class _RefusedError(Exception):
    """The model cannot be trained so: what is wrong, in which layer, of which kind, and the remedy."""

    def __init__(self, words: str, *, layer: str = "", cause: str = "", remedy: str = "") -> None:
        super().__init__(words)
        self._words, self._layer, self._cause, self._remedy = words, layer, cause, remedy

    def step(self, batch_size: int) -> Compiled:
        """Return the step of this batch size, which is not compiled."""
        return Compiled(
            batch_size=batch_size,
            error=self._words,
            error_layer=self._layer,
            error_cause=self._cause,
            error_remedy=self._remedy,
        )


def _answer(question: Question, mesh: Any, lines: Any, before_search: Callable[[Answer], None]) -> Answer:
    import keras

    from slipway.components.preflight.model_traits import traits_of
    from slipway.components.preflight.shapes import layers_of

    policy = "mixed_bfloat16" if question.precision == "auto" else question.precision
    keras.config.set_dtype_policy(policy)
    features = {each["name"]: Feature.from_json(each) for each in question.features}
    known = Answer(
        step=Compiled(batch_size=question.batch_size),
        target="tpu" if question.slice.generation else "cpu",
        is_fast=question.is_fast,
        policy=policy,
    )
    try:
        model = _built(question, features)
        known = replace(
            known,
            parameters=model.count_params(),
            layers=layers_of(model, line_of=lines.of),
            variables=tuple(
                each.path for each in (*model.trainable_variables, *model.non_trainable_variables)
            ),
        )
        _require_trainable(model, question, lines)
        with _code_of_the_user(question, model, lines):
            where = _places(model, question, lines)
            step = TrainingStep(model, features, question, mesh, where=where)
            traced, found, leaking, calls = _traced(step, model, question, where)
            known = replace(known, layers=layers_of(model, calls, line_of=lines.of))
        _require_no_leak(leaking)
        found = (*found, *_found_by_length(model, features, question, mesh))
        known = replace(
            known,
            callbacks=tuple(dict.fromkeys(callbacks_in(traced.jaxpr.jaxpr, where))),
            traits=(*traits_of(model, question, lines, calls), *_train_step_of_jax(model), *found),
        )
        _require_layout(step)
    except _RefusedError as refused:
        return replace(known, step=refused.step(question.batch_size))
    known = replace(known, state_bytes=step.state_bytes, mesh=step.mesh_axes)
    first = step.compiled(question.batch_size, fast=question.is_fast)
    if not (question.search_s and question.slice.generation and (first.compiles or first.is_out_of_memory)):
        return replace(known, step=first)
    before_search(replace(known, step=first, is_search_cut=True))
    began = time.monotonic()
    fits, fails = largest_batch(
        first,
        quickly=lambda batch: step.compiled(batch, fast=True),
        fully=lambda batch: step.compiled(batch, fast=question.is_fast),
        unit=question.replicas * (8 if question.batch_size % (8 * question.replicas) == 0 else 1),
        limit=SEARCH_LIMIT_ROWS * question.replicas,
        has_time=lambda: time.monotonic() < began + question.search_s,
        has_time_to_approach=lambda: time.monotonic() < began + question.search_s / 2,
    )
    return replace(known, step=first, fits_batch=fits, fails_batch=fails)


@contextmanager
def _code_of_the_user(question: Question, model: Any = None, lines: Any = None) -> Iterator[None]:
    """Refuse the model with what the block raises, in words: it, and all that it calls, may raise anything.

    Args:
        model: the model; None while it is built, when only errors of its layers are refused.
        lines: where its layers were made.
    """
    from slipway.components.trainer.trace_error import explain

    try:
        yield
    except SlipwayError:
        raise
    except Exception as error:
        if missing_module(error, question.model):
            raise
        told = explain(error, question.model)
        if model is not None:
            told = _with_a_line(told, model, lines)
        elif told.cause == "other":
            raise ComponentError(told.message, hint=told.remedy) from error
        raise _RefusedError(told.message, layer=told.layer, cause=told.cause, remedy=told.remedy) from error


def _built(question: Question, features: Mapping[str, Feature]) -> Any:
    """Return the user's model, whose outputs and labels fit each other."""
    from slipway.components.trainer.loss_labels import require_equal_shapes
    from slipway.components.trainer.user_model import build_model, require_outputs

    with _code_of_the_user(question):
        model = build_model(question.model, _inputs(question, features), question.hyperparameters)
        require_outputs(model, question.label, question.model)
        shapes = {name: features[name].shape for name in question.labels}
        require_equal_shapes(model, question.label, shapes, question.model)
    return model


def _inputs(question: Question, features: Mapping[str, Feature]) -> dict[str, Feature]:
    return {name: feature for name, feature in features.items() if name not in question.labels}


def _require_trainable(model: Any, question: Question, lines: Any) -> None:
    """Refuse a model of unknown shapes, with a train_step of another backend, or without an optimizer."""
    from slipway.components.trainer.compile_options import accumulate
    from slipway.components.trainer.devices.tpu_model import require_known_shapes

    try:
        require_known_shapes(model)
    except ComponentError as error:
        layer = re.search(r"the layer '([^']*)'", error.message)
        name = layer[1] if layer else ""
        line = lines.by_name(model).get(name, "")
        words = f"{error.message} ({line})" if line else error.message
        raise _RefusedError(words, layer=name, remedy=error.hint) from error
    if words := _wrong_train_step(model, question.model):
        raise _RefusedError(words, cause="tensorflow", remedy=JAX_STEP)
    if model.optimizer is None:
        line = lines.of_compile(model)
        words = "model.compile has optimizer=None, and nothing would change the weights"
        raise _RefusedError(f"{line}: {words}" if line else words, cause="other", remedy=NO_OPTIMIZER)
    if question.accumulate_steps > 1:
        try:
            accumulate(model, question.accumulate_steps)
        except ComponentError as error:
            raise _RefusedError(error.message, cause="other", remedy=error.hint) from error


def _require_no_leak(leaking: str | None) -> None:
    """Refuse a step that uses a tensor of an earlier trace, in a place that may be unknown ("")."""
    from slipway.components.trainer.trace_error import LEAK

    if leaking is not None:
        cause, words, remedy = LEAK
        raise _RefusedError(f"{leaking}: {words}" if leaking else words, cause=cause, remedy=remedy)


def _require_layout(step: TrainingStep) -> None:
    if fault := step.layout_fault:
        raise _RefusedError(fault.words, cause="layout", remedy=fault.remedy)


def _found_by_length(
    model: Any, features: Mapping[str, Feature], question: Question, mesh: Any
) -> tuple[Trait, ...]:
    """Return what the model does at each length of the examples, where they are batched by length."""
    from slipway.components.preflight.lengths import judge_lengths
    from slipway.components.trainer.buckets import Buckets

    buckets = Buckets.of(question.bucket_by_length, _inputs(question, features))
    if not buckets.lengths:
        return ()
    try:
        return tuple(judge_lengths(model, features, question, mesh, buckets))
    except ComponentError as error:
        raise _RefusedError(error.message, cause="shape", remedy=error.hint) from error


def _with_a_line(told: Any, model: Any, lines: Any) -> Any:
    """Return an explanation with the line that made the layer, or compiled the model, if it has no line."""
    if not told.place or ", line " in told.message:
        return told
    line = lines.by_name(model).get(told.layer, "") if told.layer else lines.of_compile(model)
    return replace(told, place=", ".join(filter(None, (told.place, line))))


def _wrong_train_step(model: Any, dotted_path: str) -> str:
    """Return what is wrong with a custom train_step written for another backend; "" if nothing is."""
    import keras

    from slipway.components.trainer.user_model import own_line

    own = type(model).train_step
    if own is keras.Model.train_step or _takes(own, ("state", "data")):
        return ""
    # TensorFlow's functions and others that stand for one of Python's have no code of their own.
    code = getattr(getattr(own, "python_function", inspect.unwrap(own)), "__code__", None)
    line = own_line([(code.co_filename, code.co_firstlineno)], dotted_path) if code else ""
    whose = f"{type(model).__name__} ({line})" if line else type(model).__name__
    return (
        f"the train_step of {whose} takes the data alone, as with TensorFlow and torch; JAX hands it the "
        "state of the model, too, and wants it back"
    )


def _train_step_of_jax(model: Any) -> tuple[Trait, ...]:
    """Return the trait of a custom train_step that only JAX can call."""
    import keras

    own = type(model).train_step
    if own is keras.Model.train_step or _takes(own, ("data",)):
        return ()
    return (Trait(kind="jax_train_step", where=type(model).__name__),)


def _takes(method: Any, arguments: tuple[str, ...]) -> bool:
    """Return True if a class' method can be called with these arguments, or does not say what it takes."""
    try:
        inspect.signature(method).bind("self", *arguments)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _places(model: Any, question: Question, lines: Any) -> Where:
    """Return the function that says where in the user's model and code an equation comes from.

    The line is the one that computes it, or for a layer of another's the one that made the layer.
    """
    from slipway.components.trainer.user_model import own_line

    made = lines.by_name(model)

    def where(equation: Any) -> str:
        source = equation.source_info
        frames = source.traceback.frames if source.traceback else ()
        line = own_line([(each.file_name, each.line_num) for each in reversed(frames)], question.model)
        layer = traced_program.layer_of(str(source.name_stack), made)
        if not layer:
            return line
        return ", ".join(filter(None, (f"the layer {layer!r}", line or made[layer])))

    return where


def _traced(
    step: TrainingStep, model: Any, question: Question, where: Where
) -> tuple[Any, tuple[Trait, ...], str | None, Any]:
    """Trace the step twice; return the second trace, the traits found in it and by comparing the two, the
    place where the first one, as the training's only one, uses a tensor of a trace before (or None), and the
    calls of the layers in it."""
    import jax

    from slipway.components.preflight.python_state import (
        fixed_seeds,
        kept_values,
        leaked_tracers,
        side_effects,
    )
    from slipway.components.preflight.shapes import Calls

    seeds: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    with fixed_seeds(seeds[0], question.model), Calls.recorded(model) as calls:
        first = step.traced(question.batch_size)
    before = kept_values(model, question.model)
    with fixed_seeds(seeds[1], question.model):
        second = step.traced(question.batch_size)
    found = [*side_effects(before, model, question.model), *leaked_tracers(model, question.model)]
    changed = traced_program.difference(first.jaxpr, second.jaxpr, where)
    if changed and not found:  # values kept from trace to trace would already explain the difference
        found.append(changed)
    found += [Trait(kind="same_noise", where=each[0]) for each in seeds[1] if each in seeds[0]]
    found += traced_program.large_constants(second.jaxpr, where)
    found += traced_program.constant_noise(second.jaxpr, where)
    found += traced_program.long_loops(second.jaxpr, where)
    arguments = len(jax.tree.leaves(first.args_info))
    return second, tuple(found), traced_program.leak(first.jaxpr, arguments, where), calls


if __name__ == "__main__":
    sys.exit(main())

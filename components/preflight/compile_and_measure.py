"""The compiling process: `python -m slipway.components.preflight.compile_and_measure question.json`.

It builds the user's model with Keras on JAX, traces Keras' own training step (forward, loss, gradients,
optimizer, metrics), and compiles it for the devices of a TPU slice that libtpu describes. No TPU is needed.
Nothing is computed except the initial values of small weights; large weights have shapes only. For a slice
whose generation is "" it compiles for the CPU, which shows whether XLA accepts the model, but not what it
needs.

The last line that it prints is JSON: an `Answer`, or {"failed": message, "hint": ...}.
"""

import argparse
import inspect
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slipway.components.errors import ComponentError, SlipwayError
from slipway.components.large_imports import large_imports
from slipway.components.preflight.batch_search import SEARCH_LIMIT_ROWS, largest_batch
from slipway.components.preflight.hlo import collectives
from slipway.components.preflight.memory_fit import held_bytes, shortage, state_shortage
from slipway.components.preflight.question_and_answer import (
    Answer,
    Collective,
    Compiled,
    MeshAxis,
    Question,
    Slice,
    Trait,
)
from slipway.components.preflight.torus import span

FAST = {"exec_time_optimization_effort": -1.0}
"""Compiler options that compile large models faster, to programs that need more memory.

They are used for the search and for a quick look.
"""
JAX_STEP = (
    "train_step(self, state, data) as in Keras' guide for JAX; or compute_loss, which all backends call"
)
NO_PADDING = "pad the weight to a multiple of it (more rows or units), or write null for that dimension"


def main(arguments: list[str] | None = None) -> int:
    """Answer the question in a file, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m slipway.components.preflight.compile_and_measure", description=__doc__
    )
    parser.add_argument("question", type=Path, help="a Question as JSON")
    options = parser.parse_args(arguments)
    question = Question.from_json(json.loads(options.question.read_text(encoding="utf-8")))
    _prepare()
    try:
        answer = answer_to(question).to_json()
    except SlipwayError as error:
        answer = {"failed": error.message, "hint": error.hint}
    except Exception as error:  # the user's code may raise anything
        from slipway.components.trainer.user_model import describe

        answer = {"failed": describe(error, question.model), "hint": ""}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
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


def answer_to(question: Question) -> Answer:
    """Build, trace and compile the model, and return what was found.

    Raises:
        ComponentError: `build_model` does not return a compiled model, or the model has an input that is not
            a feature.
        Exception: anything the user's code raises, except errors of tracing, which are part of the answer.
    """
    with large_imports():
        import keras

        from slipway.components.preflight.model_traits import casts, only_shapes_of_large_weights

    # Keras rebuilds errors to add the call's arguments, which fails for JAX's: they take more than a message.
    keras.config.disable_traceback_filtering()
    found: list[Trait] = []
    with only_shapes_of_large_weights(), casts(found, question.model):
        answer = _answer(question)
    return replace(answer, traits=tuple(dict.fromkeys((*answer.traits, *found))))


def _answer(question: Question) -> Answer:
    import keras

    from slipway.components.preflight.model_traits import traits_of
    from slipway.components.preflight.shapes import layers_of
    from slipway.components.preflight.traced_program import callbacks_in
    from slipway.components.trainer.devices.tpu_model import require_known_shapes
    from slipway.components.trainer.features import Feature
    from slipway.components.trainer.learning_rate import inner_optimizer
    from slipway.components.trainer.loss_labels import require_equal_shapes
    from slipway.components.trainer.trace_error import LEAK, explain
    from slipway.components.trainer.user_model import build_model, require_outputs

    policy = "mixed_bfloat16" if question.precision == "auto" else question.precision
    keras.config.set_dtype_policy(policy)
    features = {each["name"]: Feature.from_json(each) for each in question.features}
    inputs = {name: feature for name, feature in features.items() if name not in question.labels}
    facts: dict[str, Any] = {
        "target": "tpu" if question.slice.generation else "cpu",
        "is_fast": question.is_fast,
        "policy": policy,
    }

    def refused(words: str, *, layer: str = "", cause: str = "", remedy: str = "") -> Answer:
        step = Compiled(
            batch_size=question.batch_size,
            error=words,
            error_layer=layer,
            error_cause=cause,
            error_remedy=remedy,
        )
        return Answer(step=step, **facts)

    try:
        model = build_model(question.model, inputs, question.hyperparameters)
        require_outputs(model, question.label, question.model)
        shapes = {name: features[name].shape for name in question.labels}
        require_equal_shapes(model, question.label, shapes, question.model)
    except SlipwayError:
        raise
    except Exception as error:
        told = explain(error, question.model)
        if told.cause == "other":
            raise
        return refused(told.message, layer=told.layer, cause=told.cause, remedy=told.remedy)
    if question.accumulate_steps > 1:
        inner_optimizer(model).gradient_accumulation_steps = question.accumulate_steps
    facts |= {
        "parameters": model.count_params(),
        "layers": layers_of(
            model,
            {name: keras.KerasTensor((None, *f.shape), f.model_dtype) for name, f in inputs.items()},
        ),
        "variables": tuple(each.path for each in model.trainable_variables),
    }
    try:
        require_known_shapes(model)
    except ComponentError as error:
        layer = re.search(r"the layer '([^']*)'", error.message)
        return refused(error.message, layer=layer[1] if layer else "", remedy=error.hint)
    if words := _wrong_train_step(model):
        return refused(words, cause="tensorflow", remedy=JAX_STEP)
    try:
        step = TrainingStep(model, features, question)
        traced, found, leaking = _traced(step, model, question)
    except SlipwayError:
        raise
    except Exception as error:  # the user's code, and all that it calls, may raise anything
        told = explain(error, question.model)
        return refused(told.message, layer=told.layer, cause=told.cause, remedy=told.remedy)
    if leaking is not None:
        cause, words, remedy = LEAK
        return refused(f"{leaking}: {words}" if leaking else words, cause=cause, remedy=remedy)
    facts["callbacks"] = tuple(dict.fromkeys(callbacks_in(traced.jaxpr.jaxpr)))
    facts["traits"] = (*traits_of(model, question), *_train_step_of_jax(model), *found)
    if words := step.undivided:
        return refused(words, cause="layout", remedy=NO_PADDING)
    facts["state_bytes"] = step.state_bytes
    facts["mesh"] = step.mesh_axes
    first = step.compiled(question.batch_size, fast=question.is_fast)
    sizes: tuple[int | None, int | None] = (None, None)
    if question.search_s and question.slice.generation and (first.compiles or first.is_out_of_memory):
        ends = time.monotonic() + question.search_s
        sizes = largest_batch(
            first,
            lambda batch: step.compiled(batch, fast=True),
            unit=question.replicas * (8 if question.batch_size % (8 * question.replicas) == 0 else 1),
            limit=SEARCH_LIMIT_ROWS * question.replicas,
            has_time=lambda: time.monotonic() < ends,
        )
    return Answer(step=first, fits_batch=sizes[0], fails_batch=sizes[1], **facts)


def _wrong_train_step(model: Any) -> str:
    """Return what is wrong with a custom train_step written for another backend; "" if nothing is."""
    import keras

    own = type(model).train_step
    if own is keras.Model.train_step or len(inspect.signature(own).parameters) != 2:
        return ""
    return (
        f"the train_step of {type(model).__name__} takes the data alone, as with TensorFlow and torch; JAX "
        "hands it the state of the model, too, and wants it back"
    )


def _train_step_of_jax(model: Any) -> tuple[Trait, ...]:
    """Return the trait of a custom train_step that only JAX can call."""
    import keras

    own = type(model).train_step
    return (
        () if own is keras.Model.train_step else (Trait(kind="jax_train_step", where=type(model).__name__),)
    )


def _traced(
    step: "TrainingStep", model: Any, question: Question
) -> tuple[Any, tuple[Trait, ...], str | None]:
    """Trace the step twice; return the second trace, the traits found in it and by comparing the two, and
    the place where the first one, as the training's only one, uses a tensor of a trace before (or None)."""
    import jax

    from slipway.components.preflight import traced_program
    from slipway.components.preflight.model_traits import kept_values, leaked_tracers, side_effects
    from slipway.components.trainer.user_model import own_line

    layers = {each.name for each in model._flatten_layers(include_self=False)}

    def where(equation: Any) -> str:
        source = equation.source_info
        frames = source.traceback.frames if source.traceback else ()
        line = own_line([(each.file_name, each.line_num) for each in reversed(frames)], question.model)
        layer = traced_program.layer_of(str(source.name_stack), layers)
        return ", ".join(filter(None, (f"the layer {layer!r}" if layer else "", line)))

    first = step.traced(question.batch_size)
    before = kept_values(model)
    second = step.traced(question.batch_size)
    found = [*side_effects(before, model), *leaked_tracers(model)]
    changed = traced_program.difference(first.jaxpr, second.jaxpr, where)
    if changed and not found:  # values kept from trace to trace would already explain the difference
        found.append(changed)
    found += traced_program.large_constants(second.jaxpr, where)
    found += traced_program.constant_noise(second.jaxpr, where)
    found += traced_program.long_loops(second.jaxpr, where)
    arguments = len(jax.tree.leaves(first.args_info))
    return second, tuple(found), traced_program.leak(first.jaxpr, arguments, where)


class TrainingStep:
    """Keras' training step of a compiled model, for the devices of a slice.

    Args:
        model: a built and compiled Keras model.
        features: the features by name, including the label.
    """

    def __init__(self, model: Any, features: Any, question: Question) -> None:
        self._model, self._features, self._question = model, features, question
        self._mesh = _mesh(question)
        batch = self._batch(max(question.batch_size, question.replicas))
        # Create the variables of the optimizer and the metrics, as the first call of fit would.
        model._symbolic_build(data_batch=batch)

    def traced(self, batch_size: int) -> Any:
        """Return the step, traced by JAX, for a global batch of that size."""
        import jax

        # A new function each time, or JAX would return its cached trace.
        step = jax.jit(lambda state, data: self._model.train_step(state, data), donate_argnums=0)
        return step.trace(self._state(), self._batch(batch_size))

    def compiled(self, batch_size: int, *, fast: bool = False) -> Compiled:
        """Return the compiler's report on a global batch of that size."""
        import jax

        began = time.monotonic()
        is_tpu = bool(self._question.slice.generation)
        if short := state_shortage(self.state_bytes, self._question.slice.memory_bytes):
            return Compiled(
                batch_size=batch_size,
                error="its variables alone are more than a device's memory",
                is_out_of_memory=True,
                peak_bytes=short.needed_bytes,
                available_bytes=short.available_bytes,
            )
        try:
            lowered = self.traced(batch_size).lower(lowering_platforms=("tpu" if is_tpu else "cpu",))
            program = lowered.compile(compiler_options=FAST if fast and is_tpu else None)
        except (jax.errors.JaxRuntimeError, ValueError, NotImplementedError) as error:
            return _refusal(batch_size, str(error), compile_s=time.monotonic() - began)
        compile_s = time.monotonic() - began
        return program_costs(
            program,
            batch_size=batch_size,
            where=self._question.slice,
            devices=self._mesh.devices.flat,
            compile_s=compile_s,
        )

    @property
    def mesh_axes(self) -> tuple[MeshAxis, ...]:
        """The axes of the mesh, as the first line of devices along each lies on the slice."""
        where, names = self._question.slice, self._mesh.axis_names
        lines = (self._mesh.devices[:, 0], self._mesh.devices[0, :])
        return tuple(
            MeshAxis(
                name=name,
                devices=len(line),
                shape=span([each.coords for each in line], where.topology).shape if where.generation else "",
                hosts=len({each.process_index for each in line}),
            )
            for name, line in zip(names, lines, strict=True)
        )

    @property
    def undivided(self) -> str:
        """A message about weights that the layout does not divide evenly, as JAX requires; "" if none."""
        asked = self._question
        parts = {"model": asked.model_parallel, "batch": asked.replicas, None: 1}
        words = [
            f"{each.path} has {size:,} in dimension {at}, which is not a multiple of {parts[axis]}"
            for each in self._model.variables
            for at, (size, axis) in enumerate(zip(each.shape, self._axes(each), strict=False))
            if size % parts[axis]
        ]
        return f"train.layout: {'; '.join(words[:3])}" if words else ""

    @property
    def state_bytes(self) -> int:
        """The size of all variables on one device; `undivided` must be ""."""
        variables = [each for group in self._state() for each in group]
        return sum(
            math.prod(each.sharding.shard_shape(each.shape)) * each.dtype.itemsize for each in variables
        )

    def _batch(self, batch_size: int) -> Any:
        import jax

        def spec(feature: Any) -> Any:
            shape = (batch_size, *feature.shape)
            return jax.ShapeDtypeStruct(shape, feature.model_dtype, sharding=self._sharding("batch"))

        rows = jax.ShapeDtypeStruct((batch_size,), "float32", sharding=self._sharding("batch"))
        return (*self._examples(spec), *([rows] if self._question.is_weighted else []))

    def _examples(self, spec: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return features and label as the step gets them, each made by `spec` of its feature."""
        labels = self._question.labels
        inputs = {name: spec(each) for name, each in self._features.items() if name not in labels}
        known = getattr(self._model, "_inputs_struct", None)
        if isinstance(known, dict):
            inputs = {name: inputs[name] for name in known}
        label = self._question.label
        if isinstance(label, str):
            return inputs, spec(self._features[label])
        if not isinstance(label, Mapping):  # one label of several columns, side by side
            return inputs, spec(replace(self._features[labels[0]], shape=(len(labels),)))
        return inputs, {output: spec(self._features[name]) for output, name in label.items()}

    def _state(self) -> Any:
        model = self._model
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        return tuple([self._variable(each) for each in group] for group in groups)

    def _axes(self, variable: Any) -> tuple[str | None, ...]:
        """Return the mesh axis that divides each dimension of a variable; () if none is divided."""
        axes: tuple[str | None, ...] = ()
        for pattern, layout in self._question.layout.items():
            # An optimizer names its slots by the path of their variable with "_" for "/".
            flat = pattern.replace("/", "_")
            if re.fullmatch(pattern, variable.path) or re.fullmatch(f".*{flat}_.*", variable.path):
                axes = tuple(layout) if len(layout) == len(variable.shape) else ()
        return axes

    def _variable(self, variable: Any) -> Any:
        import jax

        sharding = self._sharding(*self._axes(variable))
        return jax.ShapeDtypeStruct(variable.shape, variable.dtype, sharding=sharding)

    def _sharding(self, *axes: str | None) -> Any:
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self._mesh, PartitionSpec(*axes))


def _mesh(question: Question) -> Any:
    import jax
    import numpy as np

    devices = topology_devices(question.slice) if question.slice.generation else jax.devices("cpu")[:1]
    shared = question.model_parallel if question.slice.generation else 1
    shape = (len(devices) // shared, shared)
    return jax.sharding.Mesh(np.array(devices).reshape(shape), ("batch", "model"))


def topology_devices(wanted: Slice) -> Any:
    """Return the devices of a slice, as libtpu describes them without a TPU.

    Raises:
        ComponentError: libtpu is not installed, or does not know the slice.
    """
    from jax.experimental import topologies

    name = {"v7": "tpu7x"}.get(wanted.generation, wanted.generation)
    arguments: dict[str, Any] = {}
    # These hosts have one chip and eight chips; all others have four, which is libtpu's default.
    if bounds := {"1x1": (1, 1, 1), "2x4": (2, 4, 1)}.get(wanted.topology):
        arguments["chips_per_host_bounds"] = bounds
    if wanted.generation == "v4":  # the two cores of a chip as one device, as JAX has them
        arguments["chip_config_name"] = "megacore"
    try:
        devices = topologies.get_topology_desc(f"{name}:{wanted.topology}", "tpu", **arguments).devices
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ComponentError(
            f"libtpu describes no {wanted.name}: {reason}", hint="make tpu-compiler"
        ) from error
    if len(devices) != wanted.devices:
        raise ComponentError(f"libtpu knows {len(devices)} devices of {wanted.name}, not {wanted.devices}")
    hosts = len({each.process_index for each in devices})
    if hosts != wanted.hosts:
        raise ComponentError(f"libtpu knows {hosts} hosts of {wanted.name}, not {wanted.hosts}")
    return devices


def program_costs(
    program: Any, *, batch_size: int, where: Slice, devices: Sequence[Any], compile_s: float = 0.0
) -> Compiled:
    """Count what a compiled JAX program holds, computes, moves and sends.

    For the CPU, memory and collectives are not counted.

    Args:
        program: a `jax.stages.Compiled`.
        batch_size: the global batch that it was compiled for.
        where: the slice; the generation "" means the CPU.
        devices: the devices that it was compiled for, in the order of its mesh.
    """
    is_tpu = bool(where.generation)
    cost = program.cost_analysis()
    sent = tuple(_collectives(program.as_text(), where, list(devices))) if is_tpu else ()
    return Compiled(
        batch_size=batch_size,
        peak_bytes=held_bytes(program.memory_analysis()) if is_tpu else 0,
        available_bytes=where.memory_bytes,
        flops=cost.get("flops", 0.0),
        moved_bytes=cost.get("bytes accessed", 0.0),
        collective_bytes=sum(each.result_bytes for each in sent),
        collectives=sent,
        compile_s=compile_s,
    )


def _collectives(text: str, where: Slice, devices: Sequence[Any]) -> Iterator[Collective]:
    """Yield the collectives of a program, those of one kind and of groups that lie alike as one."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for sent in collectives(text):
        groups = sent.pairs or (sent.members or range(len(devices)),)
        spans = [span([devices[each].coords for each in group], where.topology) for group in groups]
        # Of pairs, those that are farthest from each other take longest.
        key = (sent.kind, len(groups[0]), max(spans, key=lambda each: each.hops))
        found.setdefault(key, []).append(sent.result_bytes)
    for (kind, members, taken), sizes in found.items():
        yield Collective(
            kind=kind,
            count=len(sizes),
            result_bytes=sum(sizes),
            devices=members,
            chips=taken.chips,
            shape=taken.shape,
            links=taken.links,
            hops=taken.hops,
        )


def _refusal(batch_size: int, message: str, *, compile_s: float) -> Compiled:
    short = shortage(message)
    layer = re.search(r'op_name="[^"]*?\)/([^/"]+)/', message)
    return Compiled(
        batch_size=batch_size,
        error=" ".join(message.split())[:400] or "the compiler gave no reason",
        error_layer=layer[1] if layer else "",
        is_out_of_memory=short is not None,
        peak_bytes=short.needed_bytes if short else 0,
        available_bytes=short.available_bytes if short else 0,
        compile_s=compile_s,
    )


if __name__ == "__main__":
    sys.exit(main())

"""Keras' training step, from shapes alone: traced by JAX, and compiled for the devices of a TPU slice.

libtpu describes the devices, so that no TPU is needed. Needs JAX.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from slipway.components.preflight.memory_fit import next_batch_shortage, state_shortage
from slipway.components.preflight.program_costs import program_costs, refusal
from slipway.components.preflight.question_and_answer import Compiled, MeshAxis, Question
from slipway.components.preflight.torus import span
from slipway.components.preflight.traced_program import Where, place_of
from slipway.components.preflight.weight_layout import Fault, WeightLayout, host_without_all

FAST = {"exec_time_optimization_effort": -1.0}
"""Compiler options that compile large models faster, to programs that need more memory.

They are used for the search and for a quick look.
"""


class TrainingStep:
    """Keras' training step of a compiled model, for the devices of a slice.

    Args:
        model: a built and compiled Keras model.
        features: the features by name, including the label.
        mesh: of the slice's devices, see `slice_mesh.mesh_of`.
        where: returns the place of an equation of the traced step in the user's code.
    """

    def __init__(
        self, model: Any, features: Any, question: Question, mesh: Any, *, where: Where = lambda _: ""
    ) -> None:
        self._model, self._features, self._question, self._where = model, features, question, where
        self._mesh = mesh
        self._layout = WeightLayout(question.layout, model.variables)
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
            traced = self.traced(batch_size)
        except Exception as error:  # the user's code, which may take one batch size only
            reason = str(error).partition("\n")[0]
            return Compiled(batch_size=batch_size, error=f"it takes no batch of {batch_size}: {reason}")
        layers = {each.name for each in self._model._flatten_layers(include_self=False)}
        try:
            lowered = traced.lower(lowering_platforms=("tpu" if is_tpu else "cpu",))
            program = lowered.compile(compiler_options=FAST if fast and is_tpu else None)
        except (jax.errors.JaxRuntimeError, ValueError, NotImplementedError) as error:
            return refusal(
                batch_size,
                str(error),
                compile_s=time.monotonic() - began,
                layers=layers,
                place_of=lambda operation: place_of(operation, traced.jaxpr.jaxpr, self._where),
            )
        compile_s = time.monotonic() - began
        costs = program_costs(
            program,
            batch_size=batch_size,
            where=self._question.slice,
            devices=self._mesh.devices.flat,
            layers=layers,
            compile_s=compile_s,
        )
        batch_bytes = _device_bytes(jax.tree.leaves(self._batch(batch_size)))
        short = next_batch_shortage(costs.peak_bytes, batch_bytes, costs.available_bytes)
        if short is None:
            return costs
        return Compiled(
            batch_size=batch_size,
            error="it fits, but not beside the next batch, which is loaded meanwhile",
            is_out_of_memory=True,
            peak_bytes=short.needed_bytes,
            available_bytes=short.available_bytes,
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
    def layout_fault(self) -> Fault | None:
        """What a training refuses `train.layout` for; None if it takes it."""
        asked = self._question
        parts = {"model": asked.model_parallel, "batch": asked.replicas, None: 1}
        if found := self._layout.fault(self._model.variables, parts):
            return found
        is_divided = any("model" in self._layout.axes(each) for each in self._model.variables)
        hosts = [[each.process_index for each in copy] for copy in self._mesh.devices]
        if is_divided and host_without_all(hosts) is not None:
            return Fault(
                f"train.model_parallel ({asked.model_parallel}): each copy of the model lies on devices of "
                f"{len(set(hosts[0]))} hosts, none of which could save it",
                "a smaller one: each copy must lie on the devices of one host",
            )
        return None

    @property
    def state_bytes(self) -> int:
        """The size of all variables on one device; `layout_fault` must be None."""
        return _device_bytes([each for group in self._state() for each in group])

    def _batch(self, batch_size: int) -> Any:
        import jax

        def spec(feature: Any) -> Any:
            shape = (batch_size, *feature.shape)
            return jax.ShapeDtypeStruct(shape, feature.model_dtype, sharding=self._sharding("batch"))

        rows = jax.ShapeDtypeStruct((batch_size,), "float32", sharding=self._sharding("batch"))
        return (*self._examples(spec), *([rows] if self._question.is_weighted else []))

    def _examples(self, spec: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return features and label as the step gets them, each made by `spec` of its feature.

        Labels are floats, as `trainer.input.targets` makes them, whatever Transform wrote.
        """
        labels = self._question.labels
        floats = {name: replace(self._features[name], dtype="float32", categories=None) for name in labels}
        inputs = {name: spec(each) for name, each in self._features.items() if name not in labels}
        known = getattr(self._model, "_inputs_struct", None)
        if isinstance(known, dict):
            inputs = {name: inputs[name] for name in known}
        label = self._question.label
        if isinstance(label, str):
            return inputs, spec(floats[label])
        if not isinstance(label, Mapping):  # one label of several columns, side by side
            return inputs, spec(replace(floats[labels[0]], shape=(len(labels),)))
        return inputs, {output: spec(floats[name]) for output, name in label.items()}

    def _state(self) -> Any:
        model = self._model
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        return tuple([self._variable(each) for each in group] for group in groups)

    def _variable(self, variable: Any) -> Any:
        import jax

        sharding = self._sharding(*self._layout.axes(variable))
        return jax.ShapeDtypeStruct(variable.shape, variable.dtype, sharding=sharding)

    def _sharding(self, *axes: str | None) -> Any:
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self._mesh, PartitionSpec(*axes))


def _device_bytes(arrays: Iterable[Any]) -> int:
    """Return the size of what one device has of arrays, of which the shapes are known."""
    return sum(math.prod(each.sharding.shard_shape(each.shape)) * each.dtype.itemsize for each in arrays)

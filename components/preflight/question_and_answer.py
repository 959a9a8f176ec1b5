"""The compiling process's questions and answers, as plain values. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from slipway.components.trainer.features import PlainFeature
from slipway.components.trainer.labels import columns_of


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A TPU slice as the compiler and the rules need it.

    Attributes:
        name: as `train.tpu` has it.
        generation: key of `chips.CHIPS`.
        devices: cores that the batch is divided among, >= 1.
        hosts: machines, >= 1.
        topology: of chips, such as "2x4"; "" for the CPU.
        memory_bytes: of one device, that the compiler may use; 0: not known.
        machine: the JSON of the MachineSpec thon Vertex AI calls it by.
    """

    name: str
    generation: str
    devices: int
    hosts: int = 1
    topology: str = ""
    memory_bytes: int = 0
    machine: Mapping[str, object] = field(default_factory=dict)
    has_tensorflow: bool = True


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer that computes.

    Attributes:
        matrices: shapes of its weights of rank 2 and more.
        positions: how often they are used for one example: 1, or once at every place of a sequence or image.
        is_output: whether the model's output is its output.
        dtype: that it computes in.
    """

    name: str
    kind: str
    matrices: tuple[tuple[int, ...], ...] = ()
    positions: int = 1
    is_output: bool = False
    dtype: str = "float32"

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Layer":
        """Reads what `asdict` wrote."""
        return cls(**{**values, "matrices": tuple(tuple(shape) for shape in values["matrices"])})


@dataclass(frozen=True, kw_only=True)
class Trait:
    """A property of the step that no compiler refuses, and that its author may not mean.

    Attributes:
        kind: as `trait_rules.WORDS` has it.
        where: the layer and the user's line, in words; "" where they are not known.
    """

    kind: str
    where: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """The compiler's report on one training step.

    Attributes:
        batch_size: global, examples.
        error: why it does not compile; "" where it does.
        error_layer: the layer that it came from, "" where that is not known.
        error_cause: as `trainer.trace_error.TraceError.cause`, or "layout": it cannot divide a weight; ""
            where it was traced, or refused before.
        error_remedy: what to write instead; "" where that is not known.
        peak_bytes: of memory on one device; where it does not fit, what the compiler said is needed, 0 where
            it said no number.
        available_bytes: of memory on one device that the compiler may use; 0: not known.
        flops: of one device and step.
        moved_bytes: that one device reads and writes in one step, by the compiler's count.
        collective_bytes: that one device gives into all-reduces and the like in one step.
        compile_s: that it took.
    """

    batch_size: int
    error: str = ""
    error_layer: str = ""
    error_cause: str = ""
    error_remedy: str = ""
    is_out_of_memory: bool = False
    peak_bytes: int = 0
    available_bytes: int = 0
    flops: float = 0.0
    moved_bytes: float = 0.0
    collective_bytes: int = 0
    compile_s: float = 0.0

    @property
    def compiles(self) -> bool:
        """Whether the compiler took it; a TPU's takes only what fits."""
        return not self.error


@dataclass(frozen=True, kw_only=True)
class Answer:
    """All that the compiling process found for one slice.

    Attributes:
        step: of the batch size that was asked for.
        target: "tpu", or "cpu" where only XLA's lowering was checked.
        policy: Keras dtype policy it was built under.
        variables: paths of all weights.
        callbacks: primitives that call back to the host, with the layer they came from.
        fits_batch: the largest global batch that was compiled and fits; None: not searched.
        fails_batch: the smallest one that was compiled and does not; None: none was found.
        is_fast: whether it was compiled with the compiler's least effort.
        traits: of the step, that no compiler refuses.
        state_bytes: of weights and the optimizer's and the metrics' variables, on one device: what a step
            holds at least; 0: not known.
    """

    step: Compiled
    target: str
    parameters: int = 0
    policy: str = ""
    layers: tuple[Layer, ...] = ()
    variables: tuple[str, ...] = ()
    callbacks: tuple[str, ...] = ()
    fits_batch: int | None = None
    fails_batch: int | None = None
    is_fast: bool = False
    traits: tuple[Trait, ...] = ()
    state_bytes: int = 0

    def to_json(self) -> dict[str, object]:
        """Plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Answer":
        """Reads what `to_json` wrote."""
        return cls(
            **{
                **values,
                "step": Compiled(**values["step"]),
                "layers": tuple(Layer.from_json(each) for each in values["layers"]),
                "variables": tuple(values["variables"]),
                "callbacks": tuple(values["callbacks"]),
                "traits": tuple(Trait(**each) for each in values.get("traits", ())),
            }
        )


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question to the compiling process.

    Attributes:
        slice: to compile for; its generation "" means the CPU.
        features: with the label.
        label: its name, or several, see `trainer.labels`.
        batch_size: global, examples.
        precision: Keras dtype policy, or "auto": mixed_bfloat16.
        accumulate_steps: as `train` has it.
        model_parallel: devices that hold one copy of the model together.
        layout: as `train` has it.
        search_s: how long to search for the largest batch that fits; 0: not at all.
        is_fast: whether the step is compiled with the compiler's least effort: sooner, and less exactly.
    """

    slice: Slice
    model: str
    hyperparameters: Mapping[str, object]
    features: tuple[PlainFeature, ...]
    label: str | Mapping[str, str] | Sequence[str]
    batch_size: int
    precision: str = "auto"
    accumulate_steps: int = 1
    model_parallel: int = 1
    layout: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    search_s: float = 0.0
    is_fast: bool = False

    def to_json(self) -> dict[str, object]:
        """Plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Question":
        """Reads what `to_json` wrote."""
        return cls(
            **{**values, "slice": Slice(**values["slice"]), "features": tuple(values["features"])},
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all labels."""
        return columns_of(self.label)

    @property
    def replicas(self) -> int:
        """Copies of the model that the batch is divided among."""
        return max(1, self.slice.devices // self.model_parallel)

    @property
    def parts(self) -> int:
        """The number the batch must be a multiple of, as in `global_batch.require_divisible`."""
        return math.lcm(self.replicas, self.slice.hosts)

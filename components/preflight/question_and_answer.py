"""The question to the compiling process and its answer, as plain values. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from slipway.components.trainer.features import PlainFeature
from slipway.components.trainer.labels import columns_of


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A TPU slice as the compiler and the rules need it.

    Attributes:
        name: the name, as in `train.tpu`.
        generation: a key of `chip_specs.CHIPS`; "" for the CPU.
        devices: the number of JAX devices, among which the batch is divided, >= 1.
        hosts: the number of machines, >= 1.
        topology: the topology of the chips, such as "2x4"; "" for the CPU.
        memory_bytes: the memory of one device that the compiler may use; 0 if unknown.
        machine: the slice's MachineSpec on Vertex AI, as JSON.
        has_tensorflow: whether TensorFlow can train on the slice.
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
class Collective:
    """The collectives of one kind among the same devices, in one step; all sizes are of one device.

    Attributes:
        kind: one of `hlo.KINDS`.
        result_bytes: the size of the results of all of them.
        shape: the chips of a group along each axis of the slice, such as "4x4".
        links: the links of a chip that a group can use at once, see `torus.Span`.
        hops: the longest way in a group, in links.
    """

    kind: str
    count: int
    result_bytes: int
    devices: int
    chips: int
    shape: str
    links: int
    hops: int


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A loop of the user's code in the compiled step.

    Attributes:
        layer: the name of the layer that it is in; "" if it is in none.
        turns: how often its body's matrix products and collectives are counted in one step; None if its
            turns are unknown, and they are counted once.
    """

    layer: str
    turns: int | None


@dataclass(frozen=True, kw_only=True)
class MeshAxis:
    """One axis of the mesh of devices, as it lies on the slice.

    Attributes:
        name: "batch", along which the examples are divided, or "model", along which weights are.
        shape: the chips along it, such as "4x4"; "" for the CPU.
    """

    name: str
    devices: int
    shape: str = ""
    hosts: int = 1


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of the model.

    Attributes:
        name: its name; its path where another layer has the same name.
        kind: the name of its class.
        matrices: the shapes of its weights of rank 2 and more, without those of layers within it.
        positions: how often they are used for one example: once, or at each position of a sequence or image.
        is_frozen: whether the largest of these is not trained.
        line: the line of the user's code that made it, such as "model.py, line 12"; "" if unknown.
    """

    name: str
    kind: str
    matrices: tuple[tuple[int, ...], ...] = ()
    positions: int = 1
    is_output: bool = False
    is_frozen: bool = False
    dtype: str = "float32"
    line: str = ""

    @property
    def place(self) -> str:
        """The name, and the line if it is known."""
        return f"{self.name} ({self.line})" if self.line else self.name


@dataclass(frozen=True, kw_only=True)
class Trait:
    """A property of the step that no compiler refuses, but that its author may not intend.

    Attributes:
        kind: a key of `trait_rules.WORDS`, "batch_norm", "accumulates" or "jax_train_step".
        where: the layer and the line of the user's code, in words; "" if unknown.
        detail: the details that the message needs; "" for most kinds.
    """

    kind: str
    where: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """The compiler's report on one training step.

    Attributes:
        batch_size: the global batch size, in examples.
        error: why the step does not compile; "" if it compiles.
        error_layer: the layer that caused the error; "" if unknown.
        error_cause: a `trainer.trace_error.TraceError.cause`; "layout" if the training refuses the layout;
            "compiler" if the compiler refused the traced step; "" if the step compiles, or was refused before
            tracing.
        error_remedy: what to write instead; "" if unknown.
        is_out_of_memory: whether the step was refused for lack of memory.
        peak_bytes: the memory needed on one device; if the step does not fit, as reported by the compiler, 0
            if it reports no number.
        available_bytes: the memory of one device that the compiler may use; 0 if unknown.
        flops: the operations of one device in one step, those of matrices in each turn of a loop.
        moved_bytes: the bytes that one device reads and writes in one step, by the compiler's count: those in
            the body of a loop once.
        collective_bytes: the bytes of one device's collectives (all-reduce and the like) in one step.
        collectives: these collectives, by kind and group.
        loops: the loops of the user's code, of which the compiler counts one turn.
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
    collectives: tuple[Collective, ...] = ()
    loops: tuple[Loop, ...] = ()
    compile_s: float = 0.0

    @property
    def compiles(self) -> bool:
        """Whether the compiler accepted the step; for a TPU it accepts only a step that fits."""
        return not self.error


@dataclass(frozen=True, kw_only=True)
class Answer:
    """All that the compiling process found for one slice.

    Attributes:
        step: the report on the step with the requested batch size.
        target: "tpu", or "cpu" if the step was compiled for the CPU only.
        parameters: the number of the model's weights.
        policy: the Keras dtype policy under which the model was built.
        variables: the paths of all weights, those that are trained first.
        callbacks: the primitives that call back to the host, with the layers and lines that they come from.
        fits_batch: the largest global batch that was compiled and fits; None if not searched, or none fits.
        fails_batch: the smallest global batch that was compiled and does not fit; None if none was found.
        is_search_cut: whether the compiling process was ended while it searched for the largest batch.
        is_fast: whether the step was compiled with the compiler's least effort.
        traits: the traits of the step, which no compiler refuses.
        state_bytes: the size of the model's, optimizer's and metrics' variables on one device, the least that
            a step needs; 0 if unknown.
        mesh: the axes of the mesh of devices; empty if nothing was compiled.
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
    is_search_cut: bool = False
    is_fast: bool = False
    traits: tuple[Trait, ...] = ()
    state_bytes: int = 0
    mesh: tuple[MeshAxis, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain values, which `typed_json.typed` reads back."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question to the compiling process.

    Attributes:
        slice: the slice to compile for; the generation "" means the CPU.
        model: dotted path of `build_model`.
        hyperparameters: the arguments of `build_model`.
        features: the transformed features, including the label.
        label: the name of the label, or several labels, see `trainer.labels`.
        batch_size: the global batch size, in examples.
        precision: a Keras dtype policy, or "auto" for mixed_bfloat16.
        model_parallel: the number of devices that share one copy of the model.
        is_weighted: whether rows have weights, so that the step gets them beside features and label.
        bucket_by_length: `train.input.bucket_by_length`; the longest batches are compiled.
        search_s: how long to search for the largest batch that fits; 0 for no search.
        is_fast: whether to compile with the compiler's least effort, which is faster but less exact.
        has_several_devices: whether the training has several, whatever the compiler compiles for.
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
    is_weighted: bool = False
    bucket_by_length: Mapping[str, Sequence[int]] = field(default_factory=dict)
    search_s: float = 0.0
    is_fast: bool = False
    has_several_devices: bool = False

    def to_json(self) -> dict[str, object]:
        """Return plain values, which `typed_json.typed` reads back."""
        return asdict(self)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all labels."""
        return columns_of(self.label)

    @property
    def replicas(self) -> int:
        """The number of copies of the model, among which the batch is divided."""
        return max(1, self.slice.devices // self.model_parallel)

    @property
    def parts(self) -> int:
        """The number that the batch must be a multiple of, as in `global_batch.require_divisible`."""
        return math.lcm(self.replicas, self.slice.hosts)

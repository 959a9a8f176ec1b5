"""Explains why a model cannot be traced into a program, in terms of the user's code. Pure.

Frameworks report such an error in their own terms, deep below the user's line. The explanation names what the
user wrote: the layer, loss or metric, the line, what is wrong there, and what to write instead.

Errors are recognised by the names of their classes, and layers by those of their base classes, so that
neither JAX nor Keras is imported.
"""

import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, NamedTuple

from slipway.components.errors import SlipwayError
from slipway.components.trainer.user_model import describe, own_line

Cause = Literal["tensorflow", "host", "value", "leak", "shape", "other"]
_KINDS = {"Layer": "the layer", "Loss": "the loss", "Metric": "the metric", "BaseOptimizer": "the optimizer"}
_NO_PLACES = {"Model", "Functional", "Sequential", "CompileLoss", "CompileMetrics"}
"""Classes that call the user's code, but are not part of it."""
_ON_THE_HOST = {"Hashing", "HashedCrossing", "IntegerLookup", "StringLookup", "TextVectorization"}
"""Keras' own layers that compute with TensorFlow on every backend, in operations that no TPU has."""
_HOST_OPS = {"script_ops", "gen_string_ops", "lookup_ops", "gen_lookup_ops"}
"""Modules of TensorFlow whose operations no TPU has: tf.numpy_function, tf.strings, tf.lookup."""
_BY_VALUE = {"TracerBoolConversionError", "TracerIntegerConversionError", "ConcretizationTypeError"}
_SIZES = re.compile(r"statically specified|must be concrete|size argument|sequences of concrete values")
"""Phrases of JAX errors; in errors of other packages they mean something else."""
_NUMPY = re.compile(r"Tracer\w* has no attribute '?numpy\b")
_WRAPPED = re.compile(
    r"^Unable to automatically build the model|^Could not automatically infer the output shape"
    r"|'str' object has no attribute '_error_repr'$"
)
"""Messages of errors that Keras raised over the error itself; the last one by mistake: it makes a new error
of the same class from a text, and JAX's are not made of texts."""
LEAK: tuple[Cause, str, str] = (
    "leak",
    "it uses a tensor that an earlier call has kept (a leaked tracer)",
    "keep no tensor in self or in a global; what must last is a weight (add_weight, assign)",
)
"""Cause, words and remedy of a leaked tracer."""
_HOST: tuple[Cause, str, str] = (
    "host",
    "this layer of Keras computes on the host, and never within a step of JAX or on a TPU",
    "compute it in preprocessing_fn (tft.hash_strings, tft.compute_and_apply_vocabulary, ...), and give the "
    "model its integers",
)


@dataclass(frozen=True, kw_only=True)
class TraceError:
    """A tracing error, explained in words.

    Attributes:
        place: the layer, loss, metric or optimizer, and the user's line, in words; "" if unknown.
        cause: "tensorflow": the code calls TensorFlow, or a method of its tensors, within another backend;
            "host": a layer of Keras or an operation of TensorFlow computes on the host only, whatever the
            backend is; "value": Python needs a value that only the device has; "leak": the code uses a value
            of an earlier trace; "shape": shapes do not match, or are not fixed; "other".
        remedy: what to write instead; "" if unknown.
        layer: the name of the layer that the error came from; "" if it came from none.
    """

    words: str
    place: str
    cause: Cause
    remedy: str = ""
    layer: str = ""

    @property
    def message(self) -> str:
        """The place, if known, and the words."""
        return f"{self.place}: {self.words}" if self.place else self.words


def explain(error: BaseException, dotted_path: str) -> TraceError:
    """Explain an error that was raised while a model was traced.

    Args:
        error: as caught, with its traceback, and with Keras' traceback filtering off.
        dotted_path: the user's function; code below its top package counts as the user's. "": unknown.
    """
    error = _original(error)
    frames = list(traceback.walk_tb(error.__traceback__))
    place, layer = _place([frame for frame, _ in frames])
    if not own_line(_files(frames), dotted_path):
        frames += _frames_before(error)
    files = _files(frames)
    line = own_line(files, dotted_path)
    modules = [_module(frame) for frame, _ in frames]
    cause: Cause
    if isinstance(error, SlipwayError):
        cause, words, remedy = "other", error.message, error.hint
    elif _is_on_the_host([frame for frame, _ in frames]):
        cause, words, remedy = _HOST
    else:
        cause, words, remedy = _judged(error, modules[_after(files, line) :])
    if words:
        place = ", ".join(filter(None, (place, line)))
    else:
        words = describe(error, dotted_path)  # includes the line
    return TraceError(words=words, place=place, cause=cause, remedy=remedy, layer=layer)


def _frames_before(error: BaseException) -> list[tuple[FrameType, int]]:
    """Return the frames of the call whose gradient failed, which JAX names as the error's cause."""
    before = error.__cause__
    if before is None or type(before).__name__ != "JaxStackTraceBeforeTransformation":
        return []
    return list(traceback.walk_tb(before.__traceback__))


def _files(frames: list[tuple[FrameType, int]]) -> list[tuple[str, int]]:
    return [(frame.f_code.co_filename, line) for frame, line in frames]


def layer_and_line(frame: FrameType | None, dotted_path: str) -> str:
    """Describe the place of the user's code that a call came from; "" if none of it is on the stack.

    Args:
        frame: the innermost frame to search; the search goes on to its callers.
        dotted_path: as in `explain`.
    """
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    line = own_line([(each.f_code.co_filename, each.f_lineno) for each in frames], dotted_path)
    return ", ".join(filter(None, (_place(frames)[0], line))) if line else ""


def _original(error: BaseException) -> BaseException:
    """Return the error itself, without the one that Keras raised over it."""
    while error.__context__ is not None and _WRAPPED.search(str(error)):
        error = error.__context__
    return error


def _module(frame: FrameType) -> str:
    """Return a frame's module; that of the operation for TensorFlow's filter, which cuts the frames below it
    from a traceback, and has the dispatcher that called the operation as `fn`."""
    name = str(frame.f_globals.get("__name__", ""))
    if name != "tensorflow.python.util.traceback_utils" or "fn" not in frame.f_locals:
        return name
    operation = inspect.getclosurevars(frame.f_locals["fn"]).nonlocals.get("dispatch_target")
    return str(getattr(operation, "__module__", name))


class _Raised:
    """What the rules know of an error.

    Attributes:
        classes: the names of its class and of that one's bases.
        text: its message.
        packages: of the frames called by the user's innermost line, the innermost last.
        modules: the names of their modules, without the packages.
    """

    def __init__(self, error: BaseException, below: list[str]) -> None:
        self.classes = {base.__name__ for base in type(error).__mro__}
        self.text = str(error)
        self.packages = [module.partition(".")[0] for module in below]
        self.modules = {module.rpartition(".")[2] for module in below}
        self._raised_by = {type(error).__module__.partition(".")[0], *self.packages[-1:]}

    @property
    def is_of_jax(self) -> bool:
        """Whether JAX made or raised it."""
        return bool(self._raised_by & {"jax", "jaxlib"})


class _Rule(NamedTuple):
    """What to say of the errors for which `applies` is true; \\1 and \\2 in it are groups of its match."""

    applies: Callable[[_Raised], object]
    cause: Cause
    words: str
    remedy: str


def _says(pattern: str) -> Callable[[_Raised], object]:
    """Return a predicate: a part of the message matches the pattern."""
    compiled = re.compile(pattern)
    return lambda raised: compiled.search(raised.text)


_RULES: tuple[_Rule, ...] = (
    _Rule(
        lambda raised: "tensorflow" in raised.packages and _HOST_OPS & raised.modules,
        "host",
        "TensorFlow is called for what it computes on the host, never within a step of JAX or on a TPU",
        "keras.ops instead, or compute it in preprocessing_fn, and give the model its numbers",
    ),
    _Rule(
        lambda raised: "tensorflow" in raised.packages,
        "tensorflow",
        "TensorFlow is called, which cannot compute within a step of JAX",
        "keras.ops instead of tf: it computes on every backend",
    ),
    _Rule(lambda raised: "UnexpectedTracerError" in raised.classes, *LEAK),
    _Rule(
        lambda raised: "TracerArrayConversionError" in raised.classes or _NUMPY.search(raised.text),
        "value",
        "NumPy wants a value that only the device has",
        "keras.ops instead of numpy",
    ),
    _Rule(
        _says(r"Tracer\w* has no attribute '?(\w+)"),
        "tensorflow",
        r"JAX's tensors have no \1, as those of another backend may have",
        "keras.ops, which computes on every backend; x.shape for get_shape()",
    ),
    _Rule(
        lambda raised: (
            "NonConcreteBooleanIndexError" in raised.classes
            or (raised.is_of_jax and _SIZES.search(raised.text))
        ),
        "value",
        "the shape of a result depends on values, and a TPU's program has fixed shapes",
        "a fixed size: ops.where with a mask, ops.top_k, or compute it in preprocessing_fn",
    ),
    _Rule(
        lambda raised: raised.classes & _BY_VALUE,
        "value",
        "Python wants a value that only the device has (if, while, float(), int(), range())",
        "keras.ops instead of Python: ops.where, ops.cond, ops.fori_loop with a fixed number of turns",
    ),
    _Rule(
        _says(
            r"(?:Python int(?:eger)?|<class 'int'> with value) (-?\d+)\b(?! out of bounds for u?int(?:8|16))"
        ),
        "value",
        r"the integer \1 does not fit into int32, and no TPU has int64",
        "a float (2.0**40) where fractions are computed, np.uint32(...) for an unsigned one below 2**32; or "
        "smaller codes (hash buckets, a vocabulary), made in preprocessing_fn",
    ),
    _Rule(
        _says(r"\[JAX RNG\]"),
        "value",
        "random numbers are drawn without a seed that changes from step to step",
        "keras.random with seed=, a SeedGenerator that the layer keeps",
    ),
    _Rule(
        _says("JAX arrays are immutable"),
        "value",
        "a tensor is changed in place, and JAX changes none",
        "ops.where, ops.slice_update or ops.scatter_update, which return a new one",
    ),
    _Rule(
        _says("Reverse-mode differentiation does not work"),
        "value",
        "the number of a loop's turns depends on values, so that it has no gradient",
        "ops.fori_loop with a fixed number of turns, and ops.where for what is done before the last",
    ),
    _Rule(
        _says(r"Received: target\.shape=(\(.*?\)), output\.shape=(\(.*?\))"),
        "shape",
        r"the label has the shape \1, the model's output \2: the loss needs equal shapes",
        "as many units as the label has numbers; for labels that are class indices a sparse_ loss",
    ),
    _Rule(
        lambda raised: "multi_head_attention" in raised.modules and "IndexError" in raised.classes,
        "shape",
        "attention is asked for over what has no positions",
        "an input of rows, positions and values, as keras.layers.Reshape makes one",
    ),
    _Rule(
        _says(r"contracting dimensions to have the same shape, got \((\d+),\) and \((\d+),\)"),
        "shape",
        r"a product needs two equal sizes, and has \1 and \2",
        "a Dense layer that makes the one as wide as the other, or other units",
    ),
    _Rule(
        _says(r"incompatible shapes for broadcasting: (\(.*?\)), (\(.*?\))"),
        "shape",
        r"the shapes \1 and \2 do not go together",
        "equal sizes, or 1, in each dimension from the last one on: ops.expand_dims, ops.reshape",
    ),
    _Rule(
        _says("y_true and y_pred have different structures"),
        "shape",
        "the model has more than one output, and there is one label",
        "transform.label: {OUTPUT: COLUMN} names a label for each output; or one output, such as several "
        "joined by keras.layers.Concatenate",
    ),
    _Rule(
        _says(r"`(ragged|sparse)=True` (?:is not supported|can only be used) with"),
        "shape",
        r"\1=True is asked for, and a step of JAX has dense tensors of fixed shapes",
        r"leave \1 out: keras.Input(features[NAME].shape); padded_lists in preprocessing_fn makes lists "
        "equally long",
    ),
    _Rule(
        _says("synchronized=True is only supported"),
        "tensorflow",
        "synchronized=True is an argument of TensorFlow's alone",
        "leave it out: JAX normalises all examples of a step together",
    ),
    _Rule(
        _says("The structure of `inputs` doesn't match"),
        "shape",
        "a model is called with other inputs than its own",
        "the inputs by the names, or in the order, that the model was made with",
    ),
    _Rule(
        _says(r"(?:does not accept dtype |float64, got |[Uu]nsupported dtype |input type=)(b?float16)"),
        "value",
        r"an operation does not take \1, in which the layer computes (train.precision)",
        'ops.cast(values, "float32") before it, or dtype="float32" for the layer',
    ),
    _Rule(
        _says("__jax_array__"),
        "other",
        "a variable itself is returned, as easily by a metric's result, or given to a function that takes "
        "only its value, as ops.where does",
        "variable.value, or ops.convert_to_tensor(variable)",
    ),
)
"""What errors mean, in the order in which they are asked: the first that applies counts."""


def _judged(error: BaseException, below: list[str]) -> tuple[Cause, str, str]:
    """Return cause, words and remedy by the first of `_RULES` that applies; the words are empty if none does:
    the error's own message is as good.

    Args:
        below: modules of the frames called by the user's innermost line, the innermost last.
    """
    raised = _Raised(error, below)
    for applies, cause, words, remedy in _RULES:
        if found := applies(raised):
            if isinstance(found, re.Match):
                words, remedy = found.expand(words), found.expand(remedy)
            return cause, words, remedy
    return "other", "", ""


def _after(files: list[tuple[str, int]], line: str) -> int:
    """Return the index of the first frame below the user's innermost line; 0 if no line is the user's."""
    if not line:
        return 0
    file, _, number = line.rpartition(", line ")
    return 1 + max(at for at, (name, each) in enumerate(files) if name.endswith(file) and str(each) == number)


def _place(frames: list[FrameType]) -> tuple[str, str]:
    """Describe the innermost layer, loss, metric or optimizer that was called; also name it if a layer.

    A layer that a layer of Keras' own is made of, as the Softmax of MultiHeadAttention, is not the user's:
    that one is told.
    """
    place, layer = "", ""
    for frame in reversed(frames):
        itself = frame.f_locals.get("self")
        kind, words = next(_kinds(itself), ("", ""))
        is_of_keras = type(itself).__module__.startswith("keras.")
        if not kind or (place and not is_of_keras):
            continue
        name = str(getattr(itself, "name", "")) or type(itself).__name__
        if kind != "Layer":
            return (place, layer) if place else (f"{words} {name!r}", "")
        place, layer = f"{words} {name!r} ({type(itself).__name__})", name
        if not is_of_keras:
            break
    return place, layer


def _is_on_the_host(frames: list[FrameType]) -> bool:
    """Return True if the innermost layer, loss, metric or optimizer is one of `_ON_THE_HOST`."""
    for frame in reversed(frames):
        itself = frame.f_locals.get("self")
        if any(_kinds(itself)):
            return bool(_keras_classes(itself) & _ON_THE_HOST)
    return False


def _keras_classes(itself: Any) -> set[str]:
    return {base.__name__ for base in type(itself).__mro__ if base.__module__.startswith("keras.")}


def _kinds(itself: Any) -> Iterator[tuple[str, str]]:
    names = _keras_classes(itself)
    if not names & _NO_PLACES:
        yield from ((kind, words) for kind, words in _KINDS.items() if kind in names)

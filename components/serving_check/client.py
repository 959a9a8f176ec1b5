"""Loads a SavedModel with nothing but TensorFlow, and queries it.

Run as `python -I client.py PARENT MODEL FOLDER LIMIT_S`: the process ends with its parent process PARENT, and
after LIMIT_S seconds in any case, even if the model hangs in native code. It can also be started ahead, so
that TensorFlow is already imported when the model is ready: see `slipway/components/isolated_script.py`.

The script stands alone: it imports nothing of this project, and blocks imports that a server does not have.
FOLDER holds `real.tfrecord` and `perturbed.tfrecord` (serialized requests), `full.tfrecord` (the real rows
with the label's columns, for the transform) and `questions.json`. Each finding is one line of JSON on stdout,
so that findings before a crash are not lost; the answers go to `answers.npz`.
"""

import ctypes
import gc
import json
import math
import os
import signal
import socket
import sys
import time
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    import numpy as np
    import tensorflow

# The pipeline's packages, and those that TensorFlow imports if they are installed, which takes as long again
# as the rest of it. A model that needs one of these cannot be served.
REFUSED = frozenset(
    {
        "IPython", "apache_beam", "components", "googleapiclient", "pandas", "pipeline", "scipy", "sklearn",
        "slipway", "tensorflow_data_validation", "tensorflow_model_analysis", "tensorflow_transform", "tfx",
        "tfx_bsl", "workloads",
    }
)  # fmt: skip
# The value of an empty cell in an integer column of `serve_raw`, see `saved_model_export`.
EMPTY_INTEGER = -(2**63)
WARM_UP_CALLS = 10
# What TensorFlow writes before the reason of an error, as in `framework_errors`.
_ABOUT_THE_GRAPH = ("Graph execution error", "Detected at node", "<stack traces", 'File "')
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LINE_BYTES = 1 << 16


_Tensors = dict[str, tuple[str, list[int | None], str]]
"""For each tensor of a signature, by name: its type, its shape, its name in the graph."""


class _Signature(TypedDict):
    inputs: _Tensors
    outputs: _Tensors


class _Questions(TypedDict):
    """The number of rows to send also one by one, the batch sizes to time, and the seconds for each."""

    alone_rows: int
    batches: list[int]
    budget_s: float


class _OnlyTensorFlow(MetaPathFinder):
    """Refuses to import what a server does not have."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"a model server has no {name}", name=name)


def bound(parent: int, limit_s: float) -> None:
    """Let the kernel end this process with its parent and after a time limit.

    Every other process that could end it may be gone.

    Args:
        parent: process id of the parent.
        limit_s: seconds from now; 0: no limit.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    signal.setitimer(signal.ITIMER_REAL, limit_s)  # SIGALRM, which is not handled here


def import_tensorflow() -> float:
    """Import TensorFlow, and nothing else that is large; return the seconds that it took."""
    sys.meta_path.insert(0, _OnlyTensorFlow())
    began = time.perf_counter()
    gc.disable()  # imports create no garbage, and collections would take longer than the imports
    import tensorflow  # noqa: F401

    gc.freeze()
    gc.enable()
    return time.perf_counter() - began


def wait_for_arguments(line: socket.socket) -> list[str]:
    """Receive the arguments on a socket, and redirect the output and the errors as requested there."""
    data, descriptors, _, _ = socket.recv_fds(line, _LINE_BYTES, 2)
    while data and not data.endswith(b"\n"):
        more = line.recv(_LINE_BYTES)
        data = data + more if more else b""
    if not data:  # the process that might have needed this one is gone
        os._exit(0)
    request = json.loads(data)
    # Ending the requesting node's process group then ends this process, too.
    os.setpgid(0, request["group"])
    for target, descriptor in zip((1, 2), descriptors, strict=True):
        os.dup2(descriptor, target)
        os.close(descriptor)
    arguments: list[str] = request["arguments"]
    return arguments


def main(model_folder: str, folder: str, *, import_s: float) -> int:
    """Send all requests; return 0 even if the model fails, because a failure is a finding."""
    import tensorflow as tf

    questions = json.loads(Path(folder, "questions.json").read_text(encoding="utf-8"))
    tell("imported", import_s=import_s, tensorflow=tf.__version__)
    tell("stage", stage="loading")
    before = _peak_bytes()
    began = time.perf_counter()
    try:
        model = tf.saved_model.load(model_folder)
    except Exception as error:  # any exception of TensorFlow is a finding
        tell("failed", stage="loading", error=_words(error))
        return 0
    tell("loaded", load_s=time.perf_counter() - began, memory_before_bytes=before)
    signatures = _signatures(Path(model_folder))
    tell("signatures", signatures=signatures)
    if "serving_default" in model.signatures:
        _ask(tf, model, signatures, Path(folder), questions)
    tell("memory", memory_bytes=_peak_bytes())
    return 0


def _ask(tf: Any, model: Any, signatures: dict[str, _Signature], folder: Path, questions: _Questions) -> None:
    import numpy as np

    real, full, perturbed = (
        [record.numpy() for record in tf.data.TFRecordDataset(str(folder / f"{name}.tfrecord"))]
        for name in ("real", "full", "perturbed")
    )
    answer = _Answers(tf, model.signatures["serving_default"])
    answers: dict[str, Any] = {}
    tell("stage", stage="answering real rows")
    if _told(lambda: answers.update(real=answer(real)), "real"):
        tell("stage", stage="answering rows one by one")
        few = real[: questions["alone_rows"]]
        _told(lambda: answers.update(alone=np.concatenate([answer([row]) for row in few])), "alone")
        if "serve_raw" in model.signatures:
            tell("stage", stage="answering raw columns")
            inputs = signatures["serve_raw"]["inputs"]
            _told(lambda: answers.update(raw=_raw(tf, model.signatures["serve_raw"], inputs, real)), "raw")
        if "transform_features" in model.signatures:
            tell("stage", stage="transforming")
            _told(lambda: answers.update(_transformed(tf, model, full)), "transform")
    tell("stage", stage="answering perturbed rows")
    _perturbed(np, answer, perturbed)
    np.savez(folder / "answers.npz", **answers)
    if "real" in answers:
        for rows in questions["batches"]:
            tell("stage", stage=f"answering batches of {rows}")
            batch = tf.constant((real * (rows // len(real) + 1))[:rows])
            tell("latency", rows=rows, **_latency(answer, batch, questions["budget_s"]))


class _Answers:
    """The signature as a function from serialized rows to float64 [rows, ...], all outputs side by side."""

    def __init__(self, tf: Any, signature: Any) -> None:
        self._tf = tf
        self._signature = signature
        [self._argument] = signature.structured_input_signature[1]

    def __call__(self, rows: Any) -> Any:
        return _side_by_side(self._signature(**{self._argument: self._tf.constant(rows)}))


def _side_by_side(outputs: "dict[str, tensorflow.Tensor]") -> Any:
    import numpy as np

    numbers = [outputs[name].numpy() for name in sorted(outputs) if outputs[name].dtype.is_floating]
    if not numbers:
        raise TypeError(f"no output of {', '.join(sorted(outputs))} holds numbers")
    return np.concatenate([each.reshape(len(each), -1) for each in numbers], axis=1).astype(np.float64)


def _raw(tf: Any, signature: Any, inputs: _Tensors, rows: list[bytes]) -> Any:
    empty = {"string": b"", "int64": EMPTY_INTEGER}
    parsed = [_values(tf.train.Example.FromString(row)) for row in rows]
    tensors = {}
    for name, (dtype, shape, tensor) in inputs.items():
        found = [row.get(name) or [] for row in parsed]
        # A list column is as wide as its longest list.
        cell = [max([1, *map(len, found)]) if dimension is None else dimension for dimension in shape[1:]]
        filler = empty.get(dtype, float("nan"))
        values = [row + [filler] * (math.prod(cell) - len(row)) for row in found]
        # As in components/saved_model/input_names.py: not every column name can be a Python parameter.
        traced = tensor.partition(":")[0].removeprefix("serve_raw_")
        parameter = traced if traced in signature.structured_input_signature[1] else name
        tensors[parameter] = tf.reshape(tf.constant(values, dtype), [-1, *cell])
    return _side_by_side(signature(**tensors))


def _values(example: Any) -> dict[str, list[Any]]:
    found = {}
    for name, feature in example.features.feature.items():
        kind = feature.WhichOneof("kind")
        found[name] = list(getattr(feature, kind).value) if kind else []
    return found


def _transformed(tf: Any, model: Any, rows: list[bytes]) -> "dict[str, np.ndarray]":
    signature = model.signatures["transform_features"]
    [argument] = signature.structured_input_signature[1]
    outputs = signature(**{argument: tf.constant(rows)})
    return {
        f"transformed/{name}": values.numpy()
        for name, values in outputs.items()
        if values.dtype.is_floating or values.dtype.is_integer
    }


def _perturbed(np: Any, answer: _Answers, rows: list[bytes]) -> None:
    """Send all rows at once, as a busy server would; if that fails, one by one to find the cause."""
    try:
        _tell_not_finite(np, answer(rows), range(len(rows)))
    except Exception:  # any exception of TensorFlow; the loop finds the row
        for number, row in enumerate(rows):
            try:
                _tell_not_finite(np, answer([row]), [number])
            except Exception as error:  # as above
                tell("refused", row=number, type=type(error).__name__, error=_words(error))


def _tell_not_finite(np: Any, answers: Any, numbers: Any) -> None:
    for number, values in zip(numbers, answers, strict=True):
        if not np.isfinite(values).all():
            tell("not_finite", row=number)


def _latency(answer: _Answers, batch: Any, budget_s: float) -> dict[str, float]:
    """Time the calls of one client, one after the other, each until its numbers are there."""
    for _ in range(WARM_UP_CALLS):
        answer(batch)
    times: list[float] = []
    until = time.perf_counter() + budget_s
    while len(times) < 20 or (time.perf_counter() < until and len(times) < 2000):
        began = time.perf_counter()
        answer(batch)
        times.append(time.perf_counter() - began)
    times.sort()
    return {
        "calls": len(times),
        "p50_ms": 1000 * times[len(times) // 2],
        "p99_ms": 1000 * times[min(len(times) - 1, int(len(times) * 0.99))],
        "rows_per_s": len(times) * int(batch.shape[0]) / sum(times),
    }


def _signatures(model_folder: Path) -> dict[str, _Signature]:
    """Return the signatures as a server reads them: by name the inputs and outputs, as `_Tensors`."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    def described(tensors: Any) -> _Tensors:
        return {
            name: (tf.as_dtype(each.dtype).name, tf.TensorShape(each.tensor_shape).as_list(), each.name)
            for name, each in tensors.items()
        }

    saved = saved_model_pb2.SavedModel.FromString((model_folder / "saved_model.pb").read_bytes())
    return {
        name: {"inputs": described(each.inputs), "outputs": described(each.outputs)}
        for name, each in saved.meta_graphs[0].signature_def.items()
        if not name.startswith("__")  # TensorFlow's own
    }


def _told(ask: Any, stage: str) -> bool:
    try:
        ask()
    except Exception as error:  # any exception of TensorFlow is a finding
        tell("failed", stage=stage, error=_words(error))
        return False
    return True


def _words(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = [
        line
        for line in lines
        if not line.startswith(_ABOUT_THE_GRAPH) and not line.endswith("root error(s) found.")
    ]
    return f"{type(error).__name__}: {(useful or lines or ['no message'])[0]}"[:300]


def _peak_bytes() -> int:
    # Not getrusage: its peak starts with that of the parent process.
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def tell(event: str, **values: Any) -> None:
    """Report one finding."""
    print(json.dumps({"event": event, **values}), flush=True)


def _start(arguments: list[str]) -> int:
    if arguments[0] == "--ahead":
        parent = int(arguments[1])
        bound(parent, 0)
        import_s = import_tensorflow()
        with socket.socket(fileno=os.dup(0)) as line:
            model, folder, limit_s = wait_for_arguments(line)
        bound(parent, float(limit_s))
    else:
        model, folder, limit_s = arguments[1:]
        bound(int(arguments[0]), float(limit_s))
        import_s = import_tensorflow()
    os.chdir(folder)
    return main(model, folder, import_s=import_s)


if __name__ == "__main__":
    sys.exit(_start(sys.argv[1:]))

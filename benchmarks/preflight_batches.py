"""Searches the largest batch of three models, and has the compiler judge both sides of it with full effort.

    .venv-tpu/bin/python -m benchmarks.preflight_batches [NAME...]

For one v5e: a network of dense layers, one of convolutions, and one that is mostly an embedding. The search
is the preflight's own. Then the batch that it found, and the next larger one, are compiled as for training.
Each model runs in a process of its own. Prints a line for each compilation; the exit code is 1 if the found
batch does not compile, or the next larger one does.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import replace

from slipway.components.preflight import compile_and_measure
from slipway.components.preflight.chip_specs import CHIPS, GIB
from slipway.components.preflight.question_and_answer import Compiled, Question, Slice

V5E_1 = Slice(
    name="v5e-1", generation="v5e", devices=1, topology="1x1", memory_bytes=CHIPS["v5e"].usable_bytes
)
# By name: the dtype and shape of an example, and the batch at which the search begins.
MODELS = {
    "dense": ("float32", [1024], 65536),
    "convolutions": ("float32", [64, 64, 3], 2048),
    "embedding": ("int64", [256], 4096),
}
SEARCH_S = 1200.0


def dense(features, hyperparameters):
    """Return one layer of 32,768 units."""
    del hyperparameters
    import keras

    x = keras.Input(features["x"].shape, name="x")
    return _compiled(x, keras.layers.Dense(2**15, activation="gelu")(x))


def convolutions(features, hyperparameters):
    """Return two convolutions, the second with normalisation; the activations are most of the memory."""
    del hyperparameters
    import keras

    x = keras.Input(features["x"].shape, name="x")
    hidden = keras.layers.Conv2D(128, 3, padding="same", activation="relu")(x)
    hidden = keras.layers.Conv2D(128, 3, padding="same")(hidden)
    hidden = keras.layers.ReLU()(keras.layers.BatchNormalization()(hidden))
    return _compiled(x, keras.layers.GlobalAveragePooling2D()(hidden))


def embedding(features, hyperparameters):
    """Return an embedding of a million codes, a layer on each code of an example, and the mean."""
    del hyperparameters
    import keras

    x = keras.Input(features["x"].shape, name="x", dtype="int32")
    codes = keras.layers.Embedding(2**20, 256)(x)
    hidden = keras.layers.Dense(512, activation="relu")(codes)
    return _compiled(x, keras.layers.GlobalAveragePooling1D()(hidden))


def _compiled(x, hidden):
    import keras

    model = keras.Model({"x": x}, keras.layers.Dense(1, dtype="float32")(hidden))
    model.compile(optimizer="adam", loss="mse")
    return model


def question(name: str) -> Question:
    """Return what is asked about one of the models."""
    dtype, shape, batch_size = MODELS[name]
    return Question(
        slice=V5E_1,
        model=f"benchmarks.preflight_batches.{name}",
        hyperparameters={},
        features=(
            {"name": "x", "dtype": dtype, "shape": shape, "categories": None},
            {"name": "y", "dtype": "float32", "shape": [1], "categories": None},
        ),
        label="y",
        batch_size=batch_size,
        search_s=SEARCH_S,
    )


def check(name: str) -> bool:
    """Search, compile both sides, print what came of it, and return whether the found batch compiles."""
    began, cpu = time.monotonic(), time.process_time()
    asked = question(name)
    answer = compile_and_measure.answer_to(asked)
    searched_s, cpu_s = time.monotonic() - began, time.process_time() - cpu
    print(
        f"{name}: {answer.parameters:,} weights; fits {answer.fits_batch:,}, fails "
        f"{answer.fails_batch or 0:,}; search {cpu_s:.0f} s of CPU, {searched_s:.0f} s",
        flush=True,
    )
    fits = answer.fits_batch or 0
    judged = {size: _fully(asked, size) for size in (fits, fits + 8)}
    for size, said in judged.items():
        verdict = "compiles" if said.compiles else "refused"
        print(f"  {size:,}: {verdict}, {said.peak_bytes / GIB:.2f} GiB, {said.compile_s:.1f} s", flush=True)
    return judged[fits].compiles and not judged[fits + 8].compiles


def _fully(asked: Question, batch_size: int) -> Compiled:
    return compile_and_measure.answer_to(replace(asked, batch_size=batch_size, search_s=0.0)).step


def main() -> int:
    """Check the models, each in a new process, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*MODELS, []], help="default: all")
    names = parser.parse_args().names or list(MODELS)
    if len(names) == 1:
        compile_and_measure._prepare()
        return 0 if check(names[0]) else 1
    command = [sys.executable, "-m", "benchmarks.preflight_batches"]
    codes = [subprocess.run([*command, name], check=False).returncode for name in names]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())

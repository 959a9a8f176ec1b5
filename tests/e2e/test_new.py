"""A workload that `new` wrote from images, run as a user runs it; one from a table is in test_installed.py.

Seen only here: what `new` writes for images runs as it is, up to a model that answers; and that `new` asks on
a terminal.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from copied import copy_of, import_path
from PIL import Image

from slipway.components.python_process import ForkedProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def copy(tmp_path_factory, project):
    """A copy of the project: what `new` writes lies beside the code."""
    return copy_of(project, tmp_path_factory.mktemp("new"), "workloads")


@pytest.mark.external
@pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn
def test_folders_of_images_become_a_pushed_model_without_an_edit(copy, here, project):
    import tensorflow as tf

    with np.load(project / "workloads/digits/digits.npz") as arrays:
        # 14 x 14 of their 28 x 28 pixels: a quarter of the training's time.
        images = np.concatenate([arrays["x_train"], arrays["x_test"]])[:, ::2, ::2]
        classes = np.concatenate([arrays["y_train"], arrays["y_test"]])
    for number, (image, digit) in enumerate(zip(images, classes, strict=True)):
        folder = copy / "shapes" / f"digit {digit}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number}.png")
    (folder / "broken.png").write_bytes((folder / f"{number}.png").read_bytes()[:-40])

    told = here("new", "shapes", "--data", "shapes")
    assert "1,797 images of 10 classes." in told
    assert f"1 image cannot be read: digit {digit}/broken.png" in told
    # What is served is asked below; in a clean process, a table's model is. Of 100 epochs 32 will do.
    here("run", "shapes", "--set", "evaluate.serving=null", "--set", "train.epochs=32")
    run = json.loads(here("show", "--json"))
    assert run["pushed"], "the model is pushed"
    assert run["metrics"]["sparse_categorical_accuracy"] >= 0.95
    manifest = json.loads((Path(run["pushed"]["path"]) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["classes"] == [f"digit {digit}" for digit in range(10)]
    page = (copy / "output" / "runs" / run["run_id"] / "report.html").read_text(encoding="utf-8")
    assert "cannot be shown" not in page
    assert "broken.png" in page, "among the rejected rows"
    # What is served takes the files as they are.
    asked = [file for file in sorted((copy / "shapes").rglob("*.png"))[::18] if file.stem != "broken"]
    served = tf.saved_model.load(run["pushed"]["path"]).signatures["serve_raw"]
    answers = served(image=tf.constant([[file.read_bytes()] for file in asked]))["outputs"].numpy()
    right = [
        manifest["classes"][code] == file.parent.name
        for code, file in zip(answers.argmax(axis=1), asked, strict=True)
    ]
    assert np.mean(right) >= 0.9


@pytest.mark.external
def test_an_npz_becomes_a_model_in_fewer_epochs_than_it_is_given(copy, here, project):
    """The tests of folders above, and test_digits.py for an npz, cover the verdict and the push."""
    with np.load(project / "workloads/digits/digits.npz") as arrays:
        # Fractions, as many tutorials save them.
        parts = {name: values / 255 if name[0] == "x" else values for name, values in arrays.items()}
    np.savez(copy / "fractions.npz", **parts)

    told = here("new", "fractions", "--data", "fractions.npz")
    assert "trained on train, evaluated on test" in told
    here("run", "fractions", "--set", "train.epochs=5", "--to", "Trainer")
    [result] = (copy / "output/artifacts/fractions/Trainer/model_run").glob("*/result.json")
    result = json.loads(result.read_text(encoding="utf-8"))
    assert (result["epochs"], result["train_rows"], result["eval_rows"]) == (5, 1442, 355)
    assert result["metrics"]["val_accuracy"] >= 0.85


@pytest.mark.external
def test_each_workload_brings_tests_that_pass(copy, here, project, warm, wine_table):
    """Those of folders of images, an npz and a table with lists, in one process.

    It has imported TFX; that such tests bear the warnings of its imports is seen in test_own_parts.py.
    """
    with np.load(project / "workloads/digits/digits.npz") as arrays:
        images, is_high = arrays["x_train"][:300, ::2, ::2], arrays["y_train"][:300] > 4
    np.savez(copy / "two.npz", x_train=images / 255, y_train=is_high)
    here("new", "two", "--data", "two.npz")
    for number, (image, name) in enumerate(zip(images, is_high, strict=True)):
        (copy / "sides" / str(name)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(copy / "sides" / str(name) / f"{number}.png")
    here("new", "sides", "--data", "sides")
    rows = range(len(wine_table))
    with_lists = wine_table.assign(
        notes=[["oak", "plum", "salt"][row % 3 :] for row in rows],
        tests=[[row / 7] * (row % 4) for row in rows],
        spectrum=[[row % 5, row / 3] for row in rows],
    )
    with_lists.to_json(copy / "wine.jsonl", orient="records", lines=True)
    here("new", "wine", "--data", "wine.jsonl", "--label", "target")
    begun = [
        path
        for path in (copy / "tests/unit/workloads").glob("test_*.py")
        if path.stem.startswith(("test_two", "test_sides", "test_wine"))
    ]
    assert len(begun) >= 3
    environment = {**os.environ, "PYTHONPATH": import_path(copy)}
    process = ForkedProcess(warm._line, "staged_tests", ["-q", *map(str, begun)], environment)
    with process.stdout as stdout:
        told = stdout.read()
    assert process.wait() == 0, told
    tests = sum(path.read_text(encoding="utf-8").count("\ndef test_") for path in begun)
    assert f"{tests} passed" in told


def test_on_a_terminal_what_is_ambiguous_is_asked(copy, tmp_path):
    name = tmp_path.name  # another one if the test runs again
    (copy / "steps.csv").write_text(
        "size,grade\n" + "".join(f"{n / 7},{3 + 2 * (n % 4)}\n" for n in range(300))
    )
    ours, theirs = os.openpty()
    command = [sys.executable, "local_runner.py", "new", name, "--data", "steps.csv"]
    with subprocess.Popen(
        command, cwd=copy, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        os.close(theirs)
        os.write(ours, b"grad\ngrade\nregression\n")
        told = process.communicate(timeout=60)[0]
    os.close(ours)
    assert process.returncode == 0, told
    assert "'grad' is not one of these" in told
    assert "To predict: grade, a number." in told

"""A workload that `new` wrote, run as a user runs it."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytestmark = pytest.mark.slow

PARTS = ("pipeline", "components", "schemas", "workloads", "local_runner.py", "pyproject.toml")


@pytest.fixture(scope="module")
def copy(tmp_path_factory, project):
    """A copy of the project: what `new` writes lies beside the code."""
    folder = tmp_path_factory.mktemp("new")
    for part in PARTS:
        if (project / part).is_dir():
            shutil.copytree(project / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(project / part, folder / part)
    return folder


def _call(copy, *words):
    done = subprocess.run(
        [sys.executable, *words], cwd=copy, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(copy)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")  # scikit-learn's own call of it
def test_a_table_becomes_a_pushed_model_without_an_edit(copy):
    wine = datasets.load_wine(as_frame=True)
    frame = wine.frame
    # What tables have and models do not want: an id, a constant, dates, empty cells, names as labels.
    frame.insert(0, "bottle id", np.arange(len(frame)) + 1)
    frame["country"] = "IT"
    frame["tasted"] = [f"2024-{1 + row % 12:02}-{1 + row % 28:02}" for row in range(len(frame))]
    frame.loc[::7, "alcohol"] = np.nan
    frame["target"] = [str(wine.target_names[code]) for code in frame["target"]]
    frame.to_csv(copy / "wine.csv", index=False)

    told = _call(copy, "local_runner.py", "new", "wine", "--data", "wine.csv", "--label", "target")
    assert "an id" in told
    assert told.splitlines()[-1].endswith("local_runner.py run wine")
    _call(copy, "local_runner.py", "run", "wine")
    run = json.loads(_call(copy, "local_runner.py", "show", "--json"))
    assert run["state"] == "complete"
    assert run["pushed"], "the model is pushed"

    columns, target = datasets.load_wine(return_X_y=True)
    peer = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), columns, target, cv=3)
    # One of 60 rows is 0.017; the splits differ, so that two rows are no difference.
    assert run["metrics"]["sparse_categorical_accuracy"] >= peer.mean() - 0.04

    assert "2 passed" in _call(copy, "-m", "pytest", "-q", "tests/unit/workloads/test_wine.py")


def test_on_a_terminal_what_is_ambiguous_is_asked(copy):
    (copy / "steps.csv").write_text(
        "size,grade\n" + "".join(f"{n / 7},{3 + 2 * (n % 4)}\n" for n in range(300))
    )
    ours, theirs = os.openpty()
    command = [sys.executable, "local_runner.py", "new", "steps", "--data", "steps.csv"]
    with subprocess.Popen(
        command, cwd=copy, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        os.close(theirs)
        os.write(ours, b"grad\ngrade\nregression\n")
        told = process.communicate(timeout=60)[0]
    os.close(ours)
    assert process.returncode == 0, told
    assert "'grad' is none of these" in told
    assert "To predict: grade, a number." in told

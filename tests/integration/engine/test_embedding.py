"""`slipway.run`: pipelines that live in this process, as in a notebook."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from slipway import RunFailedError, run
from slipway.components.project import PROJECT_ROOT
from slipway.components.python_process import ForkedProcess
from slipway.pipeline.errors import UsageError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]

NOTEBOOK = """
import sys
from slipway.pipeline.errors import UsageError
from slipway import run
from tfx import v1 as tfx

@tfx.dsl.components.component
def Inline(made: tfx.dsl.components.OutputArtifact[tfx.types.standard_artifacts.String]):
    made.value = "x"

pipeline = tfx.dsl.Pipeline(pipeline_name="inline", pipeline_root=sys.argv[1], components=[Inline()])
try:
    run(pipeline, output=sys.argv[1])
except UsageError as error:
    print(error.message, error.hint, sep="\\n")
"""

# Runs it as `__main__`, in a process that has imported TFX.
CELL = """
import sys, types

def main(arguments):
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec({!r}, module.__dict__)
    return 0
"""


@pytest.fixture
def toys(in_process, monkeypatch):
    """The module of the toys, imported here."""
    monkeypatch.syspath_prepend(in_process.environment["PYTHONPATH"])
    yield importlib.import_module("toy_pipeline")
    del sys.modules["toy_pipeline"]


def test_a_pipeline_object_runs_and_its_artifacts_can_be_looked_at(toys, in_process):
    result = run(toys.features(), output=in_process.output, parameters={"count": 3}, quiet=True, jobs=4)
    assert result.raise_for_state() is result
    assert (result.state, result.exit_code, result.ok) == ("complete", 0, True)
    assert (result.record.workload, result.nodes["IfNo"].state) == ("features", "skipped")
    [made] = result.outputs("Make")["made"]
    assert Path(made).read_text() == "yes"
    assert result.log("Make").is_file()
    assert in_process.lines("made") == ["yes 3", "ordered 1"]

    again = run(toys.features, output=in_process.output, parameters={"count": 4}, quiet=True)
    assert again.nodes["Push"].state == "cached", "what a function returns is the same pipeline"
    assert again.nodes["Make"].state == "complete"
    assert [run.workload for run in in_process.history.runs()] == ["features"] * 2


def test_a_failure_is_a_result_that_can_be_raised_and_resumed(toys, in_process, capsys):
    failed = run(toys.fail_fast, output=in_process.output, jobs=2, fail_fast=True)
    assert (failed.state, failed.exit_code, failed.ok) == ("failed", 1, False)
    with pytest.raises(RunFailedError, match=r"Failed: Raise.*ValueError: the toy is broken") as raised:
        failed.raise_for_state()
    assert raised.value.result is failed
    told = capsys.readouterr().err
    assert f"hint: {raised.value.hint}" == told.splitlines()[-1]
    in_process.get_well()
    resumed = in_process.as_printed(told)
    assert resumed.returncode == 0, resumed.stderr
    assert in_process.record().state == "complete"


def test_what_is_no_pipeline_is_refused(toys, in_process):
    for pipeline, message in (
        (7, "int is not a pipeline"),
        (lambda: 7, "gave a int, not a TFX Pipeline"),
        ("toy_pipeline:nothing", "toy_pipeline has no 'nothing'"),
    ):
        with pytest.raises(UsageError, match=message):
            run(pipeline, output=in_process.output, quiet=True)


def test_a_component_of_the_notebook_itself_is_refused_in_words(in_process, warm):
    (in_process.folder / "a_notebook.py").write_text(CELL.format(NOTEBOOK))
    environment = {**in_process.environment, "PYTHONPATH": str(in_process.folder)}
    process = ForkedProcess(warm._line, "a_notebook", [str(in_process.output)], environment)
    with process.stdout:
        told = process.stdout.read()
    assert process.wait() == 0, told
    message, hint = told.splitlines()[-2:]
    assert message.startswith("Inline: its component is defined in this notebook or script")
    assert hint == "move Inline to a module and import it"
    assert not (in_process.output / "runs").exists()


def test_importing_the_engine_imports_no_tfx(in_process):
    look = "import json, sys, slipway; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", look], cwd=PROJECT_ROOT, capture_output=True, check=True)
    assert not {"tfx", "tensorflow", "apache_beam", "pyarrow", "rich"}.intersection(json.loads(done.stdout))

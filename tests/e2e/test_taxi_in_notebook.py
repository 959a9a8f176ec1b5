"""docs/notebook.ipynb, run cell by cell as a user runs it, on the run that the other modules start from.

Seen only here: a Jupyter kernel, whose event loop and output our calls meet.
"""

import textwrap

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,  # what the cells show is seen without a kernel in test_run_from_python.py
]


@pytest.fixture(scope="module")
def notebook(project):
    """The notebook, as it lies in the repository."""
    return nbformat.read(project / "docs/notebook.ipynb", as_version=4)


@pytest.fixture(scope="module")
def cells(notebook, first_run, output, project, tmp_path_factory, warm):
    """Its cells of code, executed: source and outputs. Its run is forked from the warm process."""
    notebook = nbformat.from_dict(notebook)
    [parameters] = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    line = warm._line.fileno()
    # What only tests import from is not what a node's code may import from.
    parameters.source = textwrap.dedent(f"""
        OUTPUT = {str(output)!r}
        sys.path.insert(0, {str(project / "tests/support")!r})
        from warmed import fork_servers
        del sys.path[0]
        fork_servers({line}, {warm.pid})
    """)
    # Where IPython and Jupyter keep what they like to remember.
    home = str(tmp_path_factory.mktemp("jupyter"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, home)
        # The kernel of that name is always this interpreter's own.
        where = {"metadata": {"path": str(project / "docs")}}
        client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where)
        client.execute(pass_fds=[line])
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def html_of(cell):
    return "".join(out["data"].get("text/html", "") for out in cell.outputs if "data" in out)


def cell_with(cells, words):
    [found] = [cell for cell in cells if words in cell.source]
    return found


def test_the_notebook_is_kept_without_outputs(notebook):
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in notebook.cells)


def test_the_result_shows_itself(cells):
    shown = html_of(cell_with(cells, "result = run("))
    assert "Pushed: taxi version " in shown
    assert "<td>Trainer</td><td>cached</td>" in shown, "what ran before is not run again"


def test_metrics_examples_and_answers_are_shown(cells):
    assert "auc" in html_of(cell_with(cells, "result.metrics"))
    assert "binary_accuracy" in html_of(cell_with(cells, 'verdict["checks"]'))
    assert html_of(cell_with(cells, "Example.FromString")).count("<tr>") == 5
    assert "predicted" in html_of(cell_with(cells, "served(examples="))


def test_the_report_is_shown_in_a_frame_of_its_own(cells):
    shown = html_of(cell_with(cells, "result.report()"))
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown
    assert shown.count("<") == 2, "what the page holds is escaped"

"""Which unit tests `make check` runs for a change."""

import subprocess
from pathlib import Path

import pytest
import touched as program
from touched import MOST_FILES, changed, imported, main, touched, unit_tests

UNIT = Path("tests/unit")
TESTS = {
    UNIT / "pipeline/test_root.py": frozenset({"slipway.pipeline.root"}),
    UNIT / "pipeline/runs/test_lock.py": frozenset({"slipway.pipeline.runs.lock", "slipway.pipeline.root"}),
    UNIT / "docs/test_site.py": frozenset(),
    UNIT / "workloads/taxi/test_model.py": frozenset({"workloads.taxi.model", "counted"}),
}
MODULES = {
    Path("pipeline/runs/run.py"): frozenset({"slipway.pipeline.runs.lock", "slipway.pipeline.runs.untested"}),
    Path("pipeline/runs/lock.py"): frozenset({"slipway.pipeline.root", "slipway.pipeline.runs.untested"}),
}


def chosen_for(*files, named=None):
    found = touched(map(Path, files), tests=TESTS, modules=MODULES, named=named or (lambda name: []))
    return [each.name for each in found]


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("tests/unit/docs/test_site.py", ["test_site.py"]),
        ("pipeline/runs/lock.py", ["test_lock.py"]),
        ("pipeline/root.py", ["test_root.py", "test_lock.py"]),
        ("workloads/taxi/model.py", ["test_model.py"]),
        ("pipeline/runs/untested.py", ["test_lock.py"]),  # as lock.py imports it
        ("tests/unit/pipeline/runs/conftest.py", ["test_lock.py"]),
        ("tests/unit/pipeline/conftest.py", ["test_root.py", "test_lock.py"]),
        ("tests/support/counted.py", ["test_model.py"]),
        ("docs/serving.md", ["test_site.py"]),
        ("README.md", ["test_site.py"]),
        ("tests/unit/docs/test_that_was_removed.py", []),
        ("tests/e2e/test_taxi.py", []),
        ("LICENSE", []),
    ],
)
def test_file_touches_its_mirror_and_those_that_import_it(file, tests):
    assert chosen_for(file) == tests


def test_mirrors_of_all_files_come_first_and_each_test_once():
    assert chosen_for("pipeline/root.py", "pipeline/runs/lock.py") == ["test_root.py", "test_lock.py"]
    assert chosen_for("docs/a.md", "pipeline/runs/lock.py") == ["test_lock.py", "test_site.py"]


def test_other_files_touch_the_tests_that_name_them():
    asked = []

    def named(name):
        asked.append(name)
        return [UNIT / "docs/test_site.py"]

    assert chosen_for("schemas/taxi.pbtxt", named=named) == ["test_site.py"]
    assert asked == ["taxi.pbtxt"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b, c as d", {"a.b", "c"}),
        ("from a.b import c, d", {"a.b", "a.b.c", "a.b.d"}),
        ("def f():\n    from a import b", {"a", "a.b"}),
        ("from . import b", set()),
        ("def f(:", set()),
        ("\0", set()),
    ],
)
def test_imports_are_found_wherever_they_stand(tmp_path, text, names):
    file = tmp_path / "module.py"
    file.write_text(text)
    assert imported(file) == names


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a file on main; returns its root and how to call git there."""

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    for name in ("old.py", "edited.py", "removed.py"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    git("add", "-A")
    git("commit", "-m", "first")
    return tmp_path, git


def test_changed_is_what_the_branch_committed_and_what_is_not_committed_yet(checkout):
    root, git = checkout
    git("switch", "-c", "branch")
    (root / "committed.py").touch()
    git("add", "-A")
    git("commit", "-m", "second")
    (root / "edited.py").write_text("now")
    (root / "removed.py").unlink()
    (root / "naïve name.py").touch()
    (root / "ignored.py").touch()
    names = ["committed.py", "edited.py", "naïve name.py", "removed.py"]
    assert changed(root) == [Path(name) for name in names]


def test_what_main_got_meanwhile_is_not_this_branches_change(checkout):
    root, git = checkout
    git("switch", "-c", "branch")
    git("switch", "main")
    (root / "of_others.py").touch()
    git("add", "-A")
    git("commit", "-m", "other")
    git("switch", "branch")
    assert changed(root) == []


def test_folder_that_is_no_checkout_has_no_changes(tmp_path):
    assert changed(tmp_path) == []


def test_what_a_test_imports_through_a_support_module_counts(tmp_path):
    files = {
        "tests/unit/test_a.py": "from made import workload",
        "tests/unit/test_b.py": "import json",
        "tests/support/made.py": "from slipway.pipeline.config import WorkloadConfig",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = unit_tests(tmp_path)
    assert "slipway.pipeline.config" in found[Path("tests/unit/test_a.py")]
    assert found[Path("tests/unit/test_b.py")] == {"json"}


def test_files_are_printed_up_to_a_limit_and_the_rest_is_reported(project, monkeypatch, capsys):
    monkeypatch.setattr(
        program, "changed", lambda root: [Path("pipeline/errors.py"), Path("pipeline/exit_codes.py")]
    )
    main(project)
    printed = capsys.readouterr()
    files = printed.out.splitlines()
    assert len(files) == MOST_FILES
    assert all((project / file).is_file() for file in files)
    assert "more files of tests are touched than run here: make test" in printed.err

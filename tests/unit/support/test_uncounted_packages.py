"""The plugin of coverage.py that does not trace packages: what is counted of ours stays the same."""

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest
from coverage import CoverageData

# Calls back and forth: plainly, as a generator, with an exception on its way through, in a thread, in a fork.
OURS = """
import os
import sys
import threading
from of_a_package import apply, each, failing, frames

def double(x):
    if x > 1:
        return 2 * x
    return x

def numbers():
    yield 1
    yield 2

def fails():
    raise KeyError("ours")

assert apply(double, 1) + apply(double, 2) == 5
assert list(each(numbers())) == [1, 2]
for function in (fails, failing):
    try:
        apply(function)
    except (KeyError, ValueError) as error:
        caught = error
assert isinstance(caught, ValueError)
thread = threading.Thread(target=apply, args=(double, 3))
thread.start()
thread.join()
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
else:
    apply(double, 4)
    os._exit(0)
before = sys.gettrace()
sys.settrace(None)
double(5)
sys.settrace(before)
double(5)  # Python asks a tracer that it was given once more by a function of its own
if apply(double, 6) == 12:
    print(sum(frame is not None for frame in frames), len(frames))
"""
OF_A_PACKAGE = """
import sys

frames = []

def apply(function, *values):
    frames.append(sys._getframe().f_trace)
    return function(*values)

def each(values):
    for value in values:
        yield value

def failing():
    raise ValueError("a package's")
"""
SETTINGS = """
[run]
branch = true
parallel = true
include = ours.py
data_file = counted/data
patch =
    subprocess
    _exit
plugins = uncounted_packages
"""


@pytest.fixture(scope="module")
def compiled(project, tmp_path_factory):
    """A folder with the plugin, compiled as the Makefile does."""
    if shutil.which("cc") is None:
        if os.environ.get("CI"):
            pytest.fail("there is no C compiler: coverage would trace every package")
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("compiled")
    support = project / "tests/support"
    shutil.copy(support / "uncounted_packages.py", folder)
    made = ["-o", folder / "_uncounted_packages.so", support / "uncounted_packages.c"]
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, f"-I{sysconfig.get_path('include')}", *made], check=True)
    return folder


@pytest.fixture
def counted(tmp_path):
    """A function that counts OURS with a folder's plugin: each process's branches, and what was printed."""
    packages = tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "of_a_package.py").write_text(OF_A_PACKAGE)
    (tmp_path / "ours.py").write_text(OURS)
    (tmp_path / "settings").write_text(SETTINGS)

    def counted(plugin):
        shutil.rmtree(tmp_path / "counted", ignore_errors=True)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        done = subprocess.run(
            [sys.executable, "-m", "coverage", "run", "--rcfile=settings", "ours.py"],
            cwd=tmp_path,
            env={**outside, "PYTHONPATH": f"{plugin}:{packages}"},
            capture_output=True,
            text=True,
            check=True,
        )
        arcs = []
        for file in (tmp_path / "counted").iterdir():
            data = CoverageData(str(file))
            data.read()
            arcs.append(set(data.arcs(str(tmp_path / "ours.py")) or ()))
        return arcs, done.stdout.split()

    return counted


@pytest.fixture
def not_compiled(project, tmp_path):
    """A folder with the plugin alone, also where `make test COVERAGE=1` has compiled the rest."""
    folder = tmp_path / "not_compiled"
    folder.mkdir()
    shutil.copy(project / "tests/support/uncounted_packages.py", folder)
    (folder / "_uncounted_packages.py").write_text("raise ImportError")
    return folder


def test_all_of_ours_is_counted_and_packages_are_not_traced(counted, compiled, not_compiled):
    plain, (traced, of_all) = counted(not_compiled)
    found, (still_traced, _) = counted(compiled)
    assert traced == of_all != "0"
    assert still_traced == "0"
    assert set().union(*found) == set().union(*plain)
    assert len(set().union(*plain)) > 30


def test_a_fork_does_not_save_what_its_parent_counts_once_more(counted, compiled, not_compiled):
    lines = OURS.splitlines()
    doubled, drawn = (lines.index(each) + 1 for each in ("    return x", "    yield 1"))
    for plugin in (compiled, not_compiled):
        of_fork, of_parent = sorted(counted(plugin)[0], key=len)
        assert drawn not in {line for arc in of_fork for line in arc}
        assert {doubled, drawn} <= {line for arc in of_parent for line in arc}
        assert (doubled - 1, -(doubled - 3)) in of_fork, of_fork

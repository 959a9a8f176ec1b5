import gc
import importlib
import json
import os
import pickle
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest

from slipway.components import large_imports as module
from slipway.components.large_imports import PUT_OFF, large_imports
from slipway.components.python_process import ForkedProcess


def test_nothing_is_collected_meanwhile_and_all_as_before_afterwards():
    with large_imports():
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.parametrize("others", ["", "gc.freeze()"], ids=["nothing", "something"])
def test_what_was_imported_is_old_and_what_is_frozen_stays_so(others):
    """In a process of its own: pytest's has frozen what it has imported."""
    code = f"""
import gc, json
from slipway.components.large_imports import large_imports
{others}
frozen = gc.get_freeze_count()
with large_imports():
    import colorsys
    made = [[]]
young = any(each is made for generation in (0, 1) for each in gc.get_objects(generation))
old = any(each is made for each in gc.get_objects(2))
print(json.dumps([young, old, (gc.get_freeze_count() > 0) == (frozen > 0)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [False, not others, True]


def test_what_a_process_keeps_is_frozen_and_where_nothing_was_imported_nothing_is_looked_at():
    """In a process of its own, too: what is frozen here stays so."""
    code = """
import gc
from slipway.components.large_imports import large_imports
looked = []
gc.get_freeze_count = lambda count=gc.get_freeze_count: looked.append(1) or count()
with large_imports():
    pass
assert not looked
with large_imports():
    import colorsys
assert looked == [1]
with large_imports(keep=True):
    made = [[]]
assert looked == [1]
assert gc.isenabled() and not any(each is made for each in gc.get_objects())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_collector_runs_again_after_an_import_that_fails():
    with pytest.raises(ImportError), large_imports():
        raise ImportError("no such module")
    assert gc.isenabled()


def test_who_wants_no_collector_keeps_it_off():
    gc.disable()
    try:
        with large_imports():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """The modules `heavy_zoo` and `broken_zoo`, and a function that makes and imports one that needs them."""
    heavy = tmp_path / "heavy_zoo"
    (heavy / "cages").mkdir(parents=True)
    (heavy / "__init__.py").write_text("SIZE = 7\n", encoding="utf-8")
    (heavy / "cages" / "__init__.py").write_text(
        "class Cage: pass\ndef opened(cage): return f'{cage} is open'\n", encoding="utf-8"
    )
    (heavy / "cages" / "lion.py").write_text("NAME = 'Leo'\n", encoding="utf-8")
    (tmp_path / "broken_zoo.py").write_text("import no_such_animal\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with large_imports():
        pass

    def imported(text, put_off, name="needs_zoo"):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(module, "PUT_OFF", {**module.PUT_OFF, name: put_off})
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield imported
    for name in [name for name in sys.modules if "zoo" in name.partition(".")[0]]:
        del sys.modules[name]


def loaded():
    return sorted(name for name in sys.modules if name.startswith(("heavy_zoo", "broken_zoo")))


def test_module_is_imported_when_something_of_it_is_used(packages):
    needs = packages("import heavy_zoo\n", ["heavy_zoo"])
    assert not loaded()
    assert needs.heavy_zoo.SIZE == 7
    assert loaded() == ["heavy_zoo"]
    assert needs.__spec__.loader.get_source("needs_zoo") == "import heavy_zoo\n", "found as Python finds it"


@pytest.mark.parametrize(
    "line", ["from heavy_zoo.cages import lion", "import heavy_zoo.cages.lion; lion = heavy_zoo.cages.lion"]
)
def test_module_of_a_package_is_put_off_with_those_above_it(packages, line):
    needs = packages(line + "\n", ["heavy_zoo", "heavy_zoo.cages", "heavy_zoo.cages.lion"])
    assert not loaded()
    assert needs.lion.NAME == "Leo"
    assert loaded() == ["heavy_zoo", "heavy_zoo.cages", "heavy_zoo.cages.lion"]


def test_function_and_class_of_annotations_are_put_off_by_name(packages):
    needs = packages(
        "from heavy_zoo.cages import opened\nimport heavy_zoo.cages\n"
        "def f(cage: heavy_zoo.cages.Cage): ...\n",
        ["heavy_zoo", "heavy_zoo.cages:opened", "heavy_zoo.cages:Cage"],
    )
    assert not loaded()
    assert needs.opened("A") == "A is open"
    assert needs.heavy_zoo.cages.Cage is sys.modules["heavy_zoo.cages"].Cage


@pytest.mark.parametrize(
    "line", ["from heavy_zoo import SIZE", "import heavy_zoo.cages", "from heavy_zoo.cages import Cage"]
)
def test_whatever_else_is_imported_from_a_stand_in_is_imported_at_once(packages, line):
    needs = packages(f"import heavy_zoo\n{line}\n", ["heavy_zoo"])
    assert "heavy_zoo" in loaded()
    assert needs.heavy_zoo.SIZE == 7


def test_module_that_imports_another_that_needs_the_same(packages):
    packages("from heavy_zoo import cages\n", ["heavy_zoo", "heavy_zoo.cages"], name="inner_zoo")
    del sys.modules["inner_zoo"]
    needs = packages("import heavy_zoo\nimport inner_zoo\nimport heavy_zoo\n", ["heavy_zoo"])
    assert not loaded()
    assert needs.inner_zoo.cages.opened("B") == "B is open"
    assert needs.heavy_zoo.SIZE == 7


def test_others_import_the_module_itself(packages):
    needs = packages("import heavy_zoo\n", ["heavy_zoo"])
    own = importlib.import_module("heavy_zoo")
    assert own is sys.modules["heavy_zoo"] is not needs.heavy_zoo
    assert pickle.loads(pickle.dumps(needs.heavy_zoo)) is own  # noqa: S301


def test_module_that_is_imported_already_is_not_put_off(packages):
    own = importlib.import_module("heavy_zoo")
    assert packages("import heavy_zoo\n", ["heavy_zoo"]).heavy_zoo is own


def test_missing_package_is_missed_at_once_and_a_broken_one_when_it_is_used(packages):
    text = "try:\n    import no_such_zoo\nexcept ImportError:\n    no_such_zoo = None\nimport broken_zoo\n"
    needs = packages(text, ["no_such_zoo", "broken_zoo"])
    assert needs.no_such_zoo is None
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match=r"^No module named 'no_such_animal'$"):
            _ = needs.broken_zoo.CAGES


def test_package_that_a_finder_refuses_is_refused_to_the_module(packages, monkeypatch):
    monkeypatch.setitem(sys.modules, "heavy_zoo", None)
    with pytest.raises(ModuleNotFoundError, match=r"^import of heavy_zoo halted; None in sys.modules$"):
        packages("import heavy_zoo\n", ["heavy_zoo"])
    assert loaded() == ["heavy_zoo"]


def test_module_that_fails_leaves_no_stand_in(packages):
    with pytest.raises(ZeroDivisionError):
        packages("import heavy_zoo\n1 / 0\n", ["heavy_zoo"])
    assert not loaded()


def test_who_asks_meanwhile_whether_the_package_is_installed_is_told_so(packages):
    text = "import heavy_zoo\nfrom importlib.util import find_spec\nfound = find_spec('heavy_zoo')\n"
    assert packages(text, ["heavy_zoo"]).found is not None
    assert not loaded()


def test_function_that_is_called_at_once_is_imported_at_once(packages):
    needs = packages("from heavy_zoo.cages import opened\nC = opened('C')\n", ["heavy_zoo.cages:opened"])
    assert needs.C == "C is open"


def test_package_that_is_there_shows_what_is_put_off_of_it_meanwhile_only(packages):
    heavy = importlib.import_module("heavy_zoo")
    text = "import heavy_zoo.cages\nfound = heavy_zoo.cages\n"
    needs = packages(text, ["heavy_zoo.cages"])
    assert loaded() == ["heavy_zoo"]
    assert not hasattr(heavy, "cages")
    assert "opened" in dir(needs.found)
    assert heavy.cages is sys.modules["heavy_zoo.cages"]


def test_stand_in_that_has_left_in_another_thread_does_not_come_back(packages):
    with module._stand_ins(["heavy_zoo"]):
        outer = sys.modules["heavy_zoo"]
        with module._stand_ins(["heavy_zoo"]):
            outer.leave()
        assert not loaded()


def test_other_module_of_the_same_zip_file_imports_itself_what_it_needs(packages, tmp_path, monkeypatch):
    file = tmp_path / "zipped.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("needs_zoo.py", "import heavy_zoo\n")
        archive.writestr("also_needs_zoo.py", "import heavy_zoo\n")
    monkeypatch.syspath_prepend(file)
    monkeypatch.setattr(module, "PUT_OFF", {"needs_zoo": ["heavy_zoo"]})
    importlib.import_module("needs_zoo")
    assert not loaded()
    assert importlib.import_module("also_needs_zoo").heavy_zoo is sys.modules["heavy_zoo"]


def test_finder_of_old_is_passed_over(packages):
    sys.meta_path.insert(1, SimpleNamespace(find_module=lambda *_: None))
    with pytest.warns(ImportWarning, match="find_spec"):
        assert packages("import heavy_zoo\n", ["heavy_zoo"]).heavy_zoo.SIZE == 7


def test_processes_of_a_run_load_none_of_what_few_need_and_can_use_all_of_it(warm, project):
    variables = {**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{project / 'tests/support'}"}
    process = ForkedProcess(warm._line, "put_off_modules", [], variables)
    with process.stdout as stdout:
        told = stdout.read().splitlines()
    assert process.wait() == 0, told
    assert told[-2:] == ["loaded: []", f"used: {sum(map(len, PUT_OFF.values()))}"]

"""The plugin of coverage.py that does not trace the import of packages."""

import importlib
import sys
from importlib.machinery import SourceFileLoader

import pytest
import uncounted_imports


def tracer(*_):
    """Trace nothing."""


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """A function that imports a new module in a folder, and returns which tracer its code saw."""
    monkeypatch.setattr(SourceFileLoader, "exec_module", SourceFileLoader.exec_module)
    uncounted_imports.coverage_init(None, {})
    was = sys.gettrace()

    def imported(folder, name, code="import sys; seen = sys.gettrace()"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path / folder)
        sys.settrace(tracer)
        try:
            return importlib.import_module(name).seen
        finally:
            assert sys.gettrace() is tracer
            sys.settrace(was)
            sys.modules.pop(name, None)

    return imported


def test_packages_are_imported_without_a_tracer(imported):
    assert imported("site-packages", "of_a_package") is None


def test_our_own_modules_are_imported_with_it(imported):
    assert imported("project", "of_ours") is tracer


def test_counting_goes_on_after_an_import_that_fails(imported):
    with pytest.raises(ZeroDivisionError):
        imported("site-packages", "of_a_broken_package", "1 / 0")

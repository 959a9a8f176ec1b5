"""Files of tests that need a package are left out without it, and import none of it to find out."""

import sys

import pytest
from installed import needed


def test_what_is_there_is_not_imported(monkeypatch, tmp_path):
    (tmp_path / "package_for_one_test").mkdir()
    (tmp_path / "package_for_one_test/__init__.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    needed("package_for_one_test", reason="no such package")
    assert "package_for_one_test" not in sys.modules


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.module"])
def test_file_that_needs_what_is_not_there_is_skipped_with_the_reason(module):
    with pytest.raises(pytest.skip.Exception, match="it is not installed"):
        needed(module, reason="it is not installed")

"""A user's module that holds `build_model` and more."""

import pytest


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module that can be imported; returns the dotted path of its `build_model`."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        return f"{name}.build_model"

    return write

"""The Python that trains is a path in the project or a name on the PATH."""

import sys
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.interpreter import find_interpreter


def test_a_path_or_a_name_is_found(monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert find_interpreter(sys.executable) == sys.executable
    assert find_interpreter(Path(sys.executable).name) == sys.executable


@pytest.mark.parametrize(
    "name",
    [".venv-nope/bin/python", "no-such-python", "README.md/", "./README.md", "~nobody-here/bin/python"],
)
def test_what_is_no_program_is_refused_with_what_it_needs(name):
    with pytest.raises(ComponentError, match="is not an executable program") as refused:
        find_interpreter(name)
    assert "name a Python that has keras" in refused.value.hint

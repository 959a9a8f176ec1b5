"""A limit of a command that counts from when the command is where it stays, however busy the machine is."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest


def limit_counts_from(sign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `subprocess.run` first wait until the command has made a file, and only then for its limit."""
    communicate = subprocess.Popen.communicate

    def once_it_is_there(process: Any, *arguments: Any, **named: Any) -> Any:
        until = time.monotonic() + 60
        while not sign.exists():
            assert time.monotonic() < until, f"the command has not made {sign.name}"
            time.sleep(0.01)
        return communicate(process, *arguments, **named)

    monkeypatch.setattr(subprocess.Popen, "communicate", once_it_is_there)

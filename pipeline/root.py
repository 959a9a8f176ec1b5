"""The project's own folder: the one that holds local_runner.py."""

from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parent.parent

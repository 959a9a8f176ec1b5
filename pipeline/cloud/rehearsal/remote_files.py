"""Artifacts that lie elsewhere, through TFX's file systems. Imports TFX."""

from pathlib import Path

from tfx.dsl.io import fileio
from tfx.utils import io_utils


class TfxFiles:
    """Files by address, on gs:// or wherever TFX knows a file system for."""

    def read(self, address: str) -> str | None:
        """The text of a file; None where there is none."""
        if not fileio.exists(address):
            return None
        with fileio.open(address) as file:
            text: str = file.read()
        return text

    def fetch(self, address: str, folder: Path) -> None:
        """Copies the folder at an address; nothing where there is none."""
        if fileio.exists(address):
            io_utils.copy_dir(address, str(folder))

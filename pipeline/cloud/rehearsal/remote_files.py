"""Reads remote artifacts through TFX's file systems. Imports TFX."""

from pathlib import Path

from tfx.dsl.io import fileio
from tfx.utils import io_utils


class TfxFiles:
    """Files by address, on gs:// or any other file system that TFX knows."""

    def exists(self, address: str) -> bool:
        """Return True if there is a file or a folder at an address."""
        return bool(fileio.exists(address))

    def take(self, address: str) -> str | None:
        """Return the text of a file, and remove it; None if there is none."""
        if not self.exists(address):
            return None
        with fileio.open(address) as file:
            text: str = file.read()
        fileio.remove(address)
        return text

    def fetch(self, address: str, folder: Path) -> None:
        """Copy the folder at an address; do nothing if there is none."""
        if self.exists(address):
            io_utils.copy_dir(address, str(folder))

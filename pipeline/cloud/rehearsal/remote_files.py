"""Remote artifacts, read through TFX's file systems. Imports TFX."""

from pathlib import Path

from tfx.dsl.io import fileio
from tfx.utils import io_utils


class TfxFiles:
    """Files by address, on gs:// or any other file system that TFX knows."""

    def exists(self, address: str) -> bool:
        """Whether there is a file or a folder."""
        return bool(fileio.exists(address))

    def read(self, address: str) -> str | None:
        """The text of a file; None if there is none."""
        if not self.exists(address):
            return None
        with fileio.open(address) as file:
            text: str = file.read()
        return text

    def fetch(self, address: str, folder: Path) -> None:
        """Copies the folder at an address; does nothing if there is none."""
        if self.exists(address):
            io_utils.copy_dir(address, str(folder))

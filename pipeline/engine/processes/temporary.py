"""The temporary files of a run's processes: in a folder that is removed with the run, however it ends."""

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# In the folder of a run: a link to where its temporary files lie.
_LINK = "tmp"
_PREFIX = "slipway-run-"
# A run's own folder, and those of its steps.
_FOLDERS = ("*", "*/steps/*")


@contextmanager
def temporary_folder(run_folder: Path) -> Iterator[Path]:
    """A new folder in the system's folder for temporary files, removed at the end.

    Not in the run's folder: paths of sockets are limited to 108 bytes, and the user chooses with TMPDIR which
    disk takes temporary files. The run's folder holds a link to it, by which `remove_left` finds it where the
    engine was killed.

    Args:
        run_folder: exists.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    link = run_folder / _LINK
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
        yield folder
    finally:
        _remove(link)
        shutil.rmtree(folder, ignore_errors=True)


def remove_left(runs: Path) -> None:
    """Removes the temporary files of runs that were killed.

    Args:
        runs: the folder of all runs; none of them is running.
    """
    for folders in _FOLDERS:
        for link in glob.glob(f"{glob.escape(str(runs))}/{folders}/{_LINK}"):  # noqa: PTH207 (thousands)
            _remove(Path(link))


def _remove(link: Path) -> None:
    if not link.is_symlink():
        return
    folder = link.readlink()
    # Anyone may have made a link: only what `temporary_folder` makes is removed.
    if folder.name.startswith(_PREFIX) and folder.is_dir() and folder.stat().st_uid == os.geteuid():
        shutil.rmtree(folder, ignore_errors=True)
    link.unlink(missing_ok=True)

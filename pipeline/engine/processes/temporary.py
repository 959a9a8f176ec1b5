"""The folder for temporary files of a run's processes, which is removed when the run ends in any way."""

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The link in a run's folder to its temporary files.
_LINK = "tmp"
_PREFIX = "slipway-run-"
# The folder of a run, and those of its steps.
_FOLDERS = ("*", "*/steps/*")


@contextmanager
def temporary_folder(run_folder: Path) -> Iterator[Path]:
    """Create a folder below the system's temporary folder; remove it at the end.

    Its name holds the inode of the run's folder, by which a copy of that is told from it: who copies an
    output folder while a run is at work there copies the link, too.

    It is not in the run's folder, because socket paths are limited to 108 bytes and users choose the disk
    for temporary files with TMPDIR. The run's folder holds a link to it, by which `remove_left` finds it if
    the engine was killed.

    Args:
        run_folder: an existing folder.
    """
    folder = Path(tempfile.mkdtemp(prefix=_prefix(run_folder)))
    link = run_folder / _LINK
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
        yield folder
    finally:
        _remove(link)
        shutil.rmtree(folder, ignore_errors=True)


def remove_left(runs: Path) -> None:
    """Remove the temporary files of runs that were killed.

    Args:
        runs: the folder of all runs; none of them may be running.
    """
    for folders in _FOLDERS:
        for link in glob.glob(f"{glob.escape(str(runs))}/{folders}/{_LINK}"):  # noqa: PTH207 (thousands)
            _remove(Path(link))


def _prefix(run_folder: Path) -> str:
    return f"{_PREFIX}{run_folder.stat().st_ino:x}-"


def _remove(link: Path) -> None:
    if not link.is_symlink():
        return
    folder = link.readlink()
    # The link may come from elsewhere: remove only folders that `temporary_folder` created for this run.
    if (
        folder.name.startswith(_prefix(link.parent))
        and folder.is_dir()
        and folder.stat().st_uid == os.geteuid()
    ):
        shutil.rmtree(folder, ignore_errors=True)
    link.unlink(missing_ok=True)

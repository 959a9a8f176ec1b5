"""The contents of the container image, as its Dockerfile and .dockerignore describe them.

Nothing is built here. `Image.stage` copies the image's files to a folder, so that a rehearsal runs what the
image holds.
"""

import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path, PurePosixPath

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.errors import ConfigError

IMAGE_ROOT = "/opt/slipway"
"""The image's WORKDIR, which is the project's root there."""
IMAGE_PACKAGES = "/opt/venv/lib/python3.11/site-packages"
"""The folder of the locked packages in the image."""
_IMAGE_PROGRAMS = "/opt/venv/bin"
_STAGE = "pipeline"
_INSTRUCTION = re.compile(r"^(FROM|ENV)\s+(.*)$", re.IGNORECASE)


@dataclass(frozen=True)
class Image:
    """The contents of the image.

    Attributes:
        files: the project's files that the image holds, relative to `root`.
        packages: the folder of installed packages on this machine; the image has the same packages.
    """

    root: Path
    files: frozenset[str]
    packages: Path

    def path_of(self, path: Path) -> str | None:
        """Return the path in the image of a local file or folder; None if the image does not hold it.

        Args:
            path: absolute. A folder is in the image if any file in it is.
        """
        if path.is_relative_to(self.packages):
            return str(PurePosixPath(IMAGE_PACKAGES, path.relative_to(self.packages)))
        if not path.is_relative_to(self.root):
            return None
        relative = path.relative_to(self.root).as_posix()
        if relative in self.files or any(file.startswith(f"{relative}/") for file in self.files):
            return f"{IMAGE_ROOT}/{relative}"
        return None

    def stage(self, folder: Path) -> None:
        """Copy the project's files that the image holds into a folder.

        Raises:
            ConfigError: a link points outside the project, so it would be broken in the image.
        """
        for name in sorted(self.files):
            source, target = self.root / name, folder / name
            if source.is_symlink() and not source.resolve().is_relative_to(self.root):
                raise ConfigError(
                    f"{name} is a link to {source.resolve()}, which is not in the image",
                    hint="put a copy there, or name it in .dockerignore",
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
            if source.suffix == ".py" and (bytecode := Path(cache_from_source(str(source)))).is_file():
                # The image has bytecode, too. It records its source's time and size, so stale bytecode is
                # not used.
                there = Path(cache_from_source(str(target)))
                there.parent.mkdir(exist_ok=True)
                shutil.copy2(bytecode, there)


def on_this_machine(text: str, *, staged: Path) -> str:
    """Return a text with the image's paths replaced by those of this machine.

    Args:
        text: e.g. a compiled job.
        staged: the folder into which `Image.stage` copied the project's files.
    """
    pairs = {
        IMAGE_PACKAGES: sysconfig.get_path("purelib"),
        _IMAGE_PROGRAMS: str(Path(sys.executable).parent),
        IMAGE_ROOT: str(staged),
    }
    for there, here in pairs.items():
        text = text.replace(there, here)
    return text


def read_image(root: Path = PROJECT_ROOT) -> Image:
    """Read the contents of a project's image.

    Raises:
        ConfigError: the project has no .dockerignore that can be read.
    """
    # Docker's own client reads .dockerignore with this function.
    from docker.utils.build import exclude_paths  # type: ignore[import-untyped]

    patterns = [
        line.strip()
        for line in _read(root / ".dockerignore").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    found = exclude_paths(str(root), patterns, dockerfile="Dockerfile")
    names = {name for name in found if not (root / name).is_dir() or (root / name).is_symlink()}
    # The client always sends these two for its own use; COPY leaves them out while they are ignored.
    return Image(
        root=root,
        files=frozenset(names - {"Dockerfile", ".dockerignore"}),
        packages=Path(sysconfig.get_path("purelib")),
    )


def image_environment(root: Path = PROJECT_ROOT) -> Mapping[str, str]:
    """Return the environment variables that the image sets, as its Dockerfile says.

    Raises:
        ConfigError: the project has no Dockerfile that can be read.
    """
    text = _read(root / "Dockerfile").replace("\\\n", " ")
    stage = ""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _INSTRUCTION.match(line.strip())
        if match and match[1].upper() == "FROM":
            stage = match[2].split()[-1]
        elif match and stage == _STAGE:
            found.update(word.partition("=")[::2] for word in shlex.split(match[2]))
    return found


def _read(file: Path) -> str:
    """Read one of the two files that describe the image; `slipway init` writes them."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"{file.parent} has no {file.name}, which defines the image of its cloud runs",
            hint="`slipway init`, in a new folder, writes a Dockerfile and a .dockerignore: copy both",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


if __name__ == "__main__":  # for `make image-check`
    read_image().stage(Path(sys.argv[1]))

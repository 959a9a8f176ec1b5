"""Implements `slipway init`: creates a project that installs in one command and needs no checkout."""

import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from slipway.components.project import OWN_FOLDER, find_project
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.rendering import load_templates
from slipway.pipeline.start.writing import write_files

# A valid project name in pyproject.toml (PEP 508).
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_FILES = {
    "pyproject.toml": "pyproject.toml.j2",
    "requirements.lock": "requirements.lock",
    "README.md": "README.md.j2",
    ".gitignore": "gitignore.j2",
    ".dockerignore": "dockerignore.j2",
    "Dockerfile": "Dockerfile.j2",
    ".github/workflows/ci.yml": "ci.yml.j2",
    ".devcontainer/devcontainer.json": "devcontainer.json.j2",
    "tests/unit/workloads/test_workload_files.py": "test_workload_files.py.j2",
}

_SCHEMA = "schemas/workload.schema.json"


@dataclass(frozen=True)
class MadeProject:
    """A project that was written.

    Attributes:
        files: the written files, relative to the folder.
    """

    folder: Path
    files: tuple[str, ...]

    def text(self) -> str:
        """Return the message for the user: the written files and the next command."""
        enter = "" if self.folder == Path() else f"cd {shlex.quote(str(self.folder))} && "
        return "\n".join(
            [
                f"Written to {self.folder}/; the files are yours to edit:",
                *(f"  {name}" for name in self.files),
                f"hint: {enter}pip install --no-deps -r requirements.lock   # then: slipway new",
            ]
        )


def init(folder: Path, *, wheel: Path | None) -> MadeProject:
    """Create a project in a new or empty folder.

    Args:
        folder: the folder; its last part is the project's name.
        wheel: the wheel of Slipway to copy into the project; None: the wheel that Slipway was installed from.

    Raises:
        UsageError: the name is not valid, the folder is not empty or lies in a project, there is no such
            wheel, or a file cannot be written; nothing is left behind.
    """
    name = folder.absolute().resolve().name
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid project name: letters, digits, '-', '_' and '.', with a letter or a "
            "digit at both ends.",
            hint="for example: slipway init my-project",
        )
    _check_folder(folder)
    own = _checked(wheel) if wheel is not None else _installed_from()
    files = _files(name, own)
    write_files(files, folder)
    return MadeProject(folder, tuple(files))


def _check_folder(folder: Path) -> None:
    if folder.is_dir() and (there := sorted(each.name for each in folder.iterdir() if each.name != ".git")):
        raise UsageError(
            f"{folder} is not empty: it holds {', '.join(there[:3])}{', ...' if len(there) > 3 else ''}; a "
            "project starts in a new or empty folder.",
            hint="name another folder; to turn this one into a project, add [tool.slipway] to its "
            "pyproject.toml",
        )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a project is a folder.", hint="name another folder")
    if around := find_project(folder.absolute().resolve()):
        raise UsageError(
            f"{folder} would lie in the project {around}, and projects do not nest.",
            hint="name a folder elsewhere, or add to that project: slipway new NAME --data FILE",
        )


def _checked(wheel: Path) -> Path:
    if wheel.suffix != ".whl" or not wheel.name.startswith("slipway-") or not wheel.is_file():
        raise UsageError(
            f"--wheel {wheel} is not a wheel of Slipway, which is a file named "
            "slipway-VERSION-py3-none-any.whl.",
            hint="name the wheel that this Slipway was installed from",
        )
    return wheel


def _installed_from() -> Path:
    """Return the wheel that Slipway was installed from, as recorded by the installer (PEP 610)."""
    try:
        noted = metadata.distribution("slipway").read_text("direct_url.json")
        address = urlsplit(json.loads(noted or "{}").get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        address = urlsplit("")
    wheel = Path(unquote(address.path))
    if address.scheme == "file" and wheel.suffix == ".whl" and wheel.is_file():
        return wheel
    raise UsageError(
        f"The project keeps a copy of Slipway's wheel, but {address.geturl() or 'the installed one'} is "
        "not a file on this machine.",
        hint="name the wheel: slipway init my-project --wheel slipway-VERSION-py3-none-any.whl",
    )


def _files(name: str, wheel: Path) -> dict[str, str | bytes]:
    """Return the content of the project's files by path."""
    jinja = load_templates("templates/project")
    values = {"name": name, "wheel": f"wheels/{wheel.name}"}
    files = {path: jinja.get_template(template).render(values) for path, template in _FILES.items()}
    content = wheel.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    files["requirements.lock"] = (
        "# Every package of the environment, with its hash: pip install --no-deps -r requirements.lock\n"
        f"./wheels/{wheel.name} \\\n    --hash=sha256:{digest}\n{files['requirements.lock']}"
    )
    about = f'"""The workloads of {name}, one folder each, created by `slipway new`."""\n'
    return {
        **files,
        "workloads/__init__.py": about,
        # Each workload.yaml names it for editors, and messages name it.
        _SCHEMA: (OWN_FOLDER / _SCHEMA).read_bytes(),
        f"wheels/{wheel.name}": content,
    }

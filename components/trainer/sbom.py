"""The software that a model is trained with: a bill of materials (CycloneDX 1.6) of this interpreter.

Needs no network. Equal environments give equal bills, without date or serial number.
"""

import json
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from typing import Any
from urllib.parse import quote

_NAME, _VERSION = re.compile(r"^Name: *(\S+)", re.MULTILINE), re.compile(r"^Version: *(\S+)", re.MULTILINE)
Component = dict[str, Any]
"""A component of CycloneDX: type, name, version, and more for a package."""
# Hashes that pip records for an archive installed from an address or path, with their CycloneDX names.
_HASHES = {"sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}


def bill_of_materials() -> dict[str, object]:
    """Return the system, the interpreter and its packages, by name and version; with hashes if known."""
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": "training", "name": "environment of the training"}
        },
        "components": [*_system(), *_packages()],
    }


def _system() -> Iterator[Component]:
    try:
        release = platform.freedesktop_os_release()
    except OSError:  # a small image may lack the file
        release = {}
    yield {
        "type": "operating-system",
        "name": release.get("ID", platform.system()),
        "version": release.get("VERSION_ID", platform.release()),
    }
    name = platform.python_implementation()
    version = ".".join(map(str, sys.version_info[:3]))
    yield {"type": "platform", "name": name, "version": version, "bom-ref": f"{name}@{version}"}


def _packages() -> list[Component]:
    found: dict[str, Component] = {}
    for each in distributions():
        # Search the text: parsing all of it, as `each.metadata` does, takes ten times as long.
        text = _text(each, "METADATA") or _text(each, "PKG-INFO")
        name, version = _NAME.search(text), _VERSION.search(text)
        if name and version:
            package = _package(name[1], version[1], each)
            # the first one found is the one imported
            found.setdefault(package["purl"].partition("@")[0], package)
    return [found[name] for name in sorted(found)]


def _text(each: Distribution, name: str) -> str:
    try:
        return each.read_text(name) or ""
    except UnicodeDecodeError:  # an old package's, whose name and version are ASCII nevertheless
        folder: Any = vars(each)["_path"]
        return str(folder.joinpath(name).read_bytes().decode("latin-1"))


def _package(name: str, version: str, each: Distribution) -> Component:
    purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{quote(version, safe='')}"
    package: Component = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    hashes = [{"alg": alg, "content": content} for alg, content in sorted(_hashes(each).items())]
    return {**package, "hashes": hashes} if hashes else package


def _hashes(each: Distribution) -> dict[str, str]:
    """Return the archive's hashes. The address recorded beside them may contain a secret, and is left out."""
    try:
        noted = json.loads(each.read_text("direct_url.json") or "{}")["archive_info"]["hashes"]
        found = {_HASHES[name]: str(value).lower() for name, value in noted.items() if name in _HASHES}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {alg: value for alg, value in found.items() if re.fullmatch(r"[0-9a-f]{64,128}", value)}

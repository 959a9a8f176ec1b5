#!/usr/bin/env bash
# Makes a virtual environment: bash setup.sh DIR [LOCKFILE...]. Called by make; repeats nothing by itself.
# SLIPWAY_PYTHON names another interpreter than the python3.11 (or newer) found on the PATH.
set -euo pipefail

venv=$1
shift
locks=("${@:-requirements.lock}")

usable() { # prints the interpreter if it is one that the lock file covers
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && command -v "$1"
}

python=""
for candidate in ${SLIPWAY_PYTHON:-python3.11 python3 python3.12 python3.13}; do
    if python=$(usable "$candidate"); then break; fi
done
if [ -z "$python" ]; then
    cat >&2 <<'TEXT'
error: no Python 3.11 here (3.12 and 3.13 work where the C library is glibc 2.38 or newer).
hint: Debian 12: apt install python3.11 python3.11-venv; Ubuntu 24.04: apt install python3.12 python3.12-venv;
      elsewhere: `uv python install 3.11`, or name one: make setup SLIPWAY_PYTHON=/path/to/python3.11
TEXT
    exit 2
fi
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2 || true)
needed=$("$python" -c 'import sys; print("2.38" if sys.version_info >= (3, 12) else "2.34")')
if [ -z "$glibc" ] || [ "$(printf '%s\n' "$needed" "$glibc" | sort -V | head -n 1)" != "$needed" ]; then
    echo "error: $("$python" -V) needs glibc $needed or newer for these packages; here is ${glibc:-no glibc}." >&2
    echo "hint: use Python 3.11 with glibc 2.34, or a newer system; see docs/platforms.md" >&2
    exit 2
fi

echo "setup: $("$python" -V), $(cat "${locks[@]}" | grep -c '==') locked packages into $venv (1 to 3 minutes, up to 3.6 GB)" >&2
# One beside the first, such as .venv-jax, is made with the first one's uv, and needs no pip: half the time to make it.
first=""
if [ "$venv" != "${venv%-*}" ] && [ -x "${venv%-*}/bin/uv" ]; then first=${venv%-*}; fi
"$python" -m venv ${first:+--without-pip} "$venv"
uv=$(command -v uv || command -v "${first:-$venv}/bin/uv" || true)
if [ -z "$uv" ]; then
    # The one that is pinned by these lock files, or else by the first environment's, held to its hashes.
    pinned=$(grep -l '^uv==' "${locks[@]}" requirements.lock 2>/dev/null | head -n 1 || true)
    sed -n '/^uv==/,/[^\\]$/p' "$pinned" >"$venv/uv.lock"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
        -r "$venv/uv.lock"
    uv=$venv/bin/uv
fi
VIRTUAL_ENV=$venv "$uv" pip sync --quiet --require-hashes --python "$venv/bin/python" "${locks[@]}"
# Byte-compiled here once: where PYTHONDONTWRITEBYTECODE is set, every start would compile TensorFlow's 20,000 files. What
# the first environment has of the same files (uv links both to its cache) is linked, and no task imports tests. Files
# that are no Python of this version, such as templates, are passed over.
"$venv/bin/python" -W ignore - "${BYTECODE:-timestamp}" ${first:+"$first"} <<'CODE'
import compileall, os, sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path
from py_compile import PycInvalidationMode

packages = Path(sys.prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
sources = [each for each in packages.rglob("*.py") if "tests" not in each.relative_to(packages).parts]
for first in map(Path, sys.argv[2:]):
    for source in sources:
        there = first / source.relative_to(sys.prefix)
        made, compiled = Path(cache_from_source(source)), Path(cache_from_source(there))
        if not made.exists() and compiled.exists() and there.exists() and os.path.samefile(source, there):
            made.parent.mkdir(exist_ok=True)
            os.link(compiled, made)
mode = PycInvalidationMode[sys.argv[1].upper()]
# By force where it is not by time: pip has compiled itself by the time of its files, which differs from build to build.
compiled = partial(compileall.compile_file, quiet=2, invalidation_mode=mode, force=mode.name != "TIMESTAMP")
with ProcessPoolExecutor() as processes:
    list(processes.map(compiled, sources, chunksize=50))
CODE
touch "$venv/.ready"

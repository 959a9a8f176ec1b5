"""Rules about what surrounds the step: the input files, their bucket, the Python that trains. Pure."""

from collections.abc import Callable, Iterator

from slipway.components.preflight.evidence import Case, Finding

SMALL_FILE_BYTES, MANY_BYTES = 10 * 2**20, 2**30
"""Files smaller than the first cost more to open than to read; it matters from the second, a total size, on.
Files of about 100 MB are best. Source: MaxText, guide to data input, for 100 MB; the limits are ours."""
NEEDED = {"jax": ("jax", "libtpu"), "tensorflow": ("tensorflow-tpu", "libtpu")}
"""The packages that the Python of a TPU training must have, by backend."""
RUNTIME_REMEDIES = {
    "jax": "--set train.interpreter=.venv-tpu/bin/python, which `make tpu-compiler` makes; on Vertex AI "
    "use the image of `make image TARGET=training-tpu`",
    "tensorflow": "on Vertex AI use the image of `make image TARGET=training-tpu-tensorflow`; elsewhere a "
    "Python with the packages of requirements-tpu-tensorflow.lock",
}
_CONTINENTS = {"us": "us", "nam": "us", "eu": "europe", "eur": "europe", "asia": "asia"}


def _files(case: Case) -> Iterator[Finding]:
    hosts = case.question.slice.hosts
    if hosts == 1 or case.train_files is None:
        return
    if case.train_files < hosts:
        yield Finding(
            rule="files",
            severity="error",
            message=f"{case.train_files} files of training examples for {hosts} hosts: some have none",
            remedy="more Beam shards in Transform, or train.input.cache: memory, which every host fills",
        )
    elif case.train_files % hosts:
        yield Finding(
            rule="files",
            severity="warning",
            message=f"{case.train_files} files of training examples are not shared evenly by {hosts} hosts",
            remedy=f"a multiple of {hosts}",
        )


def _small_files(case: Case) -> Iterator[Finding]:
    if not case.train_files or not case.train_bytes or case.train_bytes < MANY_BYTES:
        return
    each = case.train_bytes / case.train_files
    if each < SMALL_FILE_BYTES:
        yield Finding(
            rule="files",
            severity="warning",
            message=f"{case.train_files} files of training examples of {each / 2**20:.1f} MiB each: "
            "opening them takes longer than reading",
            remedy="files of about 100 MB: fewer Beam shards in Transform",
        )


def _region(case: Case) -> Iterator[Finding]:
    for address, region in case.data_regions.items():
        if case.tpu_region and not _covers(region, case.tpu_region):
            yield Finding(
                rule="region",
                severity="warning",
                message=f"{address} is in {region}, but the slice is requested in {case.tpu_region}: "
                "data is read across regions, which is slow and costs money",
                remedy=f"a bucket in {case.tpu_region}, or a slice in {region.lower()}",
            )


def _covers(place: str, region: str) -> bool:
    """Return True if a bucket's location (US-CENTRAL1, EU, NAM4) is or contains a region (us-central1)."""
    place = place.lower()
    wide = place if "-" in place else place.rstrip("0123456789")
    return place == region or region.startswith(f"{_CONTINENTS.get(wide, wide)}-")


def _runtime(case: Case) -> Iterator[Finding]:
    needed = NEEDED.get(case.backend, ())
    missing = [name for name in needed if case.runtime is not None and name not in case.runtime]
    if missing:
        python = case.training_interpreter or "the pipeline's own"
        yield Finding(
            rule="runtime",
            severity="note",
            message=f"the training's Python, {python}, lacks {' and '.join(missing)}: on a TPU's own "
            "machine this training would not start",
            remedy=RUNTIME_REMEDIES[case.backend],
        )


RULES: tuple[Callable[[Case], Iterator[Finding]], ...] = (_files, _small_files, _region, _runtime)

"""Rules about what surrounds the step: the input files, their bucket, the Python that trains. Pure."""

from collections.abc import Callable, Iterator

from slipway.components.errors import ComponentError
from slipway.components.preflight.finding import Evidence, Finding
from slipway.components.trainer.device_rules import disagreements, require_one_shape
from slipway.components.trainer.settings.blow_up import BlowUpSettings

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
_CONTINENTS = {"us": "us", "eu": "europe", "asia": "asia"}
_PAIRS = {
    "nam4": ("us-central1", "us-east1"),
    "eur4": ("europe-north1", "europe-west4"),
    "eur5": ("europe-west1", "europe-west2"),
    "eur7": ("europe-west2", "europe-west3"),
    "eur8": ("europe-west3", "europe-west6"),
    "asia1": ("asia-northeast1", "asia-northeast2"),
}
"""The regions of locations of buckets that stand for two. Source: documentation of Cloud Storage."""


def _inputs(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    if training.made_otherwise:
        yield Finding(
            rule="inputs",
            severity="warning",
            message=f"all that is said here is of the model's inputs in {training.made_otherwise}; how many "
            "examples there will be is not known",
            remedy="`run --to Transform` with the settings of this training, and ask again",
        )


def _code(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    if training.changed_since:
        yield Finding(
            rule="inputs",
            severity="note",
            message=f"what is said here is of the model's inputs in {training.changed_since}",
            remedy="`run --to Transform`, and ask again, if the inputs are others now",
        )


def _search(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    if training.searched:
        values = ", ".join(f"{name}: {value}" for name, value in training.searched.items())
        yield Finding(
            rule="search",
            severity="note",
            message=f"tune.search tries other values, too; what is said here is of {{{values}}}",
            remedy="--set tune=null judges those of train.hyperparameters, whichever are set there",
        )


def _hosts(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    for error in disagreements(
        evidence.question.slice.hosts,
        blow_up=BlowUpSettings(trials=training.blow_up_trials),
        has_best_nowhere=training.has_best_nowhere,
        has_best_of_trials=training.has_best_of_trials,
    ):
        yield Finding(rule="hosts", severity="error", message=error.message, remedy=error.hint)


def _rows(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    asked, rows = evidence.question, training.train_rows
    if rows is None:
        return
    batches = rows // asked.batch_size
    if batches:  # the training refuses what follows, too
        if training.steps_per_execution > batches:
            yield Finding(
                rule="rows",
                severity="error",
                message=f"train.steps_per_execution ({training.steps_per_execution:,}) is above the "
                f"{batches:,} batches of an epoch",
                remedy=f"--set train.steps_per_execution={batches}, or less, or leave it out",
            )
        return
    most = rows // asked.parts * asked.parts
    yield Finding(
        rule="rows",
        severity="error",
        message=f"train.batch_size ({asked.batch_size:,}) is larger than the {rows:,} training examples: the "
        "training is refused",
        remedy=f"--set train.batch_size={most}, or less" if most else "more examples, or a smaller slice",
    )


def _files(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    hosts = evidence.question.slice.hosts
    # Every host reads all files into memory or into a file of its own; only what is streamed is shared out.
    if hosts == 1 or training.train_files is None or training.input_cache in ("memory", "file"):
        return
    is_streamed = training.input_cache == "none"
    unless_held = "" if is_streamed else " if the examples do not fit into a host's memory"
    if training.train_files < hosts:
        yield Finding(
            rule="files",
            severity="error" if is_streamed else "warning",
            message=f"{training.train_files} files of training examples for {hosts} hosts: some have none"
            + unless_held,
            remedy="more Beam shards in Transform, or train.input.cache: memory or file, which every host "
            "fills",
        )
    elif training.train_files % hosts:
        yield Finding(
            rule="files",
            severity="warning",
            message=f"{training.train_files} files of training examples are not shared evenly by {hosts} "
            "hosts" + unless_held,
            remedy=f"a multiple of {hosts}, or train.input.cache: memory or file, which every host fills",
        )


def _small_files(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    if not training.train_files or not training.train_bytes or training.train_bytes < MANY_BYTES:
        return
    each = training.train_bytes / training.train_files
    if each < SMALL_FILE_BYTES:
        yield Finding(
            rule="files",
            severity="warning",
            message=f"{training.train_files} files of training examples of {each / 2**20:.1f} MiB each: "
            "opening them takes longer than reading",
            remedy="files of about 100 MB: fewer Beam shards in Transform",
        )


def _region(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    for address, region in training.data_regions.items():
        if training.tpu_region and not _covers(region, training.tpu_region):
            yield Finding(
                rule="region",
                severity="warning",
                message=f"{address} is in {region}, but the slice is requested in {training.tpu_region}: "
                "data is read across regions, which is slow and costs money",
                remedy=f"a bucket in {training.tpu_region}, or a slice in "
                + " or ".join(_PAIRS.get(region.lower(), (region.lower(),))),
            )


def _covers(place: str, region: str) -> bool:
    """Return True if a bucket's location (US-CENTRAL1, EU, NAM4) is or contains a region (us-central1)."""
    place = place.lower()
    if place in _PAIRS:
        return region in _PAIRS[place]
    return place == region or region.startswith(f"{_CONTINENTS.get(place, place)}-")


def _runtime(evidence: Evidence) -> Iterator[Finding]:
    training = evidence.training
    needed = NEEDED.get(training.backend, ())
    missing = [name for name in needed if training.runtime is not None and name not in training.runtime]
    if missing:
        python = training.interpreter or "the pipeline's own"
        yield Finding(
            rule="runtime",
            severity="note",
            message=f"the training's Python, {python}, lacks {' and '.join(missing)}: on a TPU's own "
            "machine this training would not start",
            remedy=RUNTIME_REMEDIES[training.backend],
        )


def _buckets(evidence: Evidence) -> Iterator[Finding]:
    buckets = evidence.question.bucket_by_length
    if not buckets:
        return
    own = {each["name"]: each["shape"][0] for each in evidence.question.features}
    lengths = "; ".join(
        f"{name} of {', '.join(map(str, [*shorter, own.get(name, '?')]))}"
        for name, shorter in buckets.items()
    )
    yield Finding(
        rule="buckets",
        severity="note",
        message=f"the step is compiled {len(next(iter(buckets.values()))) + 1} times, for {lengths}; what "
        "was compiled here is the longest",
        remedy="shorter batches take less time and memory than estimated; each length costs a compilation",
    )
    try:
        require_one_shape(backend=evidence.backend, kind="tpu")
    except ComponentError as error:
        yield Finding(rule="buckets", severity="error", message=error.message, remedy=error.hint)


def _wide_integers(evidence: Evidence) -> Iterator[Finding]:
    for each in evidence.question.features:
        if (each["categories"] or 0) > 2**31:
            yield Finding(
                rule="wide_integers",
                severity="warning",
                message=f"the column {each['name']} has {each['categories']:,} codes, and the model gets its "
                "int64 as int32, which has 2,147,483,648 from 0 on: the training refuses rows with others",
                remedy="fewer codes, made in preprocessing_fn: hash buckets (tft.hash_strings), a vocabulary",
            )


RULES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    _inputs,
    _code,
    _search,
    _rows,
    _hosts,
    _files,
    _small_files,
    _region,
    _runtime,
    _buckets,
    _wide_integers,
)

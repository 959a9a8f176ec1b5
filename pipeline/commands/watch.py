"""The command `watch`: checks if the requests to a pushed version still resemble its training data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.statistics import SplitStatistics
from slipway.components.errors import ComponentError
from slipway.components.metrics.definitions import is_of_groups, is_of_quantiles
from slipway.components.parameters import from_parameter
from slipway.components.pusher.manifest_contents import Provenance
from slipway.components.pusher.version_store import version_store_at
from slipway.components.saved_model.class_names import classes_of
from slipway.components.saved_model.signatures import SERVE_RAW
from slipway.pipeline.commands.model_columns import taken_columns
from slipway.pipeline.commands.notify import send
from slipway.pipeline.commands.versions import pushed_version
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.signal_handlers import raise_interrupt, signals_handled_by
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.watch.judge_requests import Watched, WatchRequest
from slipway.pipeline.watch.judge_requests import watch as watch_requests
from slipway.pipeline.watch.late_labels import join, read_labels
from slipway.pipeline.watch.live_metrics import live_metrics
from slipway.pipeline.watch.log_folder import Logs, open_logs
from slipway.pipeline.watch.page import write_page
from slipway.pipeline.watch.training_data import read_training, training_statistics
from slipway.pipeline.watch.windows import By
from slipway.pipeline.wiring.gate_settings import data_gate_settings
from slipway.pipeline.wiring.pushed_versions import serving_base
from slipway.pipeline.wiring.request_log import request_folder


@dataclass(frozen=True)
class LateLabels:
    """Labels that arrived later: their file, and the column that joins them to the logged rows."""

    file: Path
    key: str


def late_labels(file: Path | None, key: str | None) -> LateLabels | None:
    """Return the late labels that a command line names; None if it names none.

    Raises:
        UsageError: only one of file and key is given.
    """
    if (file is None) != (key is None):
        raise UsageError(
            "--labels and --key belong together: a file of labels, and the column that joins it."
        )
    return LateLabels(file, key) if file is not None and key is not None else None


def watch(
    config: WorkloadConfig,
    output: Path,
    *,
    on: Path | None,
    version: int | None,
    by: By,
    reference: Path | None,
    late: LateLabels | None = None,
) -> tuple[Watched, Path]:
    """Judge a version's logged requests, write the page, and notify if something has drifted.

    Args:
        on: the folder of the requests; None: the folder that `request_log` writes to.
        version: the version's number; None: the newest.
        reference: a folder of statistics to compare with; None: those of the version's training data.
        late: labels that arrived later; None if there are none.

    Returns:
        The findings, and the path of their page, OUTPUT/watch/NAME.html.

    Raises:
        UsageError: there is no version, no request, or nothing to compare with; or a metric is not defined
            for the labels.
        OSError: the page cannot be written; what was found has been notified.
    """
    output = output.absolute()
    store = version_store_at(serving_base(config, output))
    number = pushed_version(store, version, config, output)
    manifest = store.manifest(number)
    provenance: Provenance = manifest.provenance if manifest else {}
    training = _training(output, provenance, number, reference)
    folder = on.absolute() if on else request_folder(config, output)
    # To read from TensorFlow Serving's logs only: clients need not send columns that the version ignores.
    taken = taken_columns(manifest)
    columns = [*(taken or training.features), *([late.key] if late else [])]
    # SIGTERM must not leave the rows of other servers' logs in the folder for temporary files.
    with signals_handled_by(raise_interrupt), open_logs(folder, list(dict.fromkeys(columns))) as logs:
        if logs.are_json:
            training = _training(output, provenance, number, reference, is_finite=True)
        # Without the signature, only the columns that every row needs are known.
        inputs = taken if SERVE_RAW in provenance.get("model", {}).get("signatures", {}) else ()
        watched = watch_requests(replace(_request(config, number, logs, by), inputs=inputs), training)
        if late is not None:
            watched = _with_live(config, watched, late, provenance)
    try:
        page = write_page(watched, output / "watch" / f"{config.name}.html")
    except OSError:
        _wake(config, watched, None)  # a full disk must not hide what was found
        raise
    _wake(config, watched, page)
    return watched, page


def _training(
    output: Path, provenance: Provenance, version: int, reference: Path | None, *, is_finite: bool = False
) -> SplitStatistics:
    if reference is not None:
        return read_training(reference, is_finite=is_finite)
    return training_statistics(output, provenance.get("run", ""), version, is_finite=is_finite)


def _request(config: WorkloadConfig, version: int, logs: Logs, by: By) -> WatchRequest:
    freshness, split_by = config.data_gate.freshness, config.data.split_by
    times = (freshness.column if freshness else None, split_by.time if split_by else None)
    return WatchRequest(
        workload=config.name,
        version=version,
        logs=logs,
        by=by,
        limits=Limits.from_json(from_parameter(str(data_gate_settings(config)["limits"]))),
        skip={config.data.label, *config.transform.apart, *filter(None, times)},
    )


def named_classes(config: WorkloadConfig, *provenances: Provenance) -> tuple[str, ...]:
    """Return the names of versions' classes in the order of their codes; empty if they have none.

    The workload's may have changed since the push, and count only if no manifest has names.
    """
    of_versions = (classes_of(each).get("", ()) for each in provenances)
    return next(filter(None, of_versions), config.transform.classes_by_output.get("", ()))


def metrics_and_labels(
    config: WorkloadConfig, late: LateLabels, classes: Sequence[str]
) -> tuple[list[str], dict[str, float]]:
    """Return the metrics that can be computed from late labels, and these labels by key.

    Args:
        classes: the names of the version's classes in the order of their codes; empty if it has none.

    Raises:
        UsageError: there is no such metric, or the labels cannot be read.
    """
    names = [name for name in config.evaluate.metrics if not is_of_quantiles(name) and not is_of_groups(name)]
    if len(config.transform.labels) != 1 or not names:
        raise UsageError(
            f"Live metrics need a model with one label; {config.name} has another kind, or only metrics of "
            "quantiles or groups.",
            hint="leave out --labels",
        )
    return names, read_labels(late.file, key=late.key, label=config.transform.labels[0], classes=classes)


def _with_live(config: WorkloadConfig, watched: Watched, late: LateLabels, provenance: Provenance) -> Watched:
    names, labels = metrics_and_labels(config, late, named_classes(config, provenance))
    rows = join(watched.request.logs, key=late.key, version=watched.request.version, labels=labels)
    # Metrics at the push are weighted, and the logged rows have no weights: the two are not comparable. Of a
    # few rows the bounds are too narrow: one wrong answer alone would be worse than an accuracy of 0.75.
    is_comparable = not config.transform.weight and len(rows.labels) >= watched.request.limits.min_rows
    at_push = provenance.get("metrics", {}) if is_comparable else {}
    with raised_as(UsageError, ComponentError):
        live = live_metrics(rows, names, at_push)
    return replace(
        watched,
        live=live,
        labelled=len(rows.labels),
        not_finite=rows.not_finite,
        labelled_left_out=rows.left_out_counts,
    )


def _wake(config: WorkloadConfig, watched: Watched, page: Path | None) -> None:
    """Notify of drift as of a run that a gate stopped, without logged values; a failure is only reported."""
    if config.notify is None or watched.is_right or "stopped" not in config.notify.when:
        return
    payload = {**watched.message(), "page": str(page) if page else None}
    for problem in send(config.notify.command, config.notify.webhook_env, payload):
        say(f"warning: {problem}.")

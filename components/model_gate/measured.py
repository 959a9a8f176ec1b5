"""The evaluation of one slice, and which of its metrics mean something there. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from slipway.components.finite_json import finite_numbers
from slipway.components.metrics.definitions import METRICS, is_of_groups, output_of, plain_name
from slipway.components.model_gate.interval_formulas import Spread
from slipway.components.model_gate.trivial_scores import LabelStatistics


@dataclass(frozen=True)
class Measured:
    """The evaluation of one slice.

    Attributes:
        baseline: those of the latest blessed model; empty where there is none.
        labels: the slice's labels; None where they are not known.
        spreads: how far chance moves the candidate's values, where that was measured.
        difference_spreads: the same for the candidate's value less the baseline's on the same rows.
        labels_of_outputs: the labels of each output, where a model has several.
        columns: the columns that define the slice, as `a, b`; "": those that its name gives, which a value
            with ", " and "=" in it confuses.
    """

    metrics: Mapping[str, float]
    baseline: Mapping[str, float]
    labels: LabelStatistics | None
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    difference_spreads: Mapping[str, Spread] = field(default_factory=dict)
    labels_of_outputs: Mapping[str, LabelStatistics] = field(default_factory=dict)
    columns: str = ""

    def of_output(self, output: str) -> "Measured":
        """The same with the labels of one output; of the only one where its name is empty."""
        return replace(self, labels=self.labels_of_outputs.get(output)) if output else self

    def entries_of(self, metric: str) -> int:
        """Return how many numbers a metric's label has; of a mean over outputs, that of each, or 1."""
        output = output_of(metric)
        labels = self.of_output(output).labels
        if labels is None and not output:
            widths = {int(each.entries or 1) for each in self.labels_of_outputs.values()}
            return widths.pop() if len(widths) == 1 else 1
        return int(labels.entries or 1) if labels else 1

    @property
    def defined(self) -> dict[str, float]:
        """The candidate's metrics that mean something here: an AUC over labels of one class is left out."""
        return {
            name: value
            for name, value in self.metrics.items()
            if not is_undefined(name, self.of_output(output_of(name)))
        }

    @property
    def rows(self) -> float:
        """Examples in the slice."""
        return self.metrics.get("example_count", self.labels.rows if self.labels else 0.0)

    @property
    def effective_rows(self) -> float:
        """The effective sample size (Kish); without weights, the number of rows that have a label."""
        labels = self._any_labels
        # A row may have several labels, or none.
        return min(self.rows * labels.effective_share, labels.rows) if labels else self.rows

    @property
    def has_weights(self) -> bool:
        """Whether weights differ enough to lower the effective sample size."""
        labels = self._any_labels
        # Rows without a label are not taken for weights.
        return labels is not None and round(self.rows * labels.effective_share) < round(self.rows)

    @property
    def _any_labels(self) -> LabelStatistics | None:
        # All outputs share the same weights.
        return self.labels or next(iter(self.labels_of_outputs.values()), None)

    @property
    def rows_in_words(self) -> str:
        """The number of rows and, if it is smaller, the effective number."""
        worth = f", worth {self.effective_rows:,.0f} by their weights" if self.has_weights else ""
        return f"{self.rows:,.0f} rows{worth}"


def is_mean(metric: str, at: Measured) -> bool:
    """Whether it is the mean of a metric over several outputs."""
    return at.labels is None and bool(at.labels_of_outputs) and not output_of(metric)


def is_undefined(metric: str, at: Measured) -> bool:
    """Whether the metric is undefined for these labels; a mean is if it is for those of every output."""
    each = at.labels_of_outputs.values() if is_mean(metric, at) else [at.labels]
    return all(labels is not None and _says_nothing(plain_name(metric), labels) for labels in each)


def is_empty(metric: str, at: Measured, *, overall: Measured) -> bool:
    """Whether no row of a slice counts for the metric, as where all weigh 0 or none has a label.

    Args:
        at: the slice.
        overall: all rows; where their labels are not known either, nothing is known of the slice.
    """
    if metric in at.metrics and plain_name(metric) not in METRICS:
        return False  # one of the user's own may count rows
    if overall.labels_of_outputs and not output_of(metric):
        return not at.labels_of_outputs
    known = overall.of_output(output_of(metric)).labels
    return known is not None and at.of_output(output_of(metric)).labels is None


def told(at: Measured, *, overall: Measured) -> dict[str, float]:
    """Return the candidate's metrics to tell of a slice: those that mean something, and are finite.

    Args:
        at, overall: as for `is_empty`. An area without a row that counts is 0, as if it were the worst.
    """
    counted = {name: value for name, value in at.defined.items() if not is_empty(name, at, overall=overall)}
    return finite_numbers(counted)


def _says_nothing(name: str, labels: LabelStatistics) -> bool:
    """Whether a metric that tells two classes apart was asked for where there is only one, or one of ranks
    where no row is relevant, or of shares of the labels where all are 0."""
    if name not in METRICS or labels.classes >= 2:
        return False
    if is_of_groups(name) or METRICS[name].skips_zeros:
        return labels.majority == 0
    return METRICS[name].needs_both_classes

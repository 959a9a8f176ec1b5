"""The schema and the anomalies of TFX's ExampleValidator, as plain data. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """The values that the schema allows for one feature.

    Attributes:
        type: INT, FLOAT, BYTES or empty.
        domain: the allowed texts; None if any text is allowed.
        domain_name: the name of a domain that features may share; empty for the feature's own domain.
        min_domain_mass: share of the values that must be in the domain, 0 to 1.
        min: the least number allowed; None if there is no limit.
        max: the largest number allowed; None if there is no limit.
        min_fraction: share of the rows that must have a value, 0 to 1.
        has_shape: whether the schema gives the feature a shape; Transform then reads no row without a value.
    """

    name: str
    type: str = ""
    domain: frozenset[str] | None = None
    domain_name: str = ""
    min_domain_mass: float = 1.0
    min: float | None = None
    max: float | None = None
    min_fraction: float = 0.0
    has_shape: bool = False


@dataclass(frozen=True, slots=True)
class Anomaly:
    """An anomaly that ExampleValidator found in a feature, or in the data as a whole.

    Attributes:
        feature: the column; empty for the data as a whole.
        type: TFDV's name for the kind of anomaly, e.g. `ENUM_TYPE_UNEXPECTED_STRING_VALUES`.
        severity: `error` or `warning`.
    """

    feature: str
    split: str
    type: str
    severity: str
    short: str
    description: str

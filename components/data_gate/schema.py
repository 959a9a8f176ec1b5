"""The schema and TFX's ExampleValidator's anomalies, as plain data by feature. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """The values that the schema allows for one feature.

    Attributes:
        type: INT, FLOAT, BYTES or empty.
        domain: the texts that are allowed; None: any.
        domain_name: of the domain that several features may share; empty for the feature's own.
        min_domain_mass: share of the values that must be in it, 0 to 1.
        min: the least number allowed; None: any.
        max: the largest number allowed; None: any.
        min_fraction: share of the rows that must have a value, 0 to 1.
        has_shape: whether the schema gives it one: Transform reads no row without a value then.
        is_in_training: whether it is expected in the training data.
        is_in_serving: whether it is expected when the model is asked.
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
    is_in_training: bool = True
    is_in_serving: bool = True


@dataclass(frozen=True, slots=True)
class Anomaly:
    """An anomaly that ExampleValidator found in a feature, or in the data as a whole.

    Attributes:
        feature: the column; empty for the data as a whole.
        type: TFDV's name for it, e.g. `ENUM_TYPE_UNEXPECTED_STRING_VALUES`.
        severity: `error` or `warning`.
        short: TFDV's few words.
        description: TFDV's sentence.
    """

    feature: str
    split: str
    type: str
    severity: str
    short: str
    description: str

"""Artifact types of this project's own, beside TFX's standard ones. Imports TFX."""

from tfx.types.artifact import Artifact, Property, PropertyType


class Quarantine(Artifact):
    """Rows that Ingest could not make examples of.

    The folder holds `rows-*.jsonl` (one JSON object a row: file, line, offset, column, reason, detail, and
    the content as `raw` or `raw_base64`) and `summary.json` (rows in, out by split, rejected by reason, and
    the digest of the input).
    """

    TYPE_NAME = "SlipwayQuarantine"
    PROPERTIES = {  # noqa: RUF012  (read by the class's base, which has it so)
        "rows_in": Property(type=PropertyType.INT),
        "rows_out": Property(type=PropertyType.INT),
        "rows_rejected": Property(type=PropertyType.INT),
    }

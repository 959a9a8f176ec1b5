"""Limits on what a source may need while it is read, not on its total size: `data.limits` of a workload.

Limits without a key stand where they apply: nested JSON in `json_objects.py`, the head of a CSV in
`csv_heads.py`, the header of an array in `npz_images.py`, the bytes kept of a row in `quarantine.py`.
docs/limits.md lists all.
"""

from dataclasses import dataclass

from slipway.components.setting_fields import setting

TOO_LARGE = "larger than the limit"
TOO_LONG = "longer than the limit"
_INT32_MAX = 2**31 - 1  # the greatest length in Arrow's and TensorFlow's files
_PILLOWS_MOST_PIXELS = 178_956_970  # twice PIL.Image.MAX_IMAGE_PIXELS; Pillow rejects more


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLimits:
    """Upper limits of a source while it is read; docs/limits.md explains each."""

    columns: int = setting(5_000, "Columns or keys that become features, of all files together.", ge=1)
    row_bytes: int = setting(
        8 << 20,
        "Bytes of a line of CSV or JSON Lines, or of a record of a TFRecord.",
        ge=1024,
        le=_INT32_MAX,
    )
    image_pixels: int = setting(
        50_000_000,
        "Height x width of an image; for a GIF, of all frames together; for an array, x channels.",
        ge=1,
        le=_PILLOWS_MOST_PIXELS,
    )
    decoded_bytes: int = setting(
        128 << 20,
        "Bytes of an unpacked row, image or value, and of a column of a Parquet row group that is compressed "
        "more than a hundredfold.",
        ge=1 << 20,
        le=_INT32_MAX,
    )

    def exceeded(self, name: str) -> str:
        """Return the end of a message about something too large: the limit's key and value."""
        return f"more than data.limits.{name} ({getattr(self, name):,})"

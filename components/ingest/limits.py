"""Limits on what reading a source may take, not on its size: `data.limits` of a workload."""

from dataclasses import dataclass

TOO_LARGE = "larger than the limit"
TOO_LONG = "longer than the limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Numbers above which something is refused; each has a default that is far above what is usual.

    Attributes:
        columns: columns or keys that become features, of all files together.
        row_bytes: length of a line of CSV or JSON Lines, or of a record of a TFRecord.
        image_pixels: of an image: height x width, of a GIF those of all frames; of an array x channels.
        decoded_bytes: what a row, an image or a value takes unpacked, and what of a Parquet file is unpacked
            at a time where it is packed more than a hundredfold.
    """

    columns: int = 5_000
    row_bytes: int = 8 << 20
    image_pixels: int = 50_000_000
    decoded_bytes: int = 128 << 20

    def exceeded(self, name: str) -> str:
        """The end of a message about something too large: the limit's key and value."""
        return f"more than data.limits.{name} ({getattr(self, name):,})"

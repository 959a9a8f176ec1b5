"""The local driver of Ingest: TFX's driver, except that it reads gs:// through the storage client.

TFX lists files through TensorFlow's file system, which does not support an emulator and needs separate
credentials. On Kubeflow and Vertex AI, TFX's own driver runs in a separate container.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from tfx.components.example_gen.driver import FileBasedDriver
from tfx.components.example_gen.input_processor import FileBasedInputProcessor

from slipway.components.ingest.storage import GS, list_files


class Driver(FileBasedDriver):
    """Resolves spans and versions, and fingerprints the files."""

    def get_input_processor(
        self, splits: Iterable[Any], range_config: Any = None, input_base_uri: str | None = None
    ) -> Any:
        """Return the processor for a source: ours for gs:// without spans or versions, else TFX's."""
        splits = list(splits)
        is_plain = range_config is None and not any("{" in split.pattern for split in splits)
        if input_base_uri is not None and input_base_uri.startswith(GS) and is_plain:
            return _ObjectProcessor(input_base_uri, splits)
        return super().get_input_processor(splits, range_config, input_base_uri)


class _ObjectProcessor(FileBasedInputProcessor):
    """Processes objects without spans, and fingerprints them by the checksums that the store reports."""

    def __init__(self, base: str, splits: list[Any]) -> None:
        super().__init__(base, splits)
        self._base = base.rstrip("/")

    def resolve_span_and_version(self) -> tuple[int, int | None]:
        return 0, None

    def get_input_fingerprint(self, span: int, version: int | None) -> str:  # noqa: ARG002
        lines = [
            f"{split.name} {file.name} {file.size_bytes} {file.checksum}\n"
            for split in self._splits
            for file in list_files(f"{self._base}/{split.pattern}")
        ]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

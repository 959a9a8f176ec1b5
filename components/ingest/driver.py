"""The local driver of Ingest: TFX's own, except that it reads gs:// through the storage client.

TFX looks through TensorFlow's file system, which knows no emulator and needs credentials of its own.
Kubeflow and Vertex run TFX's driver in a container of its own.
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
        """The processor for a source: ours where it lies on gs:// and names no span or version."""
        splits = list(splits)
        is_plain = range_config is None and not any("{" in split.pattern for split in splits)
        if input_base_uri is not None and input_base_uri.startswith(GS) and is_plain:
            return _ObjectProcessor(input_base_uri, splits)
        return super().get_input_processor(splits, range_config, input_base_uri)


class _ObjectProcessor(FileBasedInputProcessor):
    """Objects without spans: their fingerprint is that of the store's checksums."""

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

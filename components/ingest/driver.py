"""The local driver of Ingest: TFX's driver, except that it lists other places with Ingest's own clients.

TFX lists files through TensorFlow's file system, which knows of gs:// only, does not support an emulator and
needs separate credentials. On Kubeflow and Vertex AI, TFX's own driver runs in a separate container.
"""

import hashlib
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, NoReturn

from tfx.components.example_gen.driver import FileBasedDriver
from tfx.components.example_gen.input_processor import FileBasedInputProcessor
from tfx.dsl.io.filesystem import Filesystem
from tfx.dsl.io.filesystem_registry import DEFAULT_FILESYSTEM_REGISTRY

from slipway.components.errors import ComponentError
from slipway.components.ingest.storage import find_files, list_files
from slipway.components.store_address import AZ, GS, HF, S3, is_elsewhere


class Driver(FileBasedDriver):
    """Resolves spans and versions, and fingerprints the files."""

    def get_input_processor(
        self, splits: Iterable[Any], range_config: Any = None, input_base_uri: str | None = None
    ) -> Any:
        """Return the processor for a source: ours for stores (gs:// only without spans), else TFX's."""
        splits, base = list(splits), input_base_uri or ""
        has_spans = range_config is not None or any("{" in split.pattern for split in splits)
        if is_elsewhere(base) and not (base.startswith(GS) and has_spans):
            return _ObjectProcessor(base, splits, range_config, has_spans=has_spans)
        return super().get_input_processor(splits, range_config, input_base_uri)


class _ObjectProcessor(FileBasedInputProcessor):
    """Resolves spans as TFX does, and fingerprints files by the checksums that are listed with them."""

    def __init__(self, base: str, splits: list[Any], range_config: Any, *, has_spans: bool) -> None:
        super().__init__(base, splits, range_config)
        self._base = base.rstrip("/")
        self._has_spans = has_spans

    def resolve_span_and_version(self) -> tuple[int, int | None]:
        if not self._has_spans:
            return 0, None
        found: tuple[int, int | None] = super().resolve_span_and_version()
        return found

    def get_input_fingerprint(self, span: int, version: int | None) -> str:
        patterns = {
            split.name: self.get_pattern_for_span_version(split.pattern, span, version)
            for split in self._splits
        }
        lines = [
            f"{name} {file.name} {file.size_bytes} {file.checksum}\n"
            for name, pattern in patterns.items()
            for file in list_files(f"{self._base}/{pattern}")
        ]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _refuse(path: object, *_args: object, **_options: object) -> NoReturn:
    address = path.decode() if isinstance(path, bytes) else str(path)
    places = "s3:// and az:// are for data.source and push.destination"
    if address.startswith(HF):
        places = "hf:// is for data.source"
    raise ComponentError(f"{address}: {places} only.", hint="keep all else on this machine or on gs://")


class _Listing(Filesystem):
    """What TFX asks of a file system to resolve spans, for the places that TensorFlow does not know."""

    SUPPORTED_SCHEMES = [S3, AZ, HF]  # noqa: RUF012

    @staticmethod
    def glob(pattern: str) -> list[str]:
        return [file.name for file in find_files(pattern)]

    @staticmethod
    def stat(path: str) -> SimpleNamespace:  # noqa: ARG004
        """Answer for TFX's own fingerprint, which is not used: it would need a request for each file."""
        return SimpleNamespace(length=0, mtime_nsec=0)

    open = copy = exists = isdir = listdir = makedirs = mkdir = remove = rename = rmtree = walk = (
        staticmethod(_refuse)
    )


# TFX gives TensorFlow's own 10, which claims s3:// and does not have it.
DEFAULT_FILESYSTEM_REGISTRY.register(_Listing, priority=5)

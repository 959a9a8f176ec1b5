"""The command `serve`: serves a workload's newest version over HTTP, for trying it out."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import Manifest
from slipway.components.pusher.version_store import version_store_at
from slipway.components.request_log.request_log import BackgroundLog, RequestLog
from slipway.pipeline.commands.versions import no_version
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.signal_handlers import raise_interrupt, signals_handled_by
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.wiring.pushed_versions import serving_base, trusted_versions
from slipway.pipeline.wiring.request_log import log_settings

TOKEN_VARIABLE = "SLIPWAY_SERVE_TOKEN"  # noqa: S105  (the variable's name)
"""The variable with the secret that clients must send; required if other machines can reach the server."""


def serve(
    config: WorkloadConfig,
    output: Path,
    *,
    host: str,
    port: int,
    most_rows: int | None = None,
    verify_key: Path | None = None,
) -> None:
    """Serve the newest version, following pushes and rollbacks, until Ctrl-C or SIGTERM.

    Args:
        port: the port to listen on; 0 picks a free one.
        most_rows: the maximum number of rows in a request; None: the limit in `docs/limits.md`.
        verify_key: the public key whose private key must have signed the versions; None: the workload's key,
            if it names one.

    Raises:
        UsageError: there is no version, or no trusted one, or its data lacks a column that must be logged; or
            the address cannot be bound, or needs a token.
        ComponentError: no version can be served.
    """
    from slipway.components.serving.limits import MAX_ROWS
    from slipway.components.serving.live_model import LiveModel
    from slipway.components.serving.server import ModelServer

    trust = trusted_versions(config, verify_key)
    versions = version_store_at(serving_base(config, output.absolute()), trust)
    if not versions.numbers():
        raise no_version(versions.base, config, output)
    # The address is bound first, so that a wrong one is reported before a model is loaded.
    with raised_as(UsageError, ComponentError):
        bound = ModelServer(
            name=config.name,
            host=host,
            port=port,
            token=os.environ.get(TOKEN_VARIABLE, ""),
            most_rows=most_rows or MAX_ROWS,
        )
    with bound as server, _logged(config, output, versions.manifest(versions.numbers()[-1])) as server.log:
        with raised_as(UsageError, *([ComponentError] if trust else [])):
            live = LiveModel(versions, tell=_tell)
        server.live = live
        _tell(
            f"{server.url}/v1/models/{config.name}:predict  (to try it out; not for production. Ctrl-C ends)"
        )
        try:
            # Services are stopped by SIGTERM; requests already answered must still be logged then.
            with signals_handled_by(raise_interrupt):
                server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            _tell("Ended.")
        finally:
            live.close()


@contextlib.contextmanager
def _logged(
    config: WorkloadConfig, output: Path, manifest: Manifest | None
) -> Iterator[BackgroundLog | None]:
    """Provide the log of requests, flushed at the end; None if the workload configures none."""
    settings = log_settings(config, output, manifest)
    if settings is None:
        yield None
        return
    _tell(f"Logs {', '.join(settings.columns)} of requests to {settings.folder}")
    log = BackgroundLog(RequestLog(settings), tell=_tell)
    try:
        yield log
    finally:
        log.close()


def _tell(line: str) -> None:
    # The server and its threads may outlive the terminal or program that reads this output.
    with contextlib.suppress(OSError):
        say(line)

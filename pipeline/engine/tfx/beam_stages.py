"""Reports which stage a Beam pipeline is in, from the log messages of Beam's local runner."""

import logging
import re
import time
from collections.abc import Callable

# FnApiRunner logs, at DEBUG, "Running bundle for stage NAME\n..." for each bundle.
_LOGGER = "apache_beam.runners.portability.fn_api_runner.fn_runner.run_bundle"
# The display redraws twice a second, while a fast pipeline runs thousands of bundles a second.
_INTERVAL_S = 0.5
# "((ref_AppliedPTransform_A/B_12)+(ref_AppliedPTransform_C/D_13))+(C/D/Write)"
_FUSED = re.compile(r"\(([^()]+)\)")
_REFERENCE = re.compile(r"^ref_AppliedPTransform_(.+)_\d+$")


class StageHandler(logging.Handler):
    """A logging handler that reports the running stage, at most twice a second."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.DEBUG)
        self._tell = tell
        self._last_told = -_INTERVAL_S

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one log record; ignore all but those of a starting stage."""
        now = time.monotonic()
        if now - self._last_told < _INTERVAL_S or not str(record.msg).startswith("Running bundle for stage"):
            return
        self._last_told = now
        stage = record.args[0] if isinstance(record.args, tuple) and record.args else ""
        try:
            self._tell(f"Beam: {stage_name(str(stage))}")
        except Exception:  # as in every logging handler: a failed report must not end the work
            self.handleError(record)


def stage_name(fused: str) -> str:
    """Return a short name for a stage of fused transforms: the last two parts of its first transform's name.

    >>> stage_name("((ref_AppliedPTransform_Read/ParseCSVLine_12)+(ref_AppliedPTransform_Write_13))")
    'Read/ParseCSVLine'
    """
    names = _FUSED.findall(fused) or [fused]
    # Stages that Beam inserts are named after collections, which tells a user nothing.
    name = next((name for name in names if "PCollection" not in name), "")
    if match := _REFERENCE.match(name):
        name = match.group(1)
    return "/".join(re.sub(r"\[[^\]]*\]", "", name).replace("_", " ").split("/")[-2:]).strip() or "starting"


def report_stages(tell: Callable[[str], None]) -> None:
    """Make every Beam pipeline that FnApiRunner runs in this process from now on report its stages."""
    logger = logging.getLogger(_LOGGER)
    logger.setLevel(logging.DEBUG)
    # The messages hold whole stages: thousands of lines that are useless in a node's log.
    logger.propagate = False
    logger.addHandler(StageHandler(tell))

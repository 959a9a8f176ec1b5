"""A plugin of coverage.py that does not trace packages: `make test COVERAGE=1`.

On Python 3.11 coverage's tracer is called for each line of any code, and ignores those that are not ours; for
it, Python also runs each instruction the slow way. A Transform by TFX's own executor took 21 s of CPU instead
of 12, a loop five times as long. A function in C, which Python asks for each frame that it runs, takes the
tracer away from code of packages, of Python itself and of tests, and gives it back to ours: the lines and
branches counted are the same.

A forked process forgets what its parent has counted, which the parent saves: as it ended, each of hundreds of
forks wrote all of that once more, a quarter of a second of CPU.

Both files lie in the environment's packages, because coverage loads them in every process that Python starts,
whatever its path is. Where the one in C is not compiled, everything is traced.
"""

import contextlib
import os
from typing import Any


def coverage_init(registry: Any, options: dict[str, Any]) -> None:
    """Begin; coverage calls this in each process before it counts."""
    del registry, options
    os.register_at_fork(after_in_child=_forget)
    with contextlib.suppress(ImportError):
        from _uncounted_packages import keep_off  # type: ignore[import-not-found]
        from coverage.tracer import CTracer

        keep_off(CTracer)


def _forget() -> None:
    """Begin from nothing, without the lock of coverage's, which a thread of the parent's may have held."""
    from coverage import Coverage

    counting = Coverage.current()
    collector = counting and counting._collector
    for found in (collector.data if collector else {}).values():
        found.clear()

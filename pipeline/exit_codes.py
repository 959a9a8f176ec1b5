"""The exit codes of both command lines, as documented in their help and stored in `run.json`.

`runs/outcome.exit_code` decides which of them a run ends with.
"""

DONE = 0
FAILED = 1  # a node or anything else failed
WRONG_USAGE = 2  # wrong command line or workload file; the same code as argparse and click use
GATE_STOPPED = 3
INTERRUPTED = 130  # what shells report after Ctrl-C: 128 + SIGINT

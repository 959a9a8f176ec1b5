"""The exit codes of both command lines, as their help and `run.json` tell them.

Which one a run ends with is decided in `runs/outcome.exit_code`.
"""

DONE = 0
FAILED = 1  # a node failed, or something else did
WRONG_USAGE = 2  # the command line or the workload file; as of every command that uses argparse or click
GATE_STOPPED = 3
INTERRUPTED = 130  # what shells report after Ctrl-C: 128 + SIGINT

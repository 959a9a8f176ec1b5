"""A run's fork server in a copy of the project, forked from the warm process: see staged_server.py."""

from staged_server import import_from_copy


def main(arguments: list[str]) -> None:
    """As `python -m slipway.pipeline.engine.processes.fork_server` in the copy."""
    import_from_copy()
    from slipway.pipeline.engine.processes.fork_server import main as serve

    serve(arguments)

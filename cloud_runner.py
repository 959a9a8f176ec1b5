"""The command line for cloud runs: parse, call pipeline.cloud, exit code. Nothing else."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cloud import commands, submit
from pipeline.command_line import Profile, Sets, Verbose, Workload, call
from pipeline.local.invocation import DEFAULT_OUTPUT
from pipeline.local.request import DEFAULT_WORKLOAD

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Takes TFX pipelines to Vertex AI Pipelines and Kubeflow, and rehearses them on this machine first.",
    epilog="Exit codes: 0 done; 1 a task failed; 2 wrong usage or workload file; 3 a gate stopped it; "
    "130 interrupted.",
)


@app.callback()
def default() -> None:
    """Keeps the commands' names where there is only one."""


@app.command("compile")
def compile_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; standard output if left out.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Compile a job for Vertex AI Pipelines and Kubeflow."""
    result = commands.compile_workload(workload, sets=sets or [], profile=profile, file=file)
    sys.stdout.write(result if isinstance(result, str) else f"{result}\n")


@app.command()
def rehearse(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tasks at once; from cores and memory if left out.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder of the local runs; rehearsals go to rehearsal/ in it.")
    ] = DEFAULT_OUTPUT,
    verbose: Verbose = False,
) -> None:
    """Run the compiled job on this machine, task by task, as the service would."""
    code = commands.rehearse_workload(
        workload,
        sets=sets or [],
        profile=profile,
        output=output,
        jobs=jobs,
        again=shlex.join(["python", *sys.argv]),
    )
    raise typer.Exit(code)


@app.command("submit")
def submit_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run; end with its exit code.")] = False,
    verbose: Verbose = False,
) -> None:
    """Start a run at Vertex AI Pipelines or Kubeflow, and print the link to it."""
    raise typer.Exit(submit.submit_workload(workload, sets=sets or [], profile=profile, wait=wait))


if __name__ == "__main__":
    call(app)

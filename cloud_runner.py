#!/usr/bin/env python3
"""The command line for cloud runs: parses arguments, calls slipway.pipeline.cloud, sets the exit code."""

if __name__ == "__main__":  # before the slow imports
    from slipway.pipeline.terminal.early_interrupt import answer_at_once

    answer_at_once()

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.cloud import back_fill, baseline, compile_and_rehearse, submit
from slipway.pipeline.cloud import schedule_commands as schedule
from slipway.pipeline.cloud.airflow import command as airflow
from slipway.pipeline.cloud.airflow.dag_file import Place
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.cloud.services.service import Schedule
from slipway.pipeline.commands import options as o
from slipway.pipeline.commands.command_line import CommandLine, Profile, Sets, Workload, call
from slipway.pipeline.config import read_assignments
from slipway.pipeline.config.cloud_services import Service
from slipway.pipeline.plan.run_request import requested
from slipway.pipeline.terminal.invocation import DEFAULT_OUTPUT, DEFAULT_WORKLOAD, same_command
from slipway.pipeline.terminal.printable import printable

app = CommandLine(
    no_args_is_help=True,
    help="Take TFX pipelines to Vertex AI Pipelines (now Agent Platform Pipelines) and Kubeflow, and "
    "rehearse them on this machine first.",
    epilog="Exit codes: 0 done; 1 a task failed; 2 wrong usage or workload file; 3 a gate stopped it; "
    "130 interrupted.",
)


def _chosen(
    workload: Path, sets: list[str] | None, profile: str | None, schedule: str | None = None, **overrides: str
) -> CloudChoice:
    return CloudChoice(workload, read_assignments(sets or ()), profile, schedule, overrides)


@app.callback()
def default() -> None:
    """Keep the commands' names even if there is only one."""


@app.command("compile")
def compile_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; by default standard output.")
    ] = None,
    service: Annotated[
        Service | None,
        typer.Option(
            help="Service that takes the file; by default as cloud.service says.", show_default=False
        ),
    ] = None,
) -> None:
    """Compile a job for Vertex AI Pipelines (JSON), or a pipeline for Kubeflow (YAML)."""
    chosen = _chosen(workload, [*(sets or ()), *([f"cloud.service={service}"] if service else ())], profile)
    result = compile_and_rehearse.compile_workload(chosen, file=file)
    sys.stdout.write(result if isinstance(result, str) else f"{result}\n")


@app.command()
def rehearse(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="How many tasks run at once; by default as many as cores and memory allow."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            help="Folder of the local runs; rehearsals go to rehearsal/ in it.",
            show_default="output in the project",
        ),
    ] = DEFAULT_OUTPUT,
    root: Annotated[
        str | None,
        typer.Option(
            help="Folder for the artifacts, local or gs://..., with --service kubeflow s3://... or "
            "minio://...; by default in rehearsal/."
        ),
    ] = None,
    service: Annotated[ServiceName, typer.Option(help="Service to run the tasks as.")] = ServiceName.VERTEX,
    containers: Annotated[
        bool,
        typer.Option(
            "--containers", help="Run each task in a container of cloud.image, with Podman or Docker."
        ),
    ] = False,
    pipeline: Annotated[
        str | None, typer.Option(help="MODULE:FUNCTION of any TFX pipeline, instead of a workload.")
    ] = None,
    beam: o.Beam = None,
    accept_data: o.AcceptData = None,
    bless: o.Bless = None,
) -> None:
    """Run the compiled job on this machine, task by task, as the service would."""
    asked = requested(
        workload,
        sets=sets or [],
        profile=profile,
        pipeline=pipeline,
        output=output,
        beam_args=beam or [],
        overrides=o.overrides(accept_data, bless),
    )
    raise typer.Exit(
        compile_and_rehearse.rehearse_request(
            asked, jobs=jobs, root=root, service=service, in_containers=containers, again=same_command()
        )
    )


Output = Annotated[
    Path,
    typer.Option(
        help="Folder of the local runs; what trackers get of followed runs is kept in cloud/ in it.",
        show_default="output in the project",
    ),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="The run: its link, or the last part of that.")]


@app.command("submit")
def submit_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run; end with its exit code.")] = False,
    output: Output = DEFAULT_OUTPUT,
    accept_data: o.AcceptData = None,
    bless: o.Bless = None,
) -> None:
    """Start a run on Vertex AI Pipelines or Kubeflow, and print the link to it."""
    chosen = _chosen(workload, sets, profile, **o.overrides(accept_data, bless))
    raise typer.Exit(submit.submit_workload(replace(chosen, output=output), wait=wait))


@app.command("follow")
def follow_command(
    run: Run,
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    output: Output = DEFAULT_OUTPUT,
) -> None:
    """Show a submitted run, as `submit --wait` does."""
    raise typer.Exit(submit.follow_run(run, replace(_chosen(workload, sets, profile), output=output)))


@app.command("cancel")
def cancel_command(
    run: Run,
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
) -> None:
    """End a submitted run."""
    link = submit.cancel_run(run, _chosen(workload, sets, profile))
    sys.stdout.write(f"cancelled: {link}\n")


@app.command("baseline")
def baseline_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    clear: o.Clear = False,
    reason: o.Reason = "",
) -> None:
    """Show which blessed model the next cloud run is compared with, or clear it."""
    for line in baseline.baseline(_chosen(workload, sets, profile), clear=clear, reason=reason):
        sys.stdout.write(f"{printable(line)}\n")


schedules = CommandLine(
    no_args_is_help=True,
    help="Scheduled runs, as cloud.schedule of the workload says, and runs over a range of spans.",
)
app.add_typer(schedules, name="schedule")
Name = Annotated[str | None, typer.Option(help="Name of the schedule; by default the workload's.")]


def _said(done: str, made: Schedule) -> None:
    sys.stdout.write(f"{done}: {made.name}, {made.cron}; {made.link}\n")


@schedules.command("create")
def create_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    name: Name = None,
) -> None:
    """Create a schedule that runs the workload."""
    _said("created", schedule.create(_chosen(workload, sets, profile, name)))


@schedules.command("list")
def list_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
) -> None:
    """Show the schedules that the service has."""
    for line in schedule.listed(_chosen(workload, sets, profile)):
        sys.stdout.write(f"{printable(line)}\n")


@schedules.command("pause")
def pause_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    name: Name = None,
) -> None:
    """Keep a schedule from starting runs; runs in progress continue."""
    _said("paused", schedule.pause(_chosen(workload, sets, profile, name)))


@schedules.command("resume")
def resume_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    name: Name = None,
    catch_up: Annotated[
        bool | None,
        typer.Option(
            help="Make up for missed runs; by default as cloud.schedule.catch_up says.", show_default=False
        ),
    ] = None,
) -> None:
    """Let a paused schedule start runs again."""
    chosen = _chosen(workload, sets, profile, name)
    _said("resumed", schedule.resume(chosen, catch_up=catch_up))


@schedules.command("delete")
def delete_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    name: Name = None,
) -> None:
    """Remove a schedule; its runs stay."""
    _said("deleted", schedule.delete(_chosen(workload, sets, profile, name)))


@schedules.command("run-now")
def run_now_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    name: Name = None,
) -> None:
    """Start a run of a schedule now, and print the link to it."""
    sys.stdout.write(f"{schedule.run_now(_chosen(workload, sets, profile, name))}\n")


@schedules.command("back-fill")
def back_fill_command(
    first: Annotated[str, typer.Option("--from", help="The first span: a number, or a day as 2027-01-31.")],
    last: Annotated[str, typer.Option("--to", help="The last span.")],
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    name: Name = None,
    output: Output = DEFAULT_OUTPUT,
    accept_data: o.AcceptData = None,
    bless: o.Bless = None,
) -> None:
    """Run the workload for each span of a range that was not run yet."""
    chosen = _chosen(workload, sets, profile, name, **o.overrides(accept_data, bless))
    raise typer.Exit(back_fill.back_fill(replace(chosen, output=output), first=first, last=last))


@app.command("airflow")
def airflow_command(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    profile: Profile = None,
    folder: Annotated[Path, typer.Option("--dags", "-o", help="Folder of DAGs.")] = Path("dags"),
    project: Annotated[Path, typer.Option(help="Where Airflow's machines have this project.")] = PROJECT_ROOT,
    python: Annotated[Path, typer.Option(help="The project's interpreter there.")] = Path(sys.executable),
    output: Annotated[
        Path,
        typer.Option(help="Folder for all output there.", show_default="output in the project"),
    ] = DEFAULT_OUTPUT,
) -> None:
    """Write the workload as an Airflow DAG, one task for each node."""
    place = Place(str(project.absolute()), str(python.absolute()), str(output.absolute()))
    file = airflow.write_dag(_chosen(workload, sets, profile), folder=folder, place=place)
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    call(app)

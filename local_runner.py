"""The command line for local runs: parse, call pipeline.local, exit code. Nothing else."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline.command_line import Profile, Sets, Verbose, Workload, call
from pipeline.errors import UsageError
from pipeline.local import commands
from pipeline.local import versions as pushed
from pipeline.local.gc import DEFAULT_KEEP
from pipeline.local.invocation import DEFAULT_OUTPUT
from pipeline.local.printable import printable
from pipeline.local.request import DEFAULT_WORKLOAD
from pipeline.root import PROJECT_ROOT
from pipeline.serving import serving_base

app = typer.Typer(
    add_completion=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Runs TFX pipelines on this machine, from raw files to a served model. Without a command: run.",
    epilog="Exit codes: 0 done; 1 a node failed; 2 wrong usage or workload file; 3 a gate stopped it; "
    "130 interrupted.",
)

Run = Annotated[str | None, typer.Argument(help="A run's id or the start of it; the latest if left out.")]
Output = Annotated[Path, typer.Option(help="Folder for everything that runs write.")]
ProfileSteps = Annotated[
    str | None, typer.Option(metavar="FIRST:LAST", help="Steps of the training to profile, counted from 1.")
]
Pipeline = Annotated[
    str | None, typer.Option(help="MODULE:FUNCTION of any TFX pipeline, instead of a workload.")
]
Beam = Annotated[list[str] | None, typer.Option(help="An option for every Beam component. Repeatable.")]
Start = Annotated[str | None, typer.Option("--from", metavar="NODE", help="Run this node and what follows.")]
End = Annotated[str | None, typer.Option("--to", metavar="NODE", help="Stop after this node.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Run every node, cached or not.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Nodes at once; from cores and memory if left out.")]
AcceptData = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Let this run pass the data gate whatever it finds; kept on record."),
]
Bless = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Let this run's model pass its gate; kept on record."),
]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="A failure also ends the nodes beside it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    """Runs the default workload when no command is given."""
    if context.invoked_subcommand is None:
        raise typer.Exit(commands.run(commands.request(DEFAULT_WORKLOAD, output=DEFAULT_OUTPUT)))


@app.command()
def run(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    start: Start = None,
    end: End = None,
    no_cache: NoCache = False,
    jobs: Jobs = None,
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    pipeline: Pipeline = None,
    beam: Beam = None,
    fail_fast: FailFast = False,
    accept_data: AcceptData = None,
    bless: Bless = None,
    profile_steps: ProfileSteps = None,
    verbose: Verbose = False,
) -> None:
    """Run the pipeline, with live progress."""
    profiled = [f"train.profile_steps={profile_steps}"] if profile_steps is not None else []
    asked = commands.request(
        workload,
        sets=[*(sets or []), *profiled],
        profile=profile,
        pipeline=pipeline,
        output=output,
        beam_args=beam or [],
        start=start,
        end=end,
        no_cache=no_cache,
        jobs=jobs,
        fail_fast=fail_fast,
        overrides=_overrides(accept_data, bless),
    )
    raise typer.Exit(commands.run(asked))


@app.command()
def plan(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    start: Start = None,
    end: End = None,
    no_cache: NoCache = False,
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    pipeline: Pipeline = None,
    beam: Beam = None,
    accept_data: AcceptData = None,
    bless: Bless = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what would run and why. Nothing is executed."""
    asked = commands.request(
        workload,
        sets=sets or [],
        profile=profile,
        pipeline=pipeline,
        output=output,
        beam_args=beam or [],
        start=start,
        end=end,
        no_cache=no_cache,
        overrides=_overrides(accept_data, bless),
    )
    decided = commands.plan(asked)
    _print(decided.to_json() if as_json else decided.text())


@app.command()
def resume(
    run: Run = None,
    output: Output = DEFAULT_OUTPUT,
    jobs: Jobs = None,
    verbose: Verbose = False,
) -> None:
    """Go on with a failed, interrupted or killed run from the first node that did not complete."""
    raise typer.Exit(commands.resume(run, output=output, jobs=jobs))


step = typer.Typer(
    no_args_is_help=True,
    help="A run whose nodes another program runs one by one, such as Airflow.",
)
app.add_typer(step, name="step")
StepRun = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as `step begin` printed it.")]


@step.command("begin")
def step_begin(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    no_cache: NoCache = False,
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    pipeline: Pipeline = None,
    verbose: Verbose = False,
) -> None:
    """Make a run and plan it; print its id. What is cached is done then."""
    asked = commands.request(
        workload, sets=sets or [], profile=profile, pipeline=pipeline, output=output, no_cache=no_cache
    )
    _print(commands.begin(asked))


@step.command("node")
def step_node(
    run: StepRun,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node's id.")],
    output: Output = DEFAULT_OUTPUT,
    verbose: Verbose = False,
) -> None:
    """Run one node of a run, once; nodes that it needs must be done."""
    raise typer.Exit(commands.run_node(run, node, output=output))


@step.command("finish")
def step_finish(run: StepRun, output: Output = DEFAULT_OUTPUT, verbose: Verbose = False) -> None:
    """Close a run and say what it achieved."""
    raise typer.Exit(commands.finish(run, output=output))


@app.command()
def runs(output: Output = DEFAULT_OUTPUT, as_json: Json = False, verbose: Verbose = False) -> None:
    """List the runs, the newest first."""
    listed = commands.runs(output)
    _print([record.to_json() for record in listed] if as_json else commands.runs_text(listed))


@app.command()
def show(
    run: Run = None, output: Output = DEFAULT_OUTPUT, as_json: Json = False, verbose: Verbose = False
) -> None:
    """Show one run: nodes, times, metrics, blessing, pushed version."""
    record = commands.find(run, output)
    _print(record.to_json() if as_json else commands.show_text(record))


@app.command(name="accept-schema")
def accept_schema(
    run: Run = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    output: Output = DEFAULT_OUTPUT,
    verbose: Verbose = False,
) -> None:
    """Take over into the schema what a run's data gate proposed, after showing the change."""

    def agrees(change: str) -> bool:
        _print(change)
        if not yes and not sys.stdin.isatty():
            raise UsageError("Nobody can be asked here; nothing is written.", hint="add --yes")
        return yes or typer.confirm("Write this?")

    _print(commands.accept_schema(run, output, agrees=agrees))


@app.command()
def report(
    run: Run = None,
    index: Annotated[bool, typer.Option("--index", help="All runs on one page, with their trends.")] = False,
    to: Annotated[
        Path | None, typer.Option("-o", "--to", metavar="FILE", help="The file; else beside the run.")
    ] = None,
    output: Output = DEFAULT_OUTPUT,
    verbose: Verbose = False,
) -> None:
    """Write a run as one HTML page that opens from disk, and print its path."""
    _print(str(commands.report(run, output, index=index, path=to)))


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the start of it, or latest.")],
    new: Annotated[str, typer.Argument(metavar="RUN", help="The run to compare with it.")],
    output: Output = DEFAULT_OUTPUT,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what changed from one run to another: settings, code, data, metrics, times."""
    found = commands.diff(old, new, output)
    _print(found.to_json() if as_json else found.text())


@app.command()
def baseline(
    workload: Workload = DEFAULT_WORKLOAD,
    new: Annotated[
        str | None, typer.Option("--set", metavar="RUN", help="Compare with the model of that run.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Compare the next model with nothing.")] = False,
    reason: Annotated[str, typer.Option(help="Why; kept on record.")] = "",
    output: Output = DEFAULT_OUTPUT,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show which blessed model the next one is compared with, or change it."""
    found = commands.baseline(workload, output, new=new, clear=clear, reason=reason)
    _print(found.to_json() if as_json else found.text())


@app.command()
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    keep: Annotated[int, typer.Option(help="How many runs of each pipeline to keep.")] = DEFAULT_KEEP,
    output: Output = DEFAULT_OUTPUT,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Remove artifacts that no kept run, pushed version or baseline needs."""
    sweep = commands.gc(output, keep=keep, dry_run=dry_run)
    _print(sweep.to_json() if as_json else commands.gc_text(sweep, output, keep=keep))


@app.command()
def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also start the interpreters and contact TPUs.")
    ] = False,
    output: Output = DEFAULT_OUTPUT,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what this machine has: accelerators, interpreters, versions, credentials, programs."""
    diagnosis = commands.doctor(output, deep=deep)
    _print(diagnosis.to_json() if as_json else diagnosis.text())
    raise typer.Exit(0 if diagnosis.is_ready else 1)


@app.command()
def preflight(
    workload: Workload = DEFAULT_WORKLOAD,
    tpu: Annotated[
        list[str] | None, typer.Option(metavar="SLICE", help="Such as v5e-8; else train.tpu. Repeatable.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All slices of one host.")] = False,
    search_s: Annotated[
        float | None,
        typer.Option("--search", min=0, help="Seconds to look for the largest batch; 30, with --all 0."),
    ] = None,
    limit_s: Annotated[float, typer.Option("--limit", min=1, help="Seconds for one slice at most.")] = 600,
    price: Annotated[
        list[str] | None, typer.Option(metavar="GENERATION=USD", help="Of a chip-hour. Repeatable.")
    ] = None,
    sets: Sets = None,
    profile: Profile = None,
    output: Output = DEFAULT_OUTPUT,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compile the training step for TPUs without one: does it fit, what limits it, what would it cost."""
    from pipeline.local import preflight as tpu_preflight

    slices = [*(tpu or []), *(tpu_preflight.ONE_HOST if every else [])]
    wanted = tpu_preflight.Wanted(
        slices=tuple(slices),
        search_s=search_s if search_s is not None else 0.0 if every else tpu_preflight.SEARCH_S,
        limit_s=limit_s,
        prices=tuple(price or []),
    )
    found = tpu_preflight.preflight(workload, output, wanted, sets=sets or [], profile=profile)
    _print(found.to_json() if as_json else found.text())
    raise typer.Exit(found.exit_code)


@app.command()
def versions(
    workload: Workload = DEFAULT_WORKLOAD,
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """List the pushed versions with their metrics, the newest first; the newest is what a server serves."""
    found = pushed.versions(pushed.workload_config(workload, profile=profile), output)
    _print([version.to_json() for version in found] if as_json else pushed.versions_text(found))


@app.command()
def rollback(
    workload: Workload = DEFAULT_WORKLOAD,
    to: Annotated[
        int | None, typer.Option(metavar="VERSION", help="The version to go back to; else the one before.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; kept on record.")] = "",
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    verbose: Verbose = False,
) -> None:
    """Publish an earlier version again as the newest, so that a server picks it up by itself."""
    done = pushed.rollback(pushed.workload_config(workload, profile=profile), output, to=to, reason=reason)
    _print(done.text())


@app.command()
def verify(
    place: Annotated[
        str | None,
        typer.Argument(help="A workload, a version or a folder of versions."),
    ] = None,
    workload: Annotated[
        Path, typer.Option(help="Whose versions, where no place is named.")
    ] = DEFAULT_WORKLOAD,
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    verbose: Verbose = False,
) -> None:
    """Check pushed versions, byte by byte, against their manifests. Exit code 1: one is not what it says."""
    if place and not Path(place).exists() and (PROJECT_ROOT / "workloads" / place).is_dir():
        workload, place = Path(place), None
    if place is None:
        place = serving_base(pushed.workload_config(workload, profile=profile), output.absolute())
    problems = 0
    for address, problem in pushed.verify(place):
        problems += bool(problem)
        _print(f"{address}: {problem or 'is what its manifest says'}")
    raise typer.Exit(1 if problems else 0)


@app.command()
def predict(
    source: Annotated[
        str, typer.Option("--input", help="A file, folder, glob or gs:// address of rows to predict.")
    ],
    workload: Workload = DEFAULT_WORKLOAD,
    to: Annotated[Path | None, typer.Option(help="A new folder for the predictions.")] = None,
    version: Annotated[int | None, typer.Option(help="Which pushed version; else the newest.")] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="csv, jsonl, parquet or tfrecord; else by the files' names."),
    ] = None,
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    beam: Beam = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Predict the rows of files with a pushed version; one line of JSON for each row."""
    from pipeline.local.predict import predict as predict_rows

    done = predict_rows(
        pushed.workload_config(workload, profile=profile),
        output,
        source=source,
        to=to,
        version=version,
        file_format=file_format,
        beam_args=beam or [],
    )
    _print({"folder": str(done.folder), **done.summary} if as_json else done.text())


@app.command()
def serve(
    workload: Workload = DEFAULT_WORKLOAD,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8501,
    host: Annotated[
        str, typer.Option(help="The address to bind; beyond this machine a token is needed.")
    ] = "127.0.0.1",
    output: Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    verbose: Verbose = False,
) -> None:
    """Serve the newest version under TF Serving's REST paths, to try it out. Not for production."""
    from pipeline.local.serve import serve as serve_versions

    serve_versions(pushed.workload_config(workload, profile=profile), output, host=host, port=port)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Of the new workload: lower-case letters, digits and _.")],
    data: Annotated[
        str, typer.Option(help="A file, folder, glob or gs:// address of rows: CSV, JSON Lines or Parquet.")
    ],
    label: Annotated[str | None, typer.Option(help="The column to predict; asked for if left out.")] = None,
    task: Annotated[str, typer.Option(help="auto, binary, multiclass or regression.")] = "auto",
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A feature, whatever speaks against. Repeatable."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Begin a workload from a file of rows: schema, preprocessing, model and test, as code of your own."""
    from pipeline.start.command import new as begin

    def ask(question: str, answers: list[str]) -> str:
        if not sys.stdin.isatty():
            raise UsageError(f"{question} Nobody can be asked here.", hint=f"one of {', '.join(answers)}")
        while (answer := typer.prompt(f"{question}\n{', '.join(answers)}")) not in answers:
            _print(f"{answer!r} is none of these.")
        return str(answer)

    begun = begin(name, data=data, label=label, task=task, keep=keep or [], root=PROJECT_ROOT, ask=ask)
    _print(begun.text())


def _overrides(accept_data: str | None, bless: str | None) -> dict[str, str]:
    given = {"accept_data": accept_data, "bless": bless}
    return {name: reason for name, reason in given.items() if reason is not None}


def _print(result: object) -> None:
    print(printable(result) if isinstance(result, str) else json.dumps(result, indent=2))


if __name__ == "__main__":
    call(app)

#!/usr/bin/env python3
"""The command line for local runs: parses arguments, calls slipway.pipeline.commands, sets the exit code."""

if __name__ == "__main__":  # before the slow imports
    from slipway.pipeline.terminal.early_interrupt import answer_at_once

    answer_at_once()

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from slipway.components.finite_json import json_text
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.commands import options as o
from slipway.pipeline.commands.command_line import CommandLine, Profile, Sets, Workload, call
from slipway.pipeline.errors import DataSourceError, PipelineError, raised_as
from slipway.pipeline.terminal import questions
from slipway.pipeline.terminal.invocation import DEFAULT_KEEP, DEFAULT_OUTPUT, DEFAULT_WORKLOAD, command
from slipway.pipeline.terminal.printable import printable, say

if TYPE_CHECKING:
    from slipway.pipeline.config import WorkloadChoice

app = CommandLine(
    help="Run TFX pipelines on this machine, from raw files to a served model. Without a command: run.",
    epilog="Exit codes: 0 done; 1 a node failed; 2 wrong usage or workload file; 3 a gate stopped it; "
    "130 interrupted.",
)


@app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    """Run the default workload when no command is given."""
    if context.invoked_subcommand is None:
        from slipway.pipeline.commands import run as running
        from slipway.pipeline.plan.run_request import requested

        raise typer.Exit(running.run(requested(DEFAULT_WORKLOAD, output=DEFAULT_OUTPUT)))


@app.command()
def run(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    start: o.Start = None,
    end: o.End = None,
    no_cache: o.NoCache = False,
    jobs: o.Jobs = None,
    output: o.Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    pipeline: o.Pipeline = None,
    beam: o.Beam = None,
    fail_fast: o.FailFast = False,
    accept_data: o.AcceptData = None,
    bless: o.Bless = None,
    profile_steps: o.ProfileSteps = None,
) -> None:
    """Run the pipeline, with live progress."""
    from slipway.pipeline.commands import run as running
    from slipway.pipeline.plan.run_request import requested

    profiled = [f"train.profile_steps={profile_steps}"] if profile_steps is not None else []
    asked = requested(
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
        overrides=o.overrides(accept_data, bless),
    )
    raise typer.Exit(running.run(asked))


@app.command()
def plan(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    start: o.Start = None,
    end: o.End = None,
    no_cache: o.NoCache = False,
    output: o.Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    pipeline: o.Pipeline = None,
    beam: o.Beam = None,
    accept_data: o.AcceptData = None,
    bless: o.Bless = None,
    as_json: o.Json = False,
) -> None:
    """Show what would run and why. Nothing is executed."""
    from slipway.pipeline.commands import run as running
    from slipway.pipeline.plan.run_request import requested

    asked = requested(
        workload,
        sets=sets or [],
        profile=profile,
        pipeline=pipeline,
        output=output,
        beam_args=beam or [],
        start=start,
        end=end,
        no_cache=no_cache,
        overrides=o.overrides(accept_data, bless),
    )
    decided = running.plan(asked)
    _print(decided.to_json() if as_json else decided.text())


@app.command()
def resume(
    run: o.Run = None,
    output: o.Output = DEFAULT_OUTPUT,
    jobs: o.Jobs = None,
) -> None:
    """Continue a failed, interrupted or killed run from the first node that did not complete."""
    from slipway.pipeline.commands import run as running

    raise typer.Exit(running.resume(run, output=output, jobs=jobs))


@app.command()
def warm(
    minutes: o.IdleMinutes = 15,
    end: o.EndWarm = False,
) -> None:
    """Keep a process that has imported TFX: the next runs start some seconds sooner."""
    from slipway.pipeline.commands import warm as warming

    print(warming.end() if end else warming.begin(minutes))


step = CommandLine(
    no_args_is_help=True,
    help="Run a pipeline step by step from another program, such as Airflow.",
)
app.add_typer(step, name="step")


@step.command("begin")
def step_begin(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: Sets = None,
    no_cache: o.NoCache = False,
    output: o.Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    pipeline: o.Pipeline = None,
    accept_data: o.AcceptData = None,
    bless: o.Bless = None,
    airflow: o.Airflow = "",
) -> None:
    """Create and plan a run, and print its id. Cached nodes are done at once."""
    from slipway.pipeline.commands import run as running
    from slipway.pipeline.plan.run_request import requested

    # Data that is late is no wrong usage: exit code 1, which a scheduler may try again.
    with raised_as(PipelineError, DataSourceError):
        asked = requested(
            workload,
            sets=sets or [],
            profile=profile,
            pipeline=pipeline,
            output=output,
            no_cache=no_cache,
            overrides=o.overrides(accept_data, bless),
        )
    _print(running.begin(asked, airflow=airflow))


@step.command("node")
def step_node(
    run: o.StepRun,
    node: o.StepNode,
    output: o.Output = DEFAULT_OUTPUT,
) -> None:
    """Run one node of a run once; the nodes it depends on must be done."""
    from slipway.pipeline.commands import run as running

    raise typer.Exit(running.run_node(run, node, output=output))


@step.command("finish")
def step_finish(run: o.StepRun, output: o.Output = DEFAULT_OUTPUT) -> None:
    """Close a run and say what it achieved."""
    from slipway.pipeline.commands import run as running

    raise typer.Exit(running.finish(run, output=output))


@app.command()
def runs(
    workload: o.RunsOf = None,
    by: o.By = None,
    since: o.Since = None,
    output: o.Output = DEFAULT_OUTPUT,
    as_json: o.Json = False,
) -> None:
    """List the runs, the newest first; with a workload, --by or --since, compare them."""
    from slipway.pipeline.commands import show as showing

    if (workload, by, since) != (None, None, None):
        from slipway.pipeline.commands.compare_runs import compared

        found = compared(workload, output, by=by, since=since)
        _print(found.to_json() if as_json else found.text())
    elif as_json:
        _print([record.to_json() for record in showing.runs(output)])
    else:
        _print(showing.runs_text(showing.listed(output), output))
        from slipway.pipeline.commands.track import waiting_line

        if missed := waiting_line(output):
            say(missed)


@app.command()
def show(run: o.Run = None, output: o.Output = DEFAULT_OUTPUT, as_json: o.Json = False) -> None:
    """Show one run: nodes, times, metrics, blessing, pushed version."""
    from slipway.pipeline.commands import show as showing

    record = showing.find(run, output)
    _print(record.to_json() if as_json else showing.show_text(record, width=_screen_width()))


@app.command(name="accept-schema")
def accept_schema(
    run: o.Run = None,
    yes: o.Yes = False,
    output: o.Output = DEFAULT_OUTPUT,
) -> None:
    """Show the schema edits that a run's data gate proposed, and apply them if you agree."""
    from slipway.pipeline.commands import accept_schema as schema_edits

    def agrees(change: str) -> bool:
        _print(change)
        return questions.agrees("Write this?", yes=yes)

    _print(schema_edits.accept_schema(run, output, agrees=agrees))


@app.command()
def report(
    run: o.Run = None,
    index: o.Index = False,
    to: o.PageFile = None,
    output: o.Output = DEFAULT_OUTPUT,
    as_json: o.Json = False,
) -> None:
    """Write a run as one HTML page that opens from disk, and print its path."""
    from slipway.pipeline.commands import report as pages

    written = pages.report(run, output, index=index, path=to)
    _print({"page": str(written)} if as_json else str(written))


@app.command()
def diff(
    old: o.OldRun,
    new: o.NewRun,
    more: o.MoreRuns = None,
    to: o.DifferenceFile = None,
    output: o.Output = DEFAULT_OUTPUT,
    as_json: o.Json = False,
) -> None:
    """Show what changed from one run to another: settings, code, data, metrics, times."""
    from slipway.pipeline.commands import compare_runs
    from slipway.pipeline.commands import report as pages

    if more:
        side_by_side = compare_runs.named([old, new, *more], output, page=to)
        _print(side_by_side.to_json() if as_json else side_by_side.text())
        return
    if to is not None:
        written = pages.diff_page(old, new, output, to)
        _print({"page": str(written)} if as_json else str(written))
        return
    found = pages.diff(old, new, output)
    _print(found.to_json() if as_json else found.text())


@app.command()
def sweep(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: o.Varied = None,
    trials: o.Trials = None,
    method: o.Method = None,
    by: o.Metric = None,
    seed: o.SweepSeed = 0,
    seeds: o.Seeds = 1,
    prune: o.Prune = None,
    resume: o.SweepResume = None,
    jobs: o.SweepJobs = None,
    output: o.Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    as_json: o.Json = False,
) -> None:
    """Try many settings, as runs that share every cached node, and say which was best. Pushes nothing."""
    from slipway.pipeline.commands.end_listeners import hand_to_trackers, leave_to_trackers, write_page
    from slipway.pipeline.sweep import command as sweeps

    folder = output.absolute()
    options = sweeps.Asked(
        sets=tuple(sets or ()),
        profile=profile,
        method=method,
        trials=trials,
        by=by,
        seed=seed,
        seeds=seeds,
        prune=prune,
    )
    if resume is not None:
        asked = sweeps.resume(resume, folder, asked=options)
    else:
        asked = sweeps.begin(workload, folder, options)
    listeners = [leave_to_trackers, write_page, hand_to_trackers]
    code = sweeps.carry_out(asked, jobs=jobs, listeners=listeners, tell=say)
    if as_json:
        _print(asked.to_json())
    raise typer.Exit(code)


@app.command()
def baseline(
    workload: Workload = DEFAULT_WORKLOAD,
    sets: o.BaselineSets = None,
    clear: o.Clear = False,
    reason: o.Reason = "",
    output: o.Output = DEFAULT_OUTPUT,
    profile: Profile = None,
    as_json: o.Json = False,
) -> None:
    """Show which blessed model the next one is compared with, or change it."""
    from slipway.pipeline.commands import baseline as baselines

    new, settings = o.run_and_settings(sets or ())
    chosen = _chosen(workload, settings, profile)
    found = baselines.baseline(chosen, output, new=new, clear=clear, reason=reason)
    _print(found.to_json() if as_json else found.text())


@app.command()
def gc(
    dry_run: o.DryRun = False,
    keep: o.Keep = DEFAULT_KEEP,
    output: o.Output = DEFAULT_OUTPUT,
    as_json: o.Json = False,
) -> None:
    """Remove old runs, records and logs too, and artifacts that no kept run, version or baseline needs."""
    from slipway.pipeline.commands.gc.collect import collect

    cleanup = collect(output, keep=keep, dry_run=dry_run)
    again = command("gc", "--keep", str(keep), output=output)
    _print(cleanup.to_json() if as_json else cleanup.text(command=again))


@app.command()
def track(output: o.Output = DEFAULT_OUTPUT, as_json: o.Json = False) -> None:
    """Send trackers the runs they missed, and say which are still waiting."""
    from slipway.pipeline.commands.track import track as send

    sent = send(output.absolute())
    _print(sent.to_json() if as_json else sent.text())
    raise typer.Exit(0 if sent.is_all else 1)


@app.command()
def doctor(
    deep: o.Deep = False,
    output: o.Output = DEFAULT_OUTPUT,
    as_json: o.Json = False,
) -> None:
    """Check this machine: accelerators, interpreters, versions, credentials, programs."""
    from slipway.pipeline.commands.doctor import examine

    diagnosis = examine(output, os.environ, deep=deep)
    _print(diagnosis.to_json() if as_json else diagnosis.text())
    raise typer.Exit(0 if diagnosis.is_ready else 1)


@app.command()
def preflight(
    workload: Workload = DEFAULT_WORKLOAD,
    tpu: o.Slices = None,
    every: o.EverySlice = False,
    search_s: o.Search = None,
    limit_s: o.Limit = None,
    price: o.Prices = None,
    fast: o.Fast = False,
    sets: Sets = None,
    profile: Profile = None,
    output: o.Output = DEFAULT_OUTPUT,
    as_json: o.Json = False,
) -> None:
    """Compile the training step for TPUs without one: does it fit, what limits it, what does it cost."""
    from slipway.pipeline.commands import preflight as tpu_preflight

    slices = [*(tpu or []), *(tpu_preflight.ONE_HOST if every else [])]
    wanted = tpu_preflight.Wanted(
        slices=tuple(slices),
        search_s=tpu_preflight.default_search_s(slices, is_quick=every or fast)
        if search_s is None
        else search_s,
        limit_s=limit_s,
        prices=tuple(price or []),
        is_fast=fast,
    )
    found = tpu_preflight.preflight(_chosen(workload, sets, profile), output, wanted)
    _print(found.to_json() if as_json else found.text())
    raise typer.Exit(found.exit_code)


@app.command()
def versions(
    workload: Workload = DEFAULT_WORKLOAD,
    output: o.Output = DEFAULT_OUTPUT,
    sets: Sets = None,
    profile: Profile = None,
    as_json: o.Json = False,
) -> None:
    """List the pushed versions with their metrics, the newest first; the newest is what a server serves."""
    from slipway.pipeline.commands import versions as pushed

    config = _chosen(workload, sets, profile).config()
    found = pushed.versions(config, output)
    text = pushed.versions_text(found, config, output)
    _print([version.to_json() for version in found] if as_json else text)


@app.command()
def rollback(
    workload: Workload = DEFAULT_WORKLOAD,
    to: o.BackTo = None,
    reason: o.Reason = "",
    output: o.Output = DEFAULT_OUTPUT,
    sets: Sets = None,
    profile: Profile = None,
    as_json: o.Json = False,
) -> None:
    """Publish an earlier version again as the newest; servers pick it up by themselves."""
    from slipway.pipeline.commands import versions as pushed

    done = pushed.rollback(_chosen(workload, sets, profile).config(), output, to=to, reason=reason)
    _print(done.to_json() if as_json else done.text())


@app.command()
def verify(
    place: o.Place = None,
    workload: o.VersionsOf = DEFAULT_WORKLOAD,
    verify_key: o.VerifyKey = None,
    output: o.Output = DEFAULT_OUTPUT,
    sets: Sets = None,
    profile: Profile = None,
    as_json: o.Json = False,
) -> None:
    """Check pushed versions, byte by byte, against manifests and signatures. Exit code 1: one differs."""
    from slipway.pipeline.commands.verify import verified_text, verify_all

    found = verify_all(place, _chosen(workload, sets, profile), output, verify_key=verify_key)
    _print([each.to_json() for each in found] if as_json else verified_text(found))
    raise typer.Exit(1 if any(each.problem for each in found) else 0)


@app.command()
def predict(
    source: o.Source,
    workload: Workload = DEFAULT_WORKLOAD,
    to: o.NewFolder = None,
    version: o.Version = None,
    file_format: o.Format = None,
    verify_key: o.VerifyKey = None,
    output: o.Output = DEFAULT_OUTPUT,
    sets: Sets = None,
    profile: Profile = None,
    beam: o.Beam = None,
    as_json: o.Json = False,
) -> None:
    """Predict rows from files with a pushed version; write one line of JSON per row."""
    from slipway.pipeline.commands.predict import predict as predict_rows

    done = predict_rows(
        _chosen(workload, sets, profile).config(),
        output,
        source=source,
        to=to,
        version=version,
        file_format=file_format,
        beam_args=beam or [],
        verify_key=verify_key,
    )
    _print({"folder": str(done.folder), **done.summary} if as_json else done.text())
    raise typer.Exit(done.exit_code)


@app.command()
def serve(
    workload: Workload = DEFAULT_WORKLOAD,
    port: o.Port = 8501,
    host: o.Host = "127.0.0.1",
    max_rows: o.MaxRows = None,
    verify_key: o.VerifyKey = None,
    output: o.Output = DEFAULT_OUTPUT,
    sets: Sets = None,
    profile: Profile = None,
) -> None:
    """Serve the newest version at TF Serving's REST paths, to try it out. Not for production."""
    from slipway.pipeline.commands.serve import serve as serve_versions

    serve_versions(
        _chosen(workload, sets, profile).config(),
        output,
        host=host,
        port=port,
        most_rows=max_rows,
        verify_key=verify_key,
    )


@app.command()
def watch(
    workload: Workload = DEFAULT_WORKLOAD,
    on: o.Logged = None,
    by: o.Every = "day",
    version: o.Version = None,
    reference: o.Training = None,
    labels: o.LateLabels = None,
    key: o.JoinKey = None,
    output: o.Output = DEFAULT_OUTPUT,
    sets: Sets = None,
    profile: Profile = None,
    as_json: o.Json = False,
) -> None:
    """Say whether requests to a version have drifted from its training data. Exit code 3: yes."""
    from slipway.pipeline.commands.watch import late_labels
    from slipway.pipeline.commands.watch import watch as watch_version

    config = _chosen(workload, sets, profile).config()
    late = late_labels(labels, key)
    found, page = watch_version(config, output, on=on, version=version, by=by, reference=reference, late=late)
    _print({**found.to_json(), "page": str(page)} if as_json else f"{found.text()}\n{page}")
    raise typer.Exit(found.exit_code)


@app.command("compare")
def compare_versions(
    workload: Workload = DEFAULT_WORKLOAD,
    champion: o.Champion = None,
    challenger: o.Challenger = None,
    on: o.Logged = None,
    labels: o.LateLabels = None,
    key: o.JoinKey = None,
    verify_key: o.VerifyKey = None,
    output: o.Output = DEFAULT_OUTPUT,
    sets: Sets = None,
    profile: Profile = None,
    as_json: o.Json = False,
) -> None:
    """Have two versions answer the same logged requests. Exit code 3: by --labels the second is worse."""
    from slipway.pipeline.commands.compare_versions import chosen, compare
    from slipway.pipeline.commands.watch import late_labels

    workload, champion, challenger = chosen(workload, champion, challenger)
    config = _chosen(workload, sets, profile).config()
    late = late_labels(labels, key)
    found = compare(
        config,
        output,
        champion=champion,
        challenger=challenger,
        on=on,
        late=late,
        verify_key=verify_key,
    )
    _print(found.to_json() if as_json else found.text())
    raise typer.Exit(found.exit_code)


@app.command()
def new(
    name: o.Name,
    data: o.Data,
    label: o.Label = None,
    task: o.Task = "auto",
    keep: o.KeepColumns = None,
    weight: o.WeightColumn = None,
    null_value: o.NullValues = None,
) -> None:
    """Create a workload from rows or images: schema, preprocessing, model and test, as code that you own."""
    from slipway.pipeline.commands import warm as warming
    from slipway.pipeline.start.command import new as begin

    leave = warming.leaving()
    begun = begin(
        name,
        data=data,
        label=label,
        task=task,
        keep=keep or [],
        root=PROJECT_ROOT,
        ask=questions.choose,
        null_values=null_value or [],
        weight=weight,
    )
    _print(begun.text())
    leave()


def _chosen(workload: Path, sets: list[str] | None, profile: str | None) -> "WorkloadChoice":
    """Return the workload that a command line names."""
    from slipway.pipeline.config import WorkloadChoice, read_assignments

    return WorkloadChoice(workload, read_assignments(sets or ()), profile)


def _screen_width() -> int | None:
    """Return the terminal's width in columns; None if the output goes to a file or another program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _print(result: object) -> None:
    print(printable(result) if isinstance(result, str) else json_text(result))


if __name__ == "__main__":
    call(app)

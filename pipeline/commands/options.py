"""The options of the local commands, each defined once with its help and shell completion."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from slipway.components.store_address import REMOTE
from slipway.pipeline.commands.completion import (
    complete_node,
    complete_run,
    complete_run_or_setting,
    complete_setting,
    complete_version,
    complete_workload,
)
from slipway.pipeline.errors import UsageError

Run = Annotated[
    str | None,
    typer.Argument(help="A run's id or the start of it; by default the latest.", autocompletion=complete_run),
]
OldRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run's id, the start of it, or `latest`.", autocompletion=complete_run
    ),
]
NewRun = Annotated[
    str, typer.Argument(metavar="RUN", help="The run to compare with it.", autocompletion=complete_run)
]
MoreRuns = Annotated[
    list[str] | None,
    typer.Argument(metavar="RUN", help="More runs: metrics and changed keys.", autocompletion=complete_run),
]
StepRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="The run's id, as `step begin` printed it.", autocompletion=complete_run
    ),
]
StepNode = Annotated[str, typer.Argument(metavar="NODE", help="The node's id.", autocompletion=complete_node)]


_GLOB_OR_ESCAPE = re.compile(r"[*?\[\\]")
# What Python makes of bytes of a path that are not UTF-8.
_NOT_UTF8 = re.compile(r"[\udc80-\udcff]")


def _folder_here(output: Path) -> Path:
    """Refuse an address in an object store, and a path that TFX and Beam would refuse or read otherwise."""
    if str(output).startswith(tuple(each.removesuffix("/") for each in REMOTE)):
        raise UsageError(
            f"--output {output.parts[0]}//{'/'.join(output.parts[1:])}: TFX keeps metadata and artifacts of "
            "local runs in a folder of this machine.",
            hint="only data.source and push.destination may be elsewhere",
        )
    if _GLOB_OR_ESCAPE.search(str(output.absolute())):
        raise UsageError(
            f"--output {output.absolute()}: TFX reads this path for a pattern.",
            hint="choose a folder without '*', '?', '[' or '\\' in its path",
        )
    if _NOT_UTF8.search(str(output.absolute())):
        raise UsageError(
            f"--output {output.absolute()}: TFX takes only paths in UTF-8.",
            hint="choose a folder whose path is UTF-8",
        )
    return output


Output = Annotated[
    Path,
    typer.Option(
        callback=_folder_here,
        help="Folder for all output; a relative path starts in the current folder.",
        show_default="output in the project",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Reason = Annotated[str, typer.Option(help="Why; the reason is recorded.")]

# What to run, and how.
Pipeline = Annotated[
    str | None, typer.Option(help="MODULE:FUNCTION of any TFX pipeline, instead of a workload.")
]
Start = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NODE",
        help="Start at this node: run it and all that follow.",
        autocompletion=complete_node,
    ),
]
End = Annotated[
    str | None,
    typer.Option("--to", metavar="NODE", help="Stop after this node.", autocompletion=complete_node),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Run every node, even if cached.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many nodes run at once, and most processes of one; by default as many as cores and memory "
        "allow.",
    ),
]
Beam = Annotated[list[str] | None, typer.Option(help="Extra option for every Beam component. Repeatable.")]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="After a failure, also end the nodes that are still running.")
]
AcceptData = Annotated[
    str | None,
    typer.Option(
        metavar="REASON", help="Let this run pass the data gate despite its findings; the reason is recorded."
    ),
]
Bless = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Let this run's model pass its gate; the reason is recorded."),
]
Airflow = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="Airflow's command that starts such a run, up to the JSON of --conf; shown in hints.",
    ),
]
ProfileSteps = Annotated[
    str | None, typer.Option(metavar="FIRST:LAST", help="Training steps to profile, counted from 1.")
]

# Runs and their results.
RunsOf = Annotated[
    str | None,
    typer.Argument(
        metavar="WORKLOAD",
        help="Only runs of this workload, side by side with the keys that differ; by default all.",
        autocompletion=complete_workload,
    ),
]
By = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sort by a metric, the best first, or by a key, started_at or wall_s."),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only runs since then: 12h, 7d, 2w ago, or a date, 2026-11-20."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Index = Annotated[bool, typer.Option("--index", help="Write one page of all runs, as a table to sort.")]
PageFile = Annotated[
    Path | None,
    typer.Option("-o", "--to", metavar="FILE", help="File to write; by default in the run's folder."),
]
DifferenceFile = Annotated[
    Path | None,
    typer.Option("-o", "--to", metavar="FILE", help="Write an HTML page to this file and print its path."),
]
BaselineSets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="RUN",
        help="Compare the next model with the model of this run. With KEY=VALUE: override one key of the "
        "workload file. Repeatable.",
        autocompletion=complete_run_or_setting,
    ),
]
Clear = Annotated[bool, typer.Option("--clear", help="Compare the next model with nothing.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")]
Keep = Annotated[int, typer.Option(help="How many runs of each pipeline to keep.")]
Deep = Annotated[bool, typer.Option("--deep", help="Also start the interpreters and contact TPUs.")]

# Sweeps.
Varied = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUES",
        help="What to try: KEY=A,B,C, or a range, KEY=log(A,B), uniform(A,B) or int(A,B). Repeatable.",
        autocompletion=complete_setting,
    ),
]
Trials = Annotated[
    int | None, typer.Option(min=1, help="How many settings to try; by default the whole grid, otherwise 20.")
]
Method = Annotated[
    str | None,
    typer.Option(help="grid, random or bayes; by default grid where all values are listed, else bayes."),
]
Metric = Annotated[
    str | None,
    typer.Option(metavar="METRIC", help="The metric to judge by; by default the workload's first."),
]
SweepSeed = Annotated[int, typer.Option(help="Seed of the search.")]
Seeds = Annotated[
    int,
    typer.Option(min=1, help="At the end, train the best settings with this many seeds, to show the spread."),
]
SweepJobs = Annotated[
    int | None,
    typer.Option(min=1, help="How many trials run at once, and so many nodes; by default one trial."),
]
Prune = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="EPOCHS",
        help="End a training that after so many epochs, or later, is worse than the median of the others.",
    ),
]
SweepResume = Annotated[
    str | None,
    typer.Option(
        "--resume", metavar="SWEEP", help="Continue this sweep: its id, the start of it, or latest."
    ),
]

# TPUs.
Slices = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SLICE",
        help="Slice to compile for, such as v5e-8, or a generation, such as v5e, for all its slices and how "
        "it scales; by default train.tpu. Repeatable.",
    ),
]
EverySlice = Annotated[bool, typer.Option("--all", help="Compile for all single-host slices of Vertex AI.")]
SEARCH_S = 30.0
Search = Annotated[
    float | None,
    typer.Option(
        "--search",
        min=0,
        help=f"Seconds to search for the largest batch; by default {SEARCH_S:g}, or 0 with --all, --fast or "
        "a generation.",
    ),
]
Limit = Annotated[
    float | None,
    typer.Option("--limit", min=1, help="Time limit for one slice in seconds; by default preflight.limit_s."),
]
Fast = Annotated[bool, typer.Option("--fast", help="Compile with the least effort: quicker, less exact.")]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GENERATION=USD", help="Price of a chip-hour; overrides preflight.prices. Repeatable."
    ),
]

# Pushed versions.
BackTo = Annotated[
    int | None,
    typer.Option(
        metavar="VERSION",
        help="The version to go back to; by default the previous one.",
        autocompletion=complete_version,
    ),
]
Place = Annotated[str | None, typer.Argument(help="A workload, a version or a folder of versions.")]
VersionsOf = Annotated[
    Path,
    typer.Option(
        "--workload",
        help="The workload whose versions to use, if no place is given.",
        autocompletion=complete_workload,
    ),
]
Source = Annotated[
    str,
    typer.Option(
        "--input", help="A file, folder, glob, or gs://, s3://, az:// or hf:// address of rows to predict."
    ),
]
NewFolder = Annotated[Path | None, typer.Option(help="A new folder for the predictions.")]
Version = Annotated[
    int | None,
    typer.Option(help="The pushed version to use; by default the newest.", autocompletion=complete_version),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, jsonl, parquet or tfrecord; by default taken from the file names."),
]
IdleMinutes = Annotated[
    float, typer.Option(min=0.1, max=1440, help="End it when no run has used it for this many minutes.")
]
EndWarm = Annotated[bool, typer.Option("--end", help="End all processes that this command has started.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")]
Host = Annotated[str, typer.Option(help="Address to bind; one that other machines can reach needs a token.")]
VerifyKey = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Public key (PEM): only versions signed with its private key count."),
]
MaxRows = Annotated[int | None, typer.Option(min=1, help="Maximum rows per request; by default 100,000.")]

# Watching.
Logged = Annotated[
    Path | None,
    typer.Option(
        "--on",
        metavar="FOLDER",
        help="Folder of logged requests, TF Serving's too; by default request_log.folder.",
    ),
]
Every = Annotated[Literal["hour", "day"], typer.Option("--by", help="Judge the requests by the hour or day.")]
Training = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        metavar="FOLDER",
        help="Folder of statistics to compare with; by default those of the version's training data.",
    ),
]

LateLabels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="Labels that arrived later: CSV, JSON Lines or Parquet."),
]
JoinKey = Annotated[
    str | None,
    typer.Option("--key", metavar="COLUMN", help="The column that joins --labels to the logged requests."),
]

# Two versions on the same logged requests. Without a workload, each takes the place before its own.
Champion = Annotated[
    int | None,
    typer.Argument(metavar="CHAMPION", help="The pushed version to beat.", autocompletion=complete_version),
]
Challenger = Annotated[
    int | None,
    typer.Argument(
        metavar="CHALLENGER",
        help="The pushed version that is held against it.",
        autocompletion=complete_version,
    ),
]

# A new workload.
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the new workload: lower-case letters, digits and _.")
]
Data = Annotated[
    str,
    typer.Option(
        help="Rows: a file, folder, glob, or gs://, s3://, az:// or hf:// address of CSV, JSON Lines or "
        "Parquet. Images: a folder with a folder for each class, or an npz like Keras' MNIST file."
    ),
]
Label = Annotated[
    str | None, typer.Option(help="The column to predict; if omitted, you are asked. Not for images.")
]
Task = Annotated[str, typer.Option(help="Kind of prediction: auto, binary, multiclass or regression.")]
NullValues = Annotated[
    list[str] | None,
    typer.Option(
        "--null-value",
        metavar="TEXT",
        help="Text that means a missing value in a CSV, such as -999. Repeatable.",
    ),
]
KeepColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Keep this column as a feature despite warnings. Repeatable."),
]


WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COLUMN",
        help="The column with each row's weight, a number >= 0. It is not a feature.",
    ),
]


def run_and_settings(sets: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the run and the `KEY=VALUE`s among what `baseline --set` was given.

    Raises:
        UsageError: more than one run is given.
    """
    runs = [each for each in sets if "=" not in each]
    if len(runs) > 1:
        raise UsageError(f"--set {' --set '.join(runs)}: the baseline is the model of one run.")
    return next(iter(runs), None), [each for each in sets if "=" in each]


def overrides(accept_data: str | None, bless: str | None) -> dict[str, str]:
    """Return the given reasons to pass a gate, by key of `record.OVERRIDES`."""
    given = {"accept_data": accept_data, "bless": bless}
    return {name: reason for name, reason in given.items() if reason is not None}

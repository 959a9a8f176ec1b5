"""The options of the local commands: each defined once, with its help and what a shell completes it to."""

from pathlib import Path
from typing import Annotated

import typer

from slipway.pipeline.commands.completion import (
    complete_node,
    complete_run,
    complete_version,
    complete_workload,
)

Run = Annotated[
    str | None,
    typer.Argument(
        help="A run's id or the start of it; the latest if left out.", autocompletion=complete_run
    ),
]
OldRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run's id, the start of it, or latest.", autocompletion=complete_run
    ),
]
NewRun = Annotated[
    str, typer.Argument(metavar="RUN", help="The run to compare with it.", autocompletion=complete_run)
]
StepRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="The run's id, as `step begin` printed it.", autocompletion=complete_run
    ),
]
StepNode = Annotated[str, typer.Argument(metavar="NODE", help="The node's id.", autocompletion=complete_node)]
Output = Annotated[
    Path,
    typer.Option(
        help="Folder for everything that runs write; a relative one lies in the current folder.",
        show_default="output in the project",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Reason = Annotated[str, typer.Option(help="Why; kept on record.")]

# What to run, and how.
Pipeline = Annotated[
    str | None, typer.Option(help="MODULE:FUNCTION of any TFX pipeline, instead of a workload.")
]
Start = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="NODE", help="Run this node and what follows.", autocompletion=complete_node
    ),
]
End = Annotated[
    str | None,
    typer.Option("--to", metavar="NODE", help="Stop after this node.", autocompletion=complete_node),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Run every node, cached or not.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Nodes at once; from cores and memory if left out.")]
Beam = Annotated[list[str] | None, typer.Option(help="An option for every Beam component. Repeatable.")]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="A failure also ends the nodes beside it.")]
AcceptData = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Let this run pass the data gate whatever it finds; kept on record."),
]
Bless = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Let this run's model pass its gate; kept on record."),
]
Airflow = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="Airflow's command that begins such a run, up to the JSON of --conf; for hints.",
    ),
]
ProfileSteps = Annotated[
    str | None, typer.Option(metavar="FIRST:LAST", help="Steps of the training to profile, counted from 1.")
]

# Runs and what they left.
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Index = Annotated[bool, typer.Option("--index", help="All runs on one page, with their trends.")]
PageFile = Annotated[
    Path | None, typer.Option("-o", "--to", metavar="FILE", help="The file; else beside the run.")
]
DifferenceFile = Annotated[
    Path | None, typer.Option("-o", "--to", metavar="FILE", help="As an HTML page; its path is printed.")
]
BaselineRun = Annotated[
    str | None,
    typer.Option(
        "--set", metavar="RUN", help="Compare with the model of that run.", autocompletion=complete_run
    ),
]
Clear = Annotated[bool, typer.Option("--clear", help="Compare the next model with nothing.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")]
Keep = Annotated[int, typer.Option(help="How many runs of each pipeline to keep.")]
Deep = Annotated[bool, typer.Option("--deep", help="Also start the interpreters and contact TPUs.")]

# TPUs.
Slices = Annotated[
    list[str] | None, typer.Option(metavar="SLICE", help="Such as v5e-8; else train.tpu. Repeatable.")
]
EverySlice = Annotated[bool, typer.Option("--all", help="All slices of one host.")]
Search = Annotated[
    float | None,
    typer.Option(
        "--search", min=0, help="Seconds to look for the largest batch; 30, with --all or --fast 0."
    ),
]
Limit = Annotated[
    float | None,
    typer.Option("--limit", min=1, help="Seconds for one slice at most; else preflight.limit_s."),
]
Fast = Annotated[bool, typer.Option("--fast", help="A quick look: the compiler's least effort, less exact.")]
Prices = Annotated[
    list[str] | None,
    typer.Option(metavar="GENERATION=USD", help="Of a chip-hour, before preflight.prices. Repeatable."),
]

# Pushed versions.
BackTo = Annotated[
    int | None,
    typer.Option(
        metavar="VERSION",
        help="The version to go back to; else the one before.",
        autocompletion=complete_version,
    ),
]
Place = Annotated[str | None, typer.Argument(help="A workload, a version or a folder of versions.")]
VersionsOf = Annotated[
    Path,
    typer.Option(
        "--workload", help="Whose versions, where no place is named.", autocompletion=complete_workload
    ),
]
Source = Annotated[
    str, typer.Option("--input", help="A file, folder, glob or gs:// address of rows to predict.")
]
NewFolder = Annotated[Path | None, typer.Option(help="A new folder for the predictions.")]
Version = Annotated[
    int | None,
    typer.Option(help="Which pushed version; else the newest.", autocompletion=complete_version),
]
Format = Annotated[
    str | None, typer.Option("--format", help="csv, jsonl, parquet or tfrecord; else by the files' names.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
Host = Annotated[str, typer.Option(help="The address to bind; beyond this machine a token is needed.")]

# A new workload.
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Of the new workload: lower-case letters, digits and _.")
]
Data = Annotated[
    str,
    typer.Option(
        help="Rows: a file, folder, glob or gs:// address of CSV, JSON Lines or Parquet. Images: a "
        "folder with a folder for each class, or an npz as Keras' MNIST file."
    ),
]
Label = Annotated[
    str | None, typer.Option(help="The column to predict; asked for if left out. Images have none.")
]
Task = Annotated[str, typer.Option(help="auto, binary, multiclass or regression.")]
NullValues = Annotated[
    list[str] | None,
    typer.Option("--null-value", metavar="TEXT", help="Means no value in a CSV, as -999. Repeatable."),
]
KeepColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A feature, whatever speaks against. Repeatable."),
]


def overrides(accept_data: str | None, bless: str | None) -> dict[str, str]:
    """The reasons that were given to pass a gate, by a key of `record.OVERRIDES`."""
    given = {"accept_data": accept_data, "bless": bless}
    return {name: reason for name, reason in given.items() if reason is not None}

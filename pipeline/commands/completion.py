"""Shell completions from the files on this machine. Every command imports this, so it imports nothing slow.

Missing or damaged files give no completions: a shell that waits for an answer cannot show an error.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer import _completion_shared as shells

from slipway.components.project import OWN_FOLDER, PROJECT_ROOT
from slipway.pipeline.terminal.invocation import DEFAULT_OUTPUT, DEFAULT_WORKLOAD

JsonObject = dict[str, Any]

_SCHEMA = OWN_FOLDER / "schemas" / "workload.schema.json"
_ZSH_END = "compdef %(complete_func)s %(prog_name)s"
_ZSH_END_FOUND_OR_SOURCED = f"""\
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
else
  {_ZSH_END}
fi"""


def complete_workload(incomplete: str) -> list[str]:
    """Return the names in workloads/; the shell itself completes file names."""
    files = (PROJECT_ROOT / "workloads").glob("*/workload.yaml")
    return _beginning(incomplete, (file.parent.name for file in files))


def complete_profile(context: typer.Context, incomplete: str) -> list[str]:
    """Return the profiles of the workload on the command line."""
    profiles = _read_workload(context).get("profiles")
    return _beginning(incomplete, profiles if isinstance(profiles, dict) else ())


def complete_setting(incomplete: str) -> list[str]:
    """Return the keys of a workload file, `train.batch_size=` and so on."""
    return _beginning(incomplete, (f"{key}=" for key in _keys(_read_json(_SCHEMA))))


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    """Return the runs in the output folder, newest first."""
    return _beginning(incomplete, (folder.name for folder in _runs(context)), newest_first=True)


def complete_run_or_setting(context: typer.Context, incomplete: str) -> list[str]:
    """Return the runs in the output folder, newest first, and the keys of a workload file."""
    return [*complete_run(context, incomplete), *complete_setting(incomplete)]


def complete_node(context: typer.Context, incomplete: str) -> list[str]:
    """Return the nodes of the workload's latest run."""
    name = _workload(context)
    for folder in _runs(context):
        record = _read_json(folder / "run.json")
        nodes = record.get("nodes")
        if record.get("workload") == name and nodes and isinstance(nodes, list):
            ids = (node.get("id") for node in nodes if isinstance(node, dict))
            return _beginning(incomplete, ids, in_order=True)
    return []


def complete_version(context: typer.Context, incomplete: str) -> list[str]:
    """Return the workload's versions in the output folder, newest first."""
    folder = _output(context) / "serving" / _workload(context)
    found = (each.name for each in folder.glob("*") if each.name.isdigit())
    return _beginning(incomplete, found, newest_first=True)


def _beginning(
    incomplete: str, names: Any, *, newest_first: bool = False, in_order: bool = False
) -> list[str]:
    found = [name for name in names if isinstance(name, str) and name.startswith(incomplete)]
    return found if in_order else sorted(found, reverse=newest_first)


def _output(context: typer.Context) -> Path:
    return Path(context.params.get("output") or DEFAULT_OUTPUT)


def _workload(context: typer.Context) -> str:
    """Return the workload's name, which is still in `context.args` if an option is incomplete."""
    named = str([*context.args, context.params.get("workload") or DEFAULT_WORKLOAD][0])
    return Path(named).parent.name if named.endswith("workload.yaml") else named


def _runs(context: typer.Context) -> list[Path]:
    return sorted((_output(context) / "runs").glob("*-*"), reverse=True)


def _read_workload(context: typer.Context) -> JsonObject:
    import yaml

    file = PROJECT_ROOT / "workloads" / _workload(context) / "workload.yaml"
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_json(file: Path) -> JsonObject:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _keys(schema: JsonObject) -> Iterator[str]:
    """Yield every dotted key of a JSON Schema that is not a section itself; profiles are left out."""
    sections = schema.get("$defs", {})

    def below(section: JsonObject, prefix: str) -> Iterator[str]:
        for name, field in section.get("properties", {}).items():
            inner = _section(field, sections)
            if inner is None:
                yield prefix + name
            elif name != "profiles":
                yield from below(inner, f"{prefix}{name}.")

    return below(schema, "")


def _section(field: JsonObject, sections: JsonObject) -> JsonObject | None:
    for each in (field, *field.get("anyOf", ()), *field.get("allOf", ())):
        name = str(each.get("$ref", "")).rpartition("/")[2]
        if "properties" in sections.get(name, {}):
            return dict(sections[name])
    return None


def mend_completion_scripts() -> None:
    """Make `--install-completion` and `--show-completion` give scripts that work for `./local_runner.py`.

    Typer's scripts call the program by its name; only the one for bash calls what was typed. Fish reads
    `completions/` only for programs on the PATH, and zsh does nothing on the first press of Tab.
    """
    shells._completion_scripts["bash"] = shells.COMPLETION_SCRIPT_BASH.replace(
        "    return 0", "    [[ $COMPREPLY == *= ]] && compopt -o nospace\n    return 0"
    )
    shells._completion_scripts["zsh"] = shells.COMPLETION_SCRIPT_ZSH.replace(
        "complete_zsh %(prog_name)s", "complete_zsh ${~words[1]}"
    ).replace(_ZSH_END, _ZSH_END_FOUND_OR_SOURCED)
    shells._completion_scripts["fish"] = shells.COMPLETION_SCRIPT_FISH.replace(
        "(commandline -cp) %(prog_name)s", "(commandline -cp) (commandline -opc)[1]"
    )
    shells.install_fish = _install_fish


def _install_fish(*, prog_name: str, complete_var: str, shell: str) -> Path:
    file = Path.home() / ".config/fish/conf.d" / f"{prog_name}.fish"
    script = shells.get_completion_script(prog_name=prog_name, complete_var=complete_var, shell=shell)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{script}\n", encoding="utf-8")
    return file

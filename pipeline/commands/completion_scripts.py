"""The shells' completion scripts: Typer's, fixed for a program that is not on the PATH.

Typer's scripts call the program by its name; only the one for bash calls what was typed, `./local_runner.py`.
Fish reads `completions/` only for programs on the PATH, and zsh does nothing on the first press of Tab.
"""

from pathlib import Path

from typer import _completion_shared as shells

_ZSH_END = "compdef %(complete_func)s %(prog_name)s"
_ZSH_END_FOUND_OR_SOURCED = f"""\
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
else
  {_ZSH_END}
fi"""


def mend_completion_scripts() -> None:
    """Make `--install-completion` and `--show-completion` give scripts that work for `./local_runner.py`."""
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

"""Shared parts of both command lines: common options, and the reporting of errors."""

import functools
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from typer.exceptions import TyperException

from slipway.components.errors import SlipwayError
from slipway.components.home_folder import at_home
from slipway.pipeline.commands.completion import (
    complete_profile,
    complete_setting,
    complete_workload,
    mend_completion_scripts,
)
from slipway.pipeline.errors import UsageError, of_the_machine
from slipway.pipeline.exit_codes import FAILED, INTERRUPTED
from slipway.pipeline.terminal.early_interrupt import leave_to_command
from slipway.pipeline.terminal.invocation import CLOUD, LOCAL, command
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.terminal.standard_streams import prepare_streams

Workload = Annotated[
    Path,
    typer.Argument(
        help="The workload file, or its name in workloads/.",
        metavar="WORKLOAD",
        autocompletion=complete_workload,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Override one key of the workload file: KEY=VALUE. Repeatable.",
        autocompletion=complete_setting,
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(help="Profile of the workload to apply over the file.", autocompletion=complete_profile),
]
_SUGGESTION = re.compile(r"Did you mean (.*)\?")
_VERBOSE = inspect.Parameter(
    "verbose",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")],
)
_verbose = False
_Command = TypeVar("_Command", bound=Callable[..., Any])


class CommandLine(typer.Typer):
    """A program or a group of its commands. Each command also has the option --verbose."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(pretty_exceptions_enable=False, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Command], _Command]:
        """As `typer.Typer.command`."""
        register = super().command(name, **settings)

        def add(command: _Command) -> _Command:
            @functools.wraps(command)
            def called(*, verbose: bool, **given: Any) -> Any:
                global _verbose
                _verbose = verbose
                return command(**given)

            own = inspect.signature(command)
            called.__signature__ = own.replace(  # type: ignore[attr-defined]  # which typer reads
                parameters=[*own.parameters.values(), _VERBOSE]
            )
            register(called)
            return command

        return add


def call(app: typer.Typer, *, first: Callable[[], None] | None = None) -> NoReturn:
    """Run a command line; user errors are reported in two lines and an exit code.

    With --verbose an error's traceback stands above the two lines.

    Args:
        first: called before the command; its errors are reported in the same way.

    Raises:
        SystemExit: with the command's exit code.
    """
    global _verbose
    _verbose = False  # until the words say otherwise
    prepare_streams()
    sys.argv[1:] = map(_with_home, sys.argv[1:])
    mend_completion_scripts()
    if "--help" not in sys.argv:
        _import_ahead()
    try:
        leave_to_command()
        _check_current_folder()
        if first is not None:
            first()
        code = app(standalone_mode=False, prog_name=Path(sys.argv[0]).name) or 0
        sys.stdout.flush()  # a failure can still be reported here
        sys.exit(code)
    except SlipwayError as error:
        _tell_origin()
        code = getattr(error, "exit_code", FAILED)
        _end(error.message, error.hint or _other_hint(app, code), code)
    except TyperException as error:  # a malformed command line
        _end_of_words(error)
    except KeyboardInterrupt:  # before Typer answers it, as it does from its first command on
        sys.exit(INTERRUPTED)
    except typer.Abort:
        _end("No answer; nothing was done.", "give the answer as an option", INTERRUPTED)
    except (OSError, MemoryError, RuntimeError) as error:  # an error of the machine, wherever it occurred
        told = of_the_machine(error)
        _tell_origin()
        _end(told.message, told.hint or _other_hint(app, FAILED), FAILED)


def _import_ahead() -> None:
    """Import what is slow to import and what nearly every command needs, while Ctrl-C still ends it at once.

    Left to the commands, Ctrl-C would end them without a word meanwhile.
    """
    import pydantic  # noqa: F401  # by which Typer reads the words

    from slipway.pipeline.commands import run  # noqa: F401


def _check_current_folder() -> None:
    """Reject a current folder that was removed: nothing that a command starts could tell where it is."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise UsageError(
            "The current folder was removed, perhaps by another terminal.", hint="cd to a folder that exists"
        ) from error


def _with_home(word: str) -> str:
    """Expand `~/` in a command-line argument, also in quotes and after `--option=`."""
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{option}{equals}{at_home(value)}"


def _tell_origin() -> None:
    if _verbose:
        say(traceback.format_exc().rstrip())  # an error may hold what a file's name or a cell does


def _end_of_words(error: TyperException) -> NoReturn:
    context = getattr(error, "ctx", None)
    if isinstance(error, typer.BadParameter) and isinstance(error.__cause__, ValueError):
        # Typer shows pydantic's rule without the value that breaks it.
        refused: list[dict[str, object]] = getattr(error.__cause__, "errors", list)()
        error.message = "; ".join([*(str(each["input"]) for each in refused[:1]), error.message])
    message = _SUGGESTION.sub(r"Closest: \1.", error.format_message())
    if context is not None and message.startswith("Usage:"):  # a command group without a command
        print(message, file=sys.stderr)
        sys.exit(error.exit_code)
    words = context.command_path.split()[1:] if context is not None else []
    _end(message, _help(words), error.exit_code)


def _other_hint(app: typer.Typer, code: int) -> str:
    """Return the hint for an error that brings no hint."""
    if code != 2:
        return "add --verbose to see where it comes from"
    known = typer.main.get_command(app)
    named = [word for word in sys.argv[1:2] if word in getattr(known, "commands", {})]
    return _help(named)


def _help(words: Sequence[str]) -> str:
    """Return the command that shows the help of the running program."""
    called = Path(sys.argv[0]).name
    return command(*words, "--help", program=called if called == CLOUD else LOCAL)


def _end(message: str, hint: str, code: int) -> NoReturn:
    say(f"error: {message}", f"hint: {hint}")
    sys.exit(code)

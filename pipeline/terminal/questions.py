"""Questions on a terminal; without a terminal, an error that names the option with the answer."""

import sys
from collections.abc import Sequence

import typer

from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.printable import printable


def choose(question: str, answers: Sequence[str], *, option: str) -> str:
    """Asks until the user gives one of the answers.

    Args:
        question: ends with a question mark.
        option: the one that answers it on a command line.

    Raises:
        UsageError: there is no terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            f"{question} This needs an answer, but there is no terminal.",
            hint=f"add {option} with one of {', '.join(answers)}",
        )
    while (answer := str(typer.prompt(printable(f"{question}\n{', '.join(answers)}")))) not in answers:
        print(printable(f"{answer!r} is not one of these."))
    return answer


def agrees(question: str, *, yes: bool) -> bool:
    """Whether the user agrees.

    Args:
        question: ends with a question mark.

    Raises:
        UsageError: there is no terminal.
    """
    if not yes and not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask at; nothing is written.", hint="add --yes")
    return yes or bool(typer.confirm(question))

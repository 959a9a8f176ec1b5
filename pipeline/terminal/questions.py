"""Asks the user on a terminal; without a terminal, raises an error that names the option to use."""

import sys
from collections.abc import Sequence

import typer

from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.printable import printable


def choose(question: str, answers: Sequence[str], *, option: str) -> str:
    """Ask until the user gives one of the answers.

    Args:
        question: the question, with a question mark.
        option: the command-line option that answers the question.

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
    """Return True if the user agrees.

    Args:
        question: the question, with a question mark.

    Raises:
        UsageError: there is no terminal.
    """
    if not yes and not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask at; nothing is written.", hint="add --yes")
    return yes or bool(typer.confirm(question))

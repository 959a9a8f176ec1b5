"""Finds the reason in an error's message, around which TensorFlow and Keras put words of their own. Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_MOST_CHARACTERS = 300
# Of a message; some hold all of a tensor or a table. The log has the whole.
_MOST_SHOWN = 1_000
_OF_A_CALL = re.compile(r"Exception encountered when calling \S+\s+\x1b\[1m(?P<words>.+?)\x1b\[0m", re.DOTALL)
_OF_A_SHAPE = re.compile(r"Could not automatically infer the output shape.+?Error encountered:\s+", re.DOTALL)
_OF_A_GRAPH = "Graph execution error:"
_ABOUT_THE_GRAPH = (_OF_A_GRAPH, "Detected at node", "<stack traces", "[[{{node", 'File "')
# Also of a graph on several devices, such as a CPU and a GPU, which numbers the errors. A message may quote
# all of a request: `[^{}]` ends at the next name, or the time would grow with the square of the size.
_AROUND = re.compile(r"^\d+ root error\(s\) found\.$|^\(\d+\) [A-Z_]+: +|\{\{function_node [^{}]*\}\} ?")
_NODE = re.compile(r"\[\[\{\{node (?P<name>[^{}]+)\}\}\]\]")
# TensorFlow reports an error in code rewritten by AutoGraph, or of an operation of a graph, as text: lines of
# the code, and the error below.
_REWRITTEN = "in user code:"
_FRAME = re.compile(r'^  (  )?File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)
_ERROR = re.compile(r'^    (?! |File ")(.+)', re.MULTILINE)


class Rewritten(NamedTuple):
    """An error in code that AutoGraph has rewritten, as its message tells it.

    Attributes:
        kind: the name of its class.
        words: its own message.
        frames: file and line of the user's code, the innermost last.
    """

    kind: str
    words: str
    frames: list[tuple[str, int]]


def words(error: BaseException) -> str:
    """Return an exception's message, or that it has none that can be shown.

    For a KeyError this is its key as Python writes it, or the text that Keras has put around the key.
    """
    match error:
        case KeyError(args=(str(text),)) if "\n" in text:
            return text
    try:
        return str(error)
    except Exception as broken:  # its class is the user's
        return f"its message cannot be shown: __str__ raised {type(broken).__name__}"


def frames_in(message: str) -> list[tuple[str, int]]:
    """Return the lines of code that a message names: file and line of each, the innermost last."""
    return [(frame["file"], int(frame["line"])) for frame in _FRAME.finditer(message)]


def rewritten(message: str) -> Rewritten | None:
    """Return what the message of an error in code rewritten by AutoGraph tells; None if it is no such one."""
    if not message.startswith(_REWRITTEN) or not (told := _ERROR.search(message)):
        return None
    kind, _, said = message[told.start(1) :].partition(": ")
    return Rewritten(kind.strip(), said, frames_in(message))


def shortened(message: str) -> str:
    """Return a message as it is shown, without what would fill the screen."""
    if len(message) <= _MOST_SHOWN:
        return message
    return f"{message[:_MOST_SHOWN]}... (the log has the rest)"


def reason(message: str) -> list[str]:
    """Return the lines that say what went wrong, without blank ones; [] if the message has none.

    For an error in a layer these are the lines that Keras puts below the layer's class. For an error in a
    graph, they follow the graph's stack, with the operation, whose name contains the layer's.
    """
    if found := _OF_A_CALL.match(message):
        message = found["words"]
    if found := _OF_A_SHAPE.match(message):
        message = message[found.end() :]
    if not message.startswith(_OF_A_GRAPH):
        return [line for line in _lines(message) if line]
    first = sentence(message)
    if not first:
        return [_OF_A_GRAPH.rstrip(":")]
    node = _NODE.search(message)
    return [first + (f" (in {node['name']})" if node else "")]


def sentence(message: str) -> str:
    """Return the first line of TensorFlow's message that is not about the graph, cut; "" if there is none."""
    useful = (line for line in _lines(message) if line and not line.startswith(_ABOUT_THE_GRAPH))
    return next(useful, "")[:_MOST_CHARACTERS]


def _lines(message: str) -> Iterator[str]:
    return (_AROUND.sub("", line.strip()) for line in message.splitlines())

"""Finds the reason in an error's message, around which TensorFlow and Keras put words of their own. Pure."""

import re

MOST_CHARACTERS = 300
# Of a message; some hold all of a tensor or a table. The log has the whole.
_MOST_SHOWN = 1_000
_OF_A_CALL = re.compile(r"Exception encountered when calling \S+\s+\x1b\[1m(?P<words>.+?)\x1b\[0m", re.DOTALL)
_OF_A_SHAPE = re.compile(r"Could not automatically infer the output shape.+?Error encountered:\s+", re.DOTALL)
_OF_A_GRAPH = "Graph execution error:"
_ABOUT_THE_GRAPH = (_OF_A_GRAPH, "Detected at node", "<stack traces", "[[{{node", 'File "')
_FUNCTION_NODE = re.compile(r"\{\{function_node [^}]*\}\} ?")
_NODE = re.compile(r"\[\[\{\{node (?P<name>[^}]+)\}\}\]\]")


def words(error: BaseException) -> str:
    """Return an exception's message, or that it has none that can be shown."""
    try:
        return str(error)
    except Exception as broken:  # its class is the user's
        return f"its message cannot be shown: __str__ raised {type(broken).__name__}"


def shortened(message: str) -> str:
    """Return a message as it is shown, without what would fill the screen."""
    if len(message) <= _MOST_SHOWN:
        return message
    return f"{message[:_MOST_SHOWN]}... (the log has the rest)"


def reason(message: str) -> list[str]:
    """Return the lines that say what went wrong, without blank ones; [] if the message has none.

    Of an error of a layer they are what Keras has put below the layer's class; of an error of a graph, what
    comes after the graph's stack, with the operation, whose name contains the layer's.
    """
    if found := _OF_A_CALL.match(message):
        message = found["words"]
    if found := _OF_A_SHAPE.match(message):
        message = message[found.end() :]
    lines = [_FUNCTION_NODE.sub("", line.strip()) for line in message.splitlines()]
    if not message.startswith(_OF_A_GRAPH):
        return [line for line in lines if line]
    first = next((line for line in lines if line and not line.startswith(_ABOUT_THE_GRAPH)), "")
    if not first:
        return [_OF_A_GRAPH.rstrip(":")]
    node = _NODE.search(message)
    return [first[:MOST_CHARACTERS] + (f" (in {node['name']})" if node else "")]

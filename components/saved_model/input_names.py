"""Gives a signature's inputs the names of columns, whatever characters they contain.

TensorFlow traces a function under names that are valid in Python and in a graph. In `saved_model.pb`, which
servers read, an input's name is only data, so it can be that of the column.
"""

import keyword
import re
from collections.abc import Collection, Mapping

_PLAIN = re.compile("[A-Za-z][A-Za-z0-9_]*")


def traced_names(columns: Collection[str]) -> dict[str, str]:
    """Return the name under which each column is traced, in the order of the columns.

    The name becomes a Python parameter and a name in a graph, where A and a are equal. So Python's keywords,
    spaces, non-ASCII letters and leading digits are not allowed. If all names are valid, they stay as they
    are.
    """
    plain = all(_PLAIN.fullmatch(c) and not keyword.iskeyword(c) and c != "self" for c in columns)
    if plain and len({column.lower() for column in columns}) == len(columns):
        return {column: column for column in columns}
    return {column: f"column_{index:06d}" for index, column in enumerate(columns)}


def traced_name(tensor: str, signature: str) -> str:
    """Return the name under which an input was traced, from its tensor: `fare` for `serve_raw_fare:0`."""
    return tensor.partition(":")[0].removeprefix(f"{signature}_")


def rename_inputs(folder: str, signature: str, names: Mapping[str, str]) -> None:
    """Change the names of a signature's inputs that servers see.

    Args:
        folder: of a SavedModel; may be gs://...
        names: from each input to its new name; a missing input keeps its name.
    """
    if not names:
        return
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    path = f"{folder}/saved_model.pb"
    with tf.io.gfile.GFile(path, "rb") as file:
        saved = saved_model_pb2.SavedModel.FromString(file.read())
    for graph in saved.meta_graphs:
        inputs = graph.signature_def[signature].inputs
        tensors = {names.get(name, name): each.SerializeToString() for name, each in inputs.items()}
        inputs.clear()
        for name, tensor in tensors.items():
            inputs[name].MergeFromString(tensor)
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(saved.SerializeToString(deterministic=True))

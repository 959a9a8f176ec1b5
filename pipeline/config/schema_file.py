"""Checks that the file that `schema` names exists and can be read as a schema."""

from pathlib import Path

from slipway.components.home_folder import at_home


def find_schema_problem(value: str, *, root: Path) -> str:
    """Return the error in a schema file, with the remedy; empty if there is none.

    Only the syntax is checked; the data gate later applies the schema to the data. Importing protobuf's
    parser takes about 0.03 s.

    Args:
        value: the path of the file, relative to `root`.
    """
    path = root / at_home(value)
    try:
        if not path.is_file():
            return "does not exist; null infers it from the data"
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return "is not text, but a schema is a text file (.pbtxt); null infers it from the data"
    return _parse_problem(text)


def _parse_problem(text: str) -> str:
    # Imported here so that a workload without a schema file does not pay for the import.
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    try:
        text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as error:
        # str(error) begins with line and column, as "3:1 : ".
        what = str(error).partition(" : ")[2].rstrip(".")
        return (
            f"is not a schema: line {error.GetLine()}, column {error.GetColumn()}: {what}; "
            "correct that line, or null infers the schema from the data"
        )
    return ""

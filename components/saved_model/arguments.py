"""The names of raw columns as arguments of the signature `serve_raw`. Pure."""

import re
from collections.abc import Iterable

from components.errors import ComponentError


def argument_names(columns: Iterable[str]) -> dict[str, str]:
    """From each raw column to its argument in `serve_raw`: `mean radius` becomes `mean_radius`.

    A signature takes names of letters, digits and underscores only.

    Raises:
        ComponentError: two columns would get the same name.
    """
    names: dict[str, str] = {}
    for column in columns:
        argument = re.sub(r"\W|^(?=\d)", "_", column, flags=re.ASCII)
        if argument in names.values():
            other = next(known for known, name in names.items() if name == argument)
            raise ComponentError(
                f"the columns {other!r} and {column!r} are both {argument!r} as arguments of a signature",
                hint="rename one of them in the data",
            )
        names[column] = argument
    return names

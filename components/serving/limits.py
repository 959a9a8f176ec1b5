"""All limits of the server `serve`: of a request, of its content and of the connections.

`docs/limits.md` lists them for users. Only `MAX_ROWS` has an option, `--max-rows`. `server` enforces them.
"""

import os

MAX_BODY_BYTES = 8 * 2**20
"""The largest request that is read."""

PATIENCE_S = 10.0
"""How long a client may take to send a whole request, and how long to receive the answer."""

AT_ONCE = 64
"""Connections at once; a new one takes the place of one that keeps the server waiting."""

CALLS_AT_ONCE = max(2, os.cpu_count() or 1)
"""Requests that the model answers at once. More would not answer faster, and each may need memory many times
its request's size."""

MAX_ROWS = 100_000
"""The default limit of rows per request; `--max-rows` sets another."""

ROWS_AT_ONCE = 256
"""Rows that the model answers in one call: it may need megabytes for each."""

ANSWER_S = 60.0
"""How long the model may compute a request's answer, looked at between two calls: the other requests wait."""

MAX_LIST_CELLS = 4_000_000
"""Of all lists of a request, once those of a column are as long as the longest of them."""

MAX_PIXELS = 50_000_000
"""Of all images in a request, once they are decoded: 150 MB of colours as bytes, 600 MB as fractions."""

MAX_IMAGES = 64
"""Images in one cell, as in a tf.Example."""

MAX_PARTS = 1_000_000
"""Parts of all images in a request that are skipped to find their sizes; a photograph has some ten."""

MAX_DIMENSIONS = 16
"""Lists within lists of an input."""

MAX_QUOTED = 100
"""Characters of a request's own text that an error repeats."""

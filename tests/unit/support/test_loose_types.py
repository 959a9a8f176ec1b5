"""How many mappings of the product may hold anything: those at the borders of JSON and of TFX."""

import re

from touched import own_modules

MOST = 95
_LOOSE = re.compile(r"(dict|Mapping)\[str, Any\]")


def test_mappings_to_anything_do_not_become_more(project):
    files = [file for file in own_modules(project) if file.parts[0] != "workloads"]
    counts = {file: len(_LOOSE.findall((project / file).read_text(encoding="utf-8"))) for file in files}
    total = sum(counts.values())
    assert total <= MOST, (
        f"{total} times `dict[str, Any]` or `Mapping[str, Any]`: give the newest values a type, which is a "
        "dataclass or TypedDict (components/typed_json.py reads both from JSON), a narrower type, or "
        "object for what is only handed on or looked at first"
    )

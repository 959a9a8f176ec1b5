"""Explains the difference between two fingerprints in words."""

import json
from collections.abc import Iterator, Mapping

from slipway.components.counted_words import counted, first_of
from slipway.components.escaped_text import escaped
from slipway.components.ingest.spans import at_span

_SHOWN_LENGTH = 40  # characters of a value: two values and a name fit on one terminal line
# Earlier versions gave nodes of equal settings the same key.
_ANOTHER_VERSION = "its earlier result was kept by an older version, which did not distinguish equal nodes"
_WITHOUT_INPUTS = "its earlier result was kept by an older version, which did not note which outputs it read"
_RANGE = tuple(f"param:range_config.static_range.{end}_span_number" for end in ("start", "end"))
_SHOWN_PARAMS = 8  # for more, `diff` is the better tool


class _Difference:
    """The parts of one kind, now and before, and the names that differ, each list sorted."""

    def __init__(self, now: Mapping[str, str], before: Mapping[str, str]) -> None:
        self.now, self.before = now, before
        self.changed = sorted(name for name in now.keys() & before.keys() if now[name] != before[name])
        self.added = sorted(now.keys() - before.keys())
        self.removed = sorted(before.keys() - now.keys())


def reasons(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Return one line for each reason, most important first; [] if the parts are equal.

    Args:
        new: parts by name, with the kind before the first colon, as a `Fingerprint` holds them.
        old: the parts of the run to compare with.
    """
    if _of_kind("node", new) != _of_kind("node", old):
        return [_ANOTHER_VERSION]  # it is unknown which node a result under such a key belongs to
    new, old = with_span(new), with_span(old)
    lines: list[str] = []
    for kind, tell in _TELLERS.items():
        found = _Difference(_of_kind(kind, new), _of_kind(kind, old))
        if kind == "input" and found.now and not found.before and _of_kind("upstream", old):
            lines.append(_WITHOUT_INPUTS)
        else:
            lines += tell(found)
    return [escaped(line) for line in lines]


def with_span(parts: Mapping[str, str]) -> Mapping[str, str]:
    """Return parts with a range of one span told as that span; of a source by days, as its day."""
    start, end = (parts.get(name) for name in _RANGE)
    if start is None or start != end or not start.isdecimal():
        return parts
    is_day = "{YYYY}" in parts.get("param:input_config.splits", "")
    span = json.dumps(at_span("{YYYY}-{MM}-{DD}", int(start))) if is_day else start
    return {"param:span": span, **{name: value for name, value in parts.items() if name not in _RANGE}}


def _of_kind(kind: str, parts: Mapping[str, str]) -> dict[str, str]:
    start = f"{kind}:"
    return {name.removeprefix(start): value for name, value in parts.items() if name.startswith(start)}


def _tell_code(found: _Difference) -> Iterator[str]:
    if len(found.changed) == 1:
        yield f"{found.changed[0]} changed"
    elif found.changed:
        yield f"code changed: {len(found.changed)} of {len(found.now)} files ({first_of(found.changed, 1)})"
    if found.added:
        yield f"{_told(found.added, 'newly')} ({first_of(found.added, 1)})"
    if found.removed:
        yield f"{_told(found.removed, 'no longer')} ({first_of(found.removed, 1)})"


def _told(names: list[str], how: str) -> str:
    """Describe changed files: modules are imported; other files that a node names, such as data, are read."""
    if all(name.endswith(".py") for name in names):
        return f"code: {counted(len(names), 'file')} {how} imported"
    return f"{counted(len(names), 'file')} {how} read"


def _tell_data(found: _Difference) -> Iterator[str]:
    if found.changed:
        of_all = f"{len(found.changed)} of {counted(len(found.now), 'file')}"
        yield f"data changed: {of_all} ({first_of(found.changed, 1)})"
    if found.added and found.removed:
        yield f"data: {counted(len(found.added), 'file')} added, {len(found.removed)} removed"
    elif found.added:
        yield f"data: {counted(len(found.added), 'file')} added ({first_of(found.added, 1)})"
    elif found.removed:
        yield f"data: {counted(len(found.removed), 'file')} removed ({first_of(found.removed, 1)})"


def _tell_params(found: _Difference) -> Iterator[str]:
    names = [*found.changed, *found.added, *found.removed]
    for name in names[:_SHOWN_PARAMS]:
        if name not in found.before:
            yield f"{name} set to {_shorten(_readable(found.now[name]))}"
        elif name not in found.now:
            yield f"{name} no longer set (was {_shorten(_readable(found.before[name]))})"
        else:
            was, is_ = _shorten_pair(_readable(found.before[name]), _readable(found.now[name]))
            yield f"{name} {was} -> {is_}"
    hidden = len(names) - _SHOWN_PARAMS
    if hidden > 0:
        yield f"{counted(hidden, 'more parameter')} changed"


def _tell_external(found: _Difference) -> Iterator[str]:
    for names, verb in ((found.changed, "changed"), (found.added, "is new"), (found.removed, "is gone")):
        for name in names:
            yield f"the {name.replace('_', ' ')} {verb}"


def _tell_stack(found: _Difference) -> Iterator[str]:
    for name in found.changed:
        was, is_ = _shorten_pair(found.before[name], found.now[name])
        yield f"{name} {was} -> {is_}"
    for name in found.added:
        yield f"{name} {_shorten(found.now[name])} added"
    for name in found.removed:
        yield f"{name} {_shorten(found.before[name])} removed"


def _tell_upstream(found: _Difference) -> Iterator[str]:
    for name in found.changed:
        yield f"{name}'s result changed"
    for name in found.added:
        yield f"now reads from {name}"
    for name in found.removed:
        yield f"no longer reads from {name}"


def _tell_input(found: _Difference) -> Iterator[str]:
    for name in found.changed:
        was, is_ = _shorten_pair(found.before[name], found.now[name])
        yield f"input {name} {was} -> {is_}"
    for name in found.added:
        yield f"input {name} set to {_shorten(found.now[name])}"
    for name in found.removed:
        yield f"input {name} no longer set (was {_shorten(found.before[name])})"


# In order of importance: what a user changed, what lies outside, and what only passes a cause on.
_TELLERS = {
    "code": _tell_code,
    "param": _tell_params,
    "input": _tell_input,
    "data": _tell_data,
    "external": _tell_external,
    "stack": _tell_stack,
    "upstream": _tell_upstream,
}


def _readable(canonical: str) -> str:
    """Return canonical JSON with characters instead of \\u escapes; other text unchanged."""
    try:
        return json.dumps(json.loads(canonical), ensure_ascii=False)
    except (ValueError, RecursionError):  # not JSON, such as a mapping with bare keys
        return canonical


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…"


def _shorten_pair(was: str, is_: str) -> tuple[str, str]:
    """Shorten two different values so that the difference stays visible."""
    if _shorten(was) != _shorten(is_):
        return _shorten(was), _shorten(is_)
    same = next(
        (i for i, (a, b) in enumerate(zip(was, is_, strict=False)) if a != b), min(len(was), len(is_))
    )
    start = same - _SHOWN_LENGTH // 4
    return _shorten(f"…{was[start:]}"), _shorten(f"…{is_[start:]}")

"""Recognises secrets among the values of settings, which are written into records, reports and trackers."""

import re
from collections.abc import Iterator

from slipway.pipeline.config.safe_yaml import KeyPath, Value

_WORDS = r"(?:api-?key|access-?key|access-?token|auth-?token|passwd|password|secret|secret-?key|token)"
# A name of a variable, a file or another place is no secret: only what is none of these is taken for one.
_VALUE = r"(?![-$/@{<.])[^\s&]{6,}"
_SIGNS = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    ("an address with a password", re.compile(r"\w://[^/\s:@]*:[^/\s@${<][^/\s@]*@")),
    ("a signed address", re.compile(r"[?&](?:sig|x-amz-signature|x-goog-signature)=\w", re.IGNORECASE)),
    (
        "an address with a token",
        re.compile(rf"[?&](?:key|{_WORDS})={_VALUE}".replace("-?", "[-_]?"), re.IGNORECASE),
    ),
    (
        "the address of a webhook",
        re.compile(
            r"//(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks|[\w.-]+\.webhook\.office\.com)/"
        ),
    ),
    ("a header with a token", re.compile(rf"authorization:\s*(?:basic|bearer)\s+{_VALUE}", re.IGNORECASE)),
    ("an option with a secret", re.compile(rf"^--?{_WORDS}={_VALUE}", re.IGNORECASE)),
    # As GitHub, GitLab, Hugging Face, Slack, AWS and Google make them.
    (
        "a token",
        re.compile(
            r"\b(?:gh[oprsu]_\w{30}|github_pat_\w{30}|glpat-[\w-]{20}|hf_[A-Za-z]{30}|xox[abprs]-[\w-]{10}|"
            r"(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[\w-]{35}|ya29\.[\w-]{20})"
        ),
    ),
)


def written_secrets(value: Value, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each text that has the form of a secret, and what it looks like, such as "a token".

    What has no form of its own, such as a password that stands alone, is not recognised.

    Args:
        value: settings, or a part of them.
        path: where they stand.
    """
    if isinstance(value, dict):
        for key, each in value.items():
            yield from written_secrets(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            before = value[index - 1] if index else None
            is_pair = isinstance(each, str) and isinstance(before, str) and before.startswith("-")
            yield from written_secrets(f"{before}={each}" if is_pair else each, (*path, index))
    elif isinstance(value, str):
        found = next((what for what, sign in _SIGNS if sign.search(value)), None)
        if found:
            yield path, found

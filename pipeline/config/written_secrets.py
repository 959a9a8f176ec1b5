"""Recognises secrets among the values of settings, which are written into records, reports and trackers."""

import re
from collections.abc import Iterator, Mapping, Set

from slipway.pipeline.config.safe_yaml import KeyPath

_WORDS = (
    r"(?:(?:aws|client|github|gitlab|hf|private|refresh|session)[-_])*"
    r"(?:api[-_]?(?:key|token)|access[-_]?(?:key|token)|auth[-_]?token|passphrase|passwd|password|"
    r"secret(?:[-_]?(?:access[-_]?)?key)?|token)"
)
# A name of a variable, a file or another place is no secret: only what is none of these is taken for one.
_VALUE = r"(?![-$/@{<.*]|%\w+%)[^\s&'\"]{6,}"
_PLACE = r"(?:host|hostaddr|server|data source|database|dbname|user|user id|uid|username|driver)"
# Possessive, so that the search does not try each part of a long value.
_HIDDEN = r"(?:password|passwd|pwd)=['\"]?(?![-$/@{<.*]|%\w+%)[^\s;&'\"]{6,}+"
_SIGNS = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    ("an address with a password", re.compile(r"\w://[^/\s:@]*:[^/\s@${<*][^/\s@]*@")),
    (
        "a signed address",
        re.compile(r"[?&](?:sig|(?:x-(?:amz|goog|oss)-)?signature)=\w|AccountKey=[\w+/]{20}", re.IGNORECASE),
    ),
    ("an address with a token", re.compile(rf"[?&](?:key|{_WORDS})={_VALUE}", re.IGNORECASE)),
    (
        "the address of a webhook",
        re.compile(
            r"//(?:hooks\.slack\.com/(?:services|triggers|workflows)|"
            r"(?:[\w-]+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks|[\w.-]+\.webhook\.office\.com|api\.telegram\.org)/"
        ),
    ),
    (
        "a header with a token",
        re.compile(
            rf"authorization:\s*(?:basic|bearer|token)\s+{_VALUE}|"
            # As a value of its own: the header's name may stand elsewhere.
            rf"(?:^|:\s)bearer\s+(?=\S{{0,999}}\d){_VALUE}$|"
            # Texts about a header hold no digits behind its name.
            rf"\b(?:x-[\w-]{{0,30}}(?:key|token)|(?:private|job|deploy)-token|api-?key):\s*"
            rf"(?=\S{{0,99}}\d){_VALUE}",
            re.IGNORECASE,
        ),
    ),
    (
        # As libpq and ODBC take them: host=db user=anna password=...; Server=db;Uid=anna;Pwd=...; not as a
        # query compares columns.
        "a connection string with a password",
        re.compile(
            rf"\b{_PLACE}=[^\r\n]{{0,120}}?[\s;]{_HIDDEN}|"
            rf"(?:^|[\s;]){_HIDDEN}[^\r\n]{{0,120}}?[\s;]{_PLACE}=",
            re.IGNORECASE,
        ),
    ),
    ("an option with a secret", re.compile(rf"(?:^|\s)--?{_WORDS}=['\"]?{_VALUE}", re.IGNORECASE)),
    # As GitHub, GitLab, Hugging Face, Slack, AWS, Google, OpenAI, Anthropic, Stripe, npm, PyPI, Docker,
    # SendGrid, Databricks, Vault and Grafana make them; and signed ones of any service (JWT).
    (
        "a token",
        re.compile(
            r"\b(?:gh[oprsu]_\w{30}|github_pat_\w{30}|glpat-[\w-]{20}|hf_[A-Za-z0-9]{30}|"
            r"xox[abeprs]-[\w-]{10}|xapp-\d-[\w-]{10}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[\w-]{35}|ya29\.[\w-]{20}|"
            r"sk-(?:ant|or|proj|svcacct)-[\w-]{20}|sk-[A-Za-z0-9]{40}|[rs]k_live_\w{16}|npm_\w{36}|pypi-AgE[\w-]{20}|"
            r"dapi[0-9a-f]{32}|hv[sb]\.[\w-]{20}|glsa_[A-Za-z0-9]{32}|glc_eyJ[\w-]{17}|dckr_pat_[\w-]{20}|"
            r"SG\.[\w-]{20,80}\.[\w-]{20}|eyJ[\w-]{10,500}\.eyJ[\w-]{10})"
        ),
    ),
)


def written_secrets(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each text that has the form of a secret, and what it looks like, such as "a token".

    What has no form of its own, such as a password that stands alone, is not recognised.

    Args:
        value: settings, or a part of them; an object of another kind counts as its text, which is written.
        path: where they stand.
    """
    if isinstance(value, Mapping):
        for key, each in value.items():
            # Together with its key, as a header has it.
            header = f"{key}: {each}" if isinstance(each, str) else each
            yield from written_secrets(header, (*path, key))
    elif isinstance(value, (list, tuple, Set)):
        before: object = None
        for index, each in enumerate(value):
            is_pair = isinstance(each, str) and isinstance(before, str) and before.startswith("-")
            yield from written_secrets(f"{before}={each}" if is_pair else each, (*path, index))
            before = each
    elif value is not None and not isinstance(value, (bool, int, float)):
        text = str(value)
        found = next((what for what, sign in _SIGNS if sign.search(text)), None)
        if found:
            yield path, found

"""Tells by its name whether a setting, an option or an environment variable holds a secret."""

import re
from collections.abc import Iterator, Mapping, Set

_HOLDS_A_SECRET = re.compile(
    r"secret|pass_?w(?:or)?d|pass_?phrase|connection_?string|conn_str|webhook"
    # Not pass_through, or pass_rate.
    r"|(?:^|_)pass(?:_?\d+|_(?:prod|production|stage|staging|test|dev|local|old|new|value|text|base64|b64))?$"
    r"|(?:^|_)(?:pwd|pat|jwt|sas)(?:$|_)"
    r"|tokens?(?:_?\d+)?$"
    r"|(?<!application_)credentials?(?:_json)?$"  # GOOGLE_APPLICATION_CREDENTIALS is a file
    r"|_keys?(?:_?\d+)?$|apikey"
    r"|account\.key(?:\.|$)",  # fs.azure.account.key.BOX.dfs.core.windows.net
    re.IGNORECASE,
)
# A place or a name, as of a secret in a manager, or a key that is no secret.
_IS_NONE = re.compile(
    r"(?:_file|_path|_dir|_env|_names?|_arn|_version|_expiry|_ttl)$"
    r"|^(?:pwd|oldpwd)$"
    r"|(?:^|_)(?:max|min|num|new|total|input|output|stop|pad|special)_tokens?$"
    # Filters of sounds, and ways through a model.
    r"|(?:^|_)(?:low|high|band|all|forward|backward|first|second)_?pass$"
    # The words of a vocabulary that stand for something else, such as [MASK].
    r"|(?:^|_)(?:bos|eos|start|end|begin|sep|cls|mask|masked|unk|unknown|oov|blank|reserved|padding)_tokens?$"
    r"|(?:^|_)(?:image|audio|video|patch|class|separator|sentinel)_tokens?$"
    r"|(?:^|_)(?:public|verify|kms|cmk|partition|sort|primary|foreign|cache|join)_keys?$"
    # The names of columns, of TFX's examples too, and what random numbers begin with in JAX.
    r"|(?:^|_)(?:label|feature|features|example|weight|weights|slice|group|id|time|date|output|input)_keys?$"
    # The query key of Azure's search is a secret.
    r"|(?:^|(?<!search)_)query_keys?$"
    r"|(?:^|_)(?:text|image|row|index|num|target|document|column|prng|rng|random|sampling)_keys?$"
    r"|(?:^|_)(?:class|item|entity|value|split|numeric|numerical|categorical|dense|sparse)_keys?$"
    r"|(?:^|_)(?:surrogate|natural|business|unique|lookup|context|candidate|embedding|loss|metric)_keys?$",
    re.IGNORECASE,
)

_ENDS_OF_WORDS = re.compile(r"-|(?<=[a-z0-9])(?=[A-Z])")

# A parameter may have the name of a secret and count something, or be switched off: tokens=100, token=none.
# In a mapping it may be a column, with its type: customer_key=int64.
_NO_SECRET = re.compile(
    r"|[-+]?\d{1,5}(?:\.\d{1,5})?|true|false|none|null"
    r"|(?:u?int|float)\d*|str|string|text|bytes|bool|boolean|double|category|categorical|numeric|numerical"
    r"|date|datetime|time|timestamp",
    re.IGNORECASE,
)
# Tokens of texts are counted in millions; nobody has several secret ones that are one number.
_TOKENS = re.compile(r"tokens$", re.IGNORECASE)
_COUNT = re.compile(r"\d[\d_]*(\.\d+)?(e\+?\d+)?", re.IGNORECASE)
# A number of four digits and more is no count, and no switch, of these.
_PASSWORD = re.compile(r"(?:pass_?w(?:or)?d|pass_?phrase|secret|(?:^|_)pwd)s?$", re.IGNORECASE)
_PIN = re.compile(r"\d{4,}")
# Of several, they are words of a vocabulary, or columns; but not api_keys, or access_tokens.
_PLURALS = re.compile(
    r"(?<!api)(?<!api_)(?<!access_)(?<!auth_)(?<!secret_)(?<!private_)(?<!refresh_)(?<!bearer_)(?:tokens|keys)$",
    re.IGNORECASE,
)


# A hyperparameter may be called pooling_token or metric_key: its text is a secret if it has a dozen
# letters and digits; with one of these words in the name, any text is.
_SURE = re.compile(
    r"secret|pass|pwd|(?:^|_)(?:pat|jwt|sas|api|access|auth|private|refresh|bearer|account|session)(?:$|_)"
    r"|credential|conn|webhook|apikey",
    re.IGNORECASE,
)
_LEAST_LENGTH = 12


def names_secret(name: str) -> bool:
    """Return True if what is called so is a secret, and must not be shown or kept.

    Args:
        name: of a key, an option or an environment variable: `api_key`, `api-key` or `apiKey`.
    """
    words = _words(name)
    return bool(_HOLDS_A_SECRET.search(words)) and not _IS_NONE.search(words)


def hides_value(key: str) -> bool:
    """Return True if the value of a setting must not be shown, by its key.

    Keys that end with `_env` name environment variables, and a secret may be pasted there by mistake.
    """
    return key.endswith("_env") or names_secret(key)


def is_secret(name: str, value: object) -> bool:
    """Return True if a parameter is a secret by its name, and its value no count, no type and not "none".

    Args:
        name: as for `names_secret`.
        value: a text or a whole number; nothing else is a secret.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return False
    text = str(value)
    if _PASSWORD.search(_words(name)) and _PIN.fullmatch(text):
        return names_secret(name)
    is_count = _TOKENS.search(name) and _COUNT.fullmatch(text)
    return names_secret(name) and not is_count and not _NO_SECRET.fullmatch(text)


def secrets_by_name(name: str, value: object, *, of_a_model: bool = False) -> Iterator[str]:
    """Yield the names of the secrets that a parameter is or holds, see `is_secret`.

    Args:
        value: of any kind; in mappings, the keys are names, too.
        of_a_model: whether it is a setting of a model, where a token and a key are mostly no secrets.
    """
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from secrets_by_name(str(key), each, of_a_model=of_a_model)
    elif isinstance(value, (list, tuple, Set)):
        for each in value:
            if not _PLURALS.search(_words(name)) or isinstance(each, Mapping):
                yield from secrets_by_name(name, each, of_a_model=of_a_model)
    elif is_secret(name, value) and not (of_a_model and _is_of_a_model(name, str(value))):
        yield name


def _is_of_a_model(name: str, text: str) -> bool:
    is_drawn = len(text) >= _LEAST_LENGTH and re.search(r"\d", text) and re.search(r"[^\W\d_]", text)
    return not is_drawn and not _SURE.search(_words(name))


def _words(name: str) -> str:
    """Return a name with its words joined by underscores, as the patterns have them: apiKey is api_Key."""
    return _ENDS_OF_WORDS.sub("_", name)

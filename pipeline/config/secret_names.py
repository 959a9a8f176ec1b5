"""Tells by its name whether a setting, an option or an environment variable holds a secret."""

import re

_HOLDS_A_SECRET = re.compile(
    r"secret|pass_?w(?:or)?d|pass_?phrase|connection_?string|conn_str|webhook"
    # Not pass_through, or pass_rate.
    r"|(?:^|_)pass(?:_?\d+|_(?:prod|production|stage|staging|test|dev|local|old|new|value|text|base64|b64))?$"
    r"|(?:^|_)(?:pwd|pat|jwt|sas)(?:$|_)"
    r"|tokens?(?:_?\d+)?$"
    r"|(?<!application_)credentials?(?:_json)?$"  # GOOGLE_APPLICATION_CREDENTIALS is a file
    r"|_keys?(?:_?\d+)?$|apikey",
    re.IGNORECASE,
)
# A place or a name, as of a secret in a manager, or a key that is no secret.
_IS_NONE = re.compile(
    r"(?:_file|_path|_dir|_env|_names?|_arn|_version|_expiry|_ttl)$"
    r"|^(?:pwd|oldpwd)$"
    r"|(?:^|_)(?:max|min|num|new|total|input|output|stop|pad|special)_tokens?$"
    # The words of a vocabulary that stand for something else, such as [MASK].
    r"|(?:^|_)(?:bos|eos|start|end|begin|sep|cls|mask|masked|unk|unknown|oov|blank|reserved|padding)_tokens?$"
    r"|(?:^|_)(?:public|verify|kms|cmk|partition|sort|primary|foreign|cache|join)_keys?$"
    # The names of columns, of TFX's examples too, and what random numbers begin with in JAX.
    r"|(?:^|_)(?:label|feature|features|example|weight|weights|slice|group|id|time|date|output|input)_keys?$"
    # The query key of Azure's search is a secret.
    r"|(?:^|(?<!search)_)query_keys?$"
    r"|(?:^|_)(?:text|image|row|index|num|target|document|column|prng|rng|random|sampling)_keys?$"
    r"|(?:^|_)(?:class|item|entity|value|split|numeric|numerical|categorical|dense|sparse)_keys?$"
    r"|(?:^|_)(?:surrogate|natural|business|unique|lookup)_keys?$",
    re.IGNORECASE,
)


def names_secret(name: str) -> bool:
    """Return True if what is called so is a secret, and must not be shown or kept.

    Args:
        name: of a key, an option or an environment variable, in words with underscores.
    """
    return bool(_HOLDS_A_SECRET.search(name)) and not _IS_NONE.search(name)

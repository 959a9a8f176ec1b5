import json
from dataclasses import dataclass

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.config import load_workload
from slipway.pipeline.config.workload_file import read_parameters, refuse_secrets
from slipway.pipeline.config.written_secrets import written_secrets
from slipway.pipeline.errors import ConfigError, UsageError

# In parts, so that a scanner of secrets finds none in this file.
SECRETS = {
    "AccountKey at Azure": ("az://box/rows.csv?sv=2022&" + "sig=abc%3D", "a signed address"),
    "S3": ("https://b.example/rows?X-Amz-" + "Signature=0a1b", "a signed address"),
    "database": ("postgres://reader:" + "hunter22@db.example/rows", "an address with a password"),
    "password alone": ("redis://:" + "hunter22@cache.example", "an address with a password"),
    "address": ("https://example.com/done?run=1&" + "token=0a1b2c3d", "an address with a token"),
    "address's key": ("https://example.com/done?" + "api_key=0a1b2c3d", "an address with a token"),
    "S3, before 2014": ("https://b.example/rows?Expires=1&" + "Signature=0a1b", "a signed address"),
    "Azure's connection": ("AccountName=a;Account" + "Key=" + "0a1b" * 20 + "==", "a signed address"),
    "client's secret": ("https://example.com/done?" + "client_secret=0a1b2c3d", "an address with a token"),
    "workflow": ("https://hooks.slack.com/" + "triggers/T0/0/x", "the address of a webhook"),
    "Discord's beta": ("https://ptb.discord.com/" + "api/v10/webhooks/0/x", "the address of a webhook"),
    "header of a key": ("X-Api-" + "Key: 0a1b2c3d", "a header with a token"),
    "header of GitLab": ("PRIVATE-" + "TOKEN: 0a1b2c3d", "a header with a token"),
    "header of GitHub": ("Authorization: " + "token 0a1b2c3d", "a header with a token"),
    "option with _": ("--api_" + "key=0a1b2c3d", "an option with a secret"),
    "option of a client": ("--client-" + "secret=0a1b2c3d", "an option with a secret"),
    "option in a line": ("mail --password" + "='hunter22' anna", "an option with a secret"),
    "OpenAI": ("sk-" + "proj-" + "a1" * 20, "a token"),
    "JWT": ("eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0In0.abc", "a token"),
    "npm": ("npm_" + "a" * 36, "a token"),
    "Databricks": ("dapi" + "0a1b" * 8, "a token"),
    "Vault": ("hvs." + "CAESI" * 5, "a token"),
    "Grafana": ("glsa_" + "a1" * 16, "a token"),
    "Grafana Cloud": ("glc_" + "eyJ" + "vIjoi" * 5, "a token"),
    "Telegram": ("https://api.telegram.org/" + "bot12345678:AAa1/sendMessage", "the address of a webhook"),
    "webhook": ("https://hooks.slack.com/" + "services/T0/B0/x", "the address of a webhook"),
    "header": ("Authorization: " + "Bearer 0a1b2c3d", "a header with a token"),
    "option": ("--password=" + "hunter22", "an option with a secret"),
    "header's value": ("Bearer " + "0a1b2c3d", "a header with a token"),
    "libpq": ("host=db dbname=rows user=anna " + "password=hunter22", "a connection string with a password"),
    "libpq, first": ("password=" + "hunter22 host=db", "a connection string with a password"),
    "ODBC": ("Server=db;Uid=anna;" + "Pwd=hunter22;", "a connection string with a password"),
    "GitHub": ("ghp_" + "a" * 36, "a token"),
    "Hub": ("hf_" + "a" * 34, "a token"),
    "AWS": ("AKIA" + "ABCDEFGHIJKLMNOP", "a token"),
    "file": ("-----BEGIN EC PRIVATE" + " KEY-----\nMHcC", "a private key"),
}


@dataclass(frozen=True)
class Address:
    """As a client's own type of an address, which is written as its text."""

    text: str

    def __str__(self):
        return self.text


NO_SECRETS = [
    "gs://box/rows-?key=*.csv",
    "https://example.com/done?run=1&page=token",
    "postgres://reader@db.example/rows",
    "postgres://${USER}:${PASSWORD}@db.example/rows",
    "Authorization: Bearer $TOKEN",
    "https://example.com/?token={token}",
    "--password=$PASSWORD",
    "--token=/run/secrets/token",
    "--token",
    "--max-tokens=4096",
    "sig=1 is the first signal",
    "00:11:22@noon",
    "a: b@c",
    "tokens, keys and passwords of a text",
    "2026-11-27T10:20:30",
    "hf_dataset",
    "glc_fasting_morning_mmol_per_l",
    "sk-learn-contrib",
    "api-key: required by the service",
    "https://example.com/?token=%TOKEN%",
    "https://anna:****@example.com",
    "--pad_token=whitespace",
    "--token_env=HUB_TOKEN",
    "host=db user=anna password=$PASSWORD",
    "Bearer bonds and other papers",
    "Bearer 123456 and other papers",
    "a user=anna has no password=yes",
    "SELECT * FROM a JOIN b ON a.user = b.user AND password = remembered",
    "SELECT * FROM logins WHERE user = 'anna' AND password = given_hash",
    "SELECT * FROM logins WHERE password = given_hash and user = 'anna'",
]


@pytest.mark.parametrize(("text", "what"), SECRETS.values(), ids=SECRETS)
def test_secret_is_recognised_wherever_it_stands(text, what):
    assert list(written_secrets({"a": [{"b": "x"}, {"c": text}], "d": 1})) == [(("a", 1, "c"), what)]


@pytest.mark.parametrize("text", NO_SECRETS)
def test_names_of_places_and_plain_words_are_no_secrets(text):
    assert list(written_secrets([text, "and", text])) == []


@pytest.mark.parametrize(
    "piece",
    [
        "x-",
        "eyJ-",
        "SG.a-",
        "api-key:",
        "--aws-",
        "?client-",
        "a://",
        "a://:",
        "authorization:",
        "user=",
        "pwd=a ",
        "bearer 1",
        " ",
        "-",
    ],
)
def test_long_texts_take_no_longer_than_their_length(piece):
    # A search that takes the square of it would not end within the test's limit.
    assert list(written_secrets(piece * (1_000_000 // len(piece)))) == []


def test_option_and_its_value_are_taken_together():
    assert list(written_secrets(["mail", "--user", "anna1234", "--password", "hunter22"])) == [
        ((4,), "an option with a secret")
    ]
    assert (
        list(written_secrets(["mail", "--password", "$MAIL_PASSWORD", "--token", "--user", "anna1234"])) == []
    )


@pytest.mark.parametrize(
    "assignment",
    [
        "push.hook=[curl, -H, '{}']".format(SECRETS["header"][0]),
        "notify.command=[mail, --password, {}]".format("hunter22"),
        "train.hyperparameters.model_source={}".format(SECRETS["database"][0]),
        "data.source={}".format(SECRETS["AccountKey at Azure"][0]),
    ],
)
def test_workload_with_a_secret_is_refused_without_showing_it(assignment):
    with pytest.raises(ConfigError) as refused:
        taxi_workload(assignment)
    assert "settings are written into records and reports" in str(refused.value)
    assert not any(secret in str(refused.value) for secret in ("0a1b", "hunter22", "abc%3D"))


_GAIN = "evaluate.own_metrics={{g: {{class: workloads.taxi.metrics.Gain, settings: {}}}}}"


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        (
            "train.hyperparameters={api_key: hunter22}",
            "train.hyperparameters.api_key: is a secret by its name",
        ),
        (
            "train.hyperparameters={db: {password: 12345678}}",
            "hyperparameters.db: password in it is a secret",
        ),
        (
            _GAIN.format("{db_token: hunter22hunter22}"),
            "evaluate.own_metrics.g.settings.db_token: is a secret",
        ),
    ],
)
def test_setting_of_ones_own_that_is_a_secret_by_its_name_is_refused_without_showing_it(assignment, words):
    """As a parameter of a pipeline is: both are kept in records."""
    with pytest.raises(ConfigError) as refused:
        taxi_workload(assignment)
    assert words in str(refused.value)
    assert "hunter22" not in str(refused.value)
    assert "12345678" not in str(refused.value)


@pytest.mark.parametrize(
    "setting",
    [
        *("max_tokens: 12", "mask_token: '[MASK]'", "api_key_env: HUB", "tokens: [a]"),
        *("pooling_token: first", "metric_key: val_auc", "token: remembered_words", "layers: {key: dense_1}"),
    ],
)
def test_hyperparameter_that_holds_no_secret_is_taken(setting):
    with pytest.raises(ConfigError) as refused:
        taxi_workload(f"train.hyperparameters={{{setting}}}")
    assert "secret" not in str(refused.value)  # only that the model takes none of that name


@pytest.mark.parametrize("kind", ["GitHub", "JWT", "libpq", "AccountKey at Azure", "header", "option"])
@pytest.mark.parametrize("key", ["train.epochs", "data.sorce"])
def test_secret_in_place_of_another_value_or_under_a_wrong_key_is_not_repeated(key, kind):
    secret = SECRETS[kind][0]
    with pytest.raises(ConfigError, match=key) as refused:
        taxi_workload(f"{key}={json.dumps(secret)}")
    assert secret not in str(refused.value)


@pytest.mark.parametrize("profile", [None, "told"])
def test_secret_in_a_profile_is_reported_once_whichever_is_chosen(project, tmp_path, profile):
    text = (project / "workloads/taxi/workload.yaml").read_text(encoding="utf-8")
    hook = "profiles:\n  told: {push: {hook: [curl, -H, 'SECRET']}}".replace("SECRET", SECRETS["header"][0])
    (tmp_path / "workload.yaml").write_text(text.replace("profiles:", hook, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_workload(tmp_path / "workload.yaml", profile=profile, root=project)
    assert str(refused.value).count("looks like a header with a token") == 1


def test_parameter_of_a_pipeline_with_a_secret_is_refused_without_showing_it():
    with pytest.raises(UsageError, match="--set address: looks like an address with a password") as refused:
        read_parameters(["name=x", f"address={SECRETS['database'][0]}"])
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize("text", ["password=hunter22", "db_token=0a1b2c", "API_KEY=no-form", "pass=1234567"])
def test_parameter_of_a_pipeline_that_is_a_secret_by_its_name_is_refused_without_showing_it(text):
    """Its record must show it to be resumed by."""
    name, _, value = text.partition("=")
    with pytest.raises(
        UsageError, match=f"--set {name}: is a secret by its name: .*\\({name}_env\\)$"
    ) as refused:
        read_parameters(["steps=3", text])
    assert value not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        *("tokens=100", "token=none", "password=", "password_env=DB_PASSWORD", "label_key=tips"),
        *("max_tokens=9", "train_tokens=3000000", "tokens=1e9", "mask_token=[MASK]"),
        *("lowPass=0.25", "account_key_column=holder"),
    ],
)
def test_parameter_of_a_pipeline_that_holds_no_secret_is_taken(text):
    name, _, value = text.partition("=")
    assert read_parameters([text]) == {name: value}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"password": 12345678}, "password: is a secret by its name"),
        ({"db": {"host": "h", "password": "hunter22"}}, "password: is a secret by its name"),
        ({"jobs": [{"api_key": "hunter22"}]}, "api_key: is a secret by its name"),
        ({"passwords": ("hunter22",)}, "passwords: is a secret by its name"),
        ({"api_keys": ["hunter22"]}, "api_keys: is a secret by its name"),
        ({"access_tokens": ["hunter22"]}, "access_tokens: is a secret by its name"),
        ({"db_password": "12345"}, "db_password: is a secret by its name"),
        ({"headers": {"Authorization": SECRETS["header's value"][0]}}, "headers: looks like a header"),
        ({"headers": {"Authorization": "token hunter22"}}, "headers: looks like a header with a token"),
        ({"headers": {"X-Api-Key": "hunter-and-more"}}, "X-Api-Key: is a secret by its name"),
        ({"dbPwd": "12345"}, "dbPwd: is a secret by its name"),
        ({"accessTokens": ["hunter22"]}, "accessTokens: is a secret by its name"),
        ({"privateKey": "hunter-and-more"}, "privateKey: is a secret by its name"),
        ({"urls": [SECRETS["database"][0]]}, "urls: looks like an address with a password"),
        ({"urls": {SECRETS["database"][0]}}, "urls: looks like an address with a password"),
        ({"sources": {"a": ({"u": SECRETS["database"][0]},)}}, "sources: looks like an address with"),
        ({"url": Address(SECRETS["database"][0])}, "url: looks like an address with a password"),
    ],
)
def test_secret_within_a_parameter_given_from_python_is_refused_without_showing_it(parameters, words):
    with pytest.raises(UsageError, match=f"parameters: {words}") as refused:
        refuse_secrets({"steps": 3, **parameters}, given_by="parameters: ")
    assert "hunter22" not in str(refused.value)
    assert "1234567" not in str(refused.value)


def test_parameters_given_from_python_that_hold_no_secret_are_taken():
    named = {"tokens": ["[PAD]", "[MASK]"], "cat_keys": ["a"], "token": None, "use_token": True, "key": 0.5}
    counts = {"password_length": 1024, "use_password": 1, "train_tokens": 3_000_000}
    columns = {"types": {"customer_key": "int64", "session_token": "string", "product_key": "categorical"}}
    refuse_secrets({**named, **counts, **columns, "at": object()}, given_by="parameters: ")

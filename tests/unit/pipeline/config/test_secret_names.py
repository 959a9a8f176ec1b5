"""Names of settings, options and environment variables that promise a secret."""

import pytest

from slipway.pipeline.config.secret_names import names_secret


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_SEARCH_QUERY_KEY",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "APPLICATIONINSIGHTS_CONNECTIONSTRING",
        "COSMOS_KEY_2",
        "DB_PASS",
        "DB_PASS_PROD",
        "DB_PASS_2",
        "ENCRYPTION_KEY",
        "GITHUB_PAT",
        "GOOGLE_CREDENTIALS",
        "HF_TOKEN",
        "MLFLOW_TRACKING_PASSWORD",
        "MYSQL_PWD",
        "OPENAI_APIKEY",
        "OPENLINEAGE_API_KEY",
        "PASS_PHRASE",
        "PGPASSWORD",
        "SIGNING_PASSPHRASE",
        "SLACK_WEBHOOK_URL",
        "WANDB_API_KEY",
        "X-Api-Key",
        "azure_connection_string",
        "fs.azure.account.key.box.dfs.core.windows.net",
        "privateKey",
        "s3_secret_access_key",
        "s3_session_token",
    ],
)
def test_name_of_a_secret_is_recognised(name):
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "AWS_ACCESS_KEY_ID",
        "AWS_REGION",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AZURE_STORAGE_ACCOUNT_NAME",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "MAX_TOKENS",
        "PWD",
        "SORT_KEY",
        "SSH_PUBLIC_KEY",
        "TOKENIZERS_PARALLELISM",
        "XLA_FLAGS",
        "allow_non_deterministic_key_coders",
        "dataflow_kms_key",
        "enable_hot_key_logging",
        "db_secret_name",
        "dense_feature_keys",
        "example_weight_key",
        "categorical_keys",
        "eos_token",
        "item_key",
        "key",
        "label_key",
        "candidate_key",
        "high_pass",
        "image_token",
        "loss_key",
        "mask_token",
        "num_keys",
        "oov_token",
        "pass_rate",
        "pass_through",
        "primaryKey",
        "prng_key",
        "sort-key",
        "query_key",
        "s3_access_key_id",
        "text_key",
        "verify_key",
    ],
)
def test_name_of_a_place_or_of_no_secret_is_not_taken_for_one(name):
    assert not names_secret(name)

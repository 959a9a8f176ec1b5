"""What a service's refusal means, in words."""

import pytest

from slipway.pipeline.cloud.services.service_refusal import Answer, no_image, refusal
from slipway.pipeline.terminal import invocation


@pytest.mark.parametrize(
    ("answer", "words", "hint"),
    [
        (
            Answer(403, "x", "BILLING_DISABLED"),
            "billing is not enabled for the project p",
            "gcloud billing projects link p",
        ),
        (
            Answer(403, "x", "SERVICE_DISABLED", {"service": "y.googleapis.com"}),
            "the API of y.googleapis.com",
            "y.",
        ),
        (
            Answer(
                403, "The y API requires a quota project, which is not set by default.", "SERVICE_DISABLED"
            ),
            "your credentials name no project whose quota counts",
            "gcloud auth application-default set-quota-project p",
        ),
        (Answer(400, "needs iam.serviceAccounts.actAs"), "as that service account", "serviceAccountUser"),
        (Answer(403, "Denied.\nmore"), "not allowed in the project p (Denied.)", "aiplatform.user"),
        (Answer(500, ""), "an internal error, 500 (no reason was given)", "later"),
        (Answer(418, "teapot"), "teapot", ""),
    ],
)
def test_refusal_names_what_is_missing_and_the_remedy(answer, words, hint):
    error = refusal(answer, doing="starting the run", project="p")
    assert error.message.startswith("starting the run failed: ")
    assert words in error.message
    assert "\n" not in error.message
    assert hint in error.hint
    assert error.exit_code == 1


@pytest.mark.parametrize(
    ("is_checkout", "how"), [(True, "make image IMAGE=r/i:1"), (False, "docker build --tag r/i:1 .")]
)
def test_missing_image_is_named_with_a_command_that_there_is(monkeypatch, is_checkout, how):
    monkeypatch.setattr(invocation, "IS_CHECKOUT", is_checkout)
    assert no_image("r/i:1", build_target="").hint == f"{how} && docker push r/i:1"

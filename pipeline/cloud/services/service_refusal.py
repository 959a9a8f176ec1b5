"""Explains why a service refused a request, and what to do about it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slipway.components.google_credentials import LOG_IN
from slipway.components.google_retries import TRUST
from slipway.pipeline.errors import PipelineError, UnansweredError
from slipway.pipeline.terminal.invocation import image_command

# The console and Google's documentation use the new name; a search finds either.
_APIS = {
    "aiplatform.googleapis.com": "Vertex AI (now Gemini Enterprise Agent Platform)",
    "storage.googleapis.com": "Cloud Storage",
    "artifactregistry.googleapis.com": "Artifact Registry",
}
_QUOTAS = "https://console.cloud.google.com/iam-admin/quotas"
_ACT_AS = "iam.serviceAccounts.actAs"
# How the errors of requests, urllib3 and ssl are called if nothing was sent yet.
_NOT_SENT = (
    *("NewConnectionError", "ConnectTimeout", "NameResolutionError", "ProxyError"),
    "SSLCertVerificationError",
)
# Google's wording if a user's own credentials name no quota project; the reason is then SERVICE_DISABLED,
# for the project of gcloud itself.
_NO_QUOTA_PROJECT = "requires a quota project"


@dataclass(frozen=True)
class Answer:
    """A service's error response.

    Attributes:
        reason: the reason in `google.rpc.ErrorInfo`, e.g. SERVICE_DISABLED; empty if there is none.
        metadata: the metadata in `google.rpc.ErrorInfo`.
    """

    status: int
    message: str
    reason: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


def refusal(answer: Answer, *, doing: str, project: str) -> PipelineError:
    """Return the error for a service's error response.

    Args:
        doing: the requested action, e.g. "starting the run".
    """
    message, hint = _words(answer, project)
    kind = UnansweredError if answer.status >= 500 else PipelineError
    return kind(f"{doing} failed: {message}", hint=hint)


def _words(answer: Answer, project: str) -> tuple[str, str]:
    said = _first_line(answer.message)
    permission = answer.metadata.get("permission", "")
    if _NO_QUOTA_PROJECT in answer.message:
        return (
            f"your credentials name no project whose quota counts ({said})",
            f"gcloud auth application-default set-quota-project {project}",
        )
    if answer.reason == "SERVICE_DISABLED":
        api = answer.metadata.get("service", "")
        return (
            f"the API of {_APIS.get(api, api)} is not enabled in the project {project}",
            f"gcloud services enable {api} --project {project}   # takes effect after some minutes",
        )
    if answer.reason == "BILLING_DISABLED":
        return (
            f"billing is not enabled for the project {project}",
            f"gcloud billing projects link {project} --billing-account ACCOUNT   "
            "# yours: gcloud billing accounts list",
        )
    if answer.status == 401:
        return f"the credentials are not accepted ({said})", LOG_IN
    if permission == _ACT_AS or _ACT_AS in answer.message:
        return (
            f"you may not let tasks run as that service account ({said})",
            "ask for the role roles/iam.serviceAccountUser on it",
        )
    if answer.status == 403:
        needed = f"; the permission {permission} is missing" if permission else ""
        return (
            f"not allowed in the project {project}{needed} ({said})",
            "correct cloud.vertex.project, or ask for the role roles/aiplatform.user: gcloud projects "
            f"add-iam-policy-binding {project} --member user:YOU --role roles/aiplatform.user",
        )
    if answer.status == 404:
        return f"not found ({said})", "check the name, cloud.vertex.project and cloud.vertex.region"
    if answer.status == 429:
        return f"a quota is used up ({said})", f"wait, or ask for more: {_QUOTAS}?project={project}"
    if answer.status >= 500:
        return f"the service has an internal error, {answer.status} ({said})", "run the command again later"
    return said, ""


def kubeflow_refusal(status: int, said: str, *, doing: str, token_env: str, is_of_api: bool) -> PipelineError:
    """Return the error for an error response of Kubeflow Pipelines.

    Args:
        said: the service's own message.
        token_env: the environment variable that holds the token.
        is_of_api: whether the response is in the form of the API's, and not a web server's before it.
    """
    said = _first_line(said)
    if status == 401:
        message, hint = f"no valid token ({said})", f"set {token_env} to a token of the installation"
    elif status == 403:
        message, hint = f"not allowed ({said})", "check cloud.kubeflow.namespace, and that you belong to it"
    elif status == 404:
        message = f"not found ({said})"
        hint = "check its name" if is_of_api else "check cloud.kubeflow.host: it is the address of the API"
    elif status == 429 or status >= 500:
        message, hint = f"the service cannot answer now, {status} ({said})", "run the command again later"
    else:
        message, hint = said, ""
    kind = UnansweredError if status >= 500 else PipelineError
    return kind(f"{doing} failed: {message}", hint=hint)


def stale_credentials(said: str) -> PipelineError:
    """Return the error for credentials that no longer give a token."""
    return PipelineError(
        f"the credentials for Google Cloud are no longer valid ({_first_line(said)})", hint=LOG_IN
    )


def unreachable(address: str, said: str, *, doing: str, is_sent: bool) -> PipelineError:
    """Return the error for a service that does not answer.

    Args:
        is_sent: whether the request may have reached it, see `may_be_sent`.
    """
    kind = UnansweredError if is_sent else PipelineError
    return kind(
        f"{doing} failed: {address} does not answer ({_first_line(said)})",
        hint="check the network, a proxy (https_proxy), and the address",
    )


def unverified(address: str, said: str, *, doing: str) -> PipelineError:
    """Return the error for a server of Google's whose certificate cannot be verified; nothing was sent to it.

    Args:
        said: why it cannot.
    """
    return PipelineError(
        f"{doing} failed: the certificate of {address} cannot be verified ({_first_line(said)})", hint=TRUST
    )


def not_encrypted(address: str, said: str, *, doing: str, ca_file: str | None) -> PipelineError:
    """Return the error for a Kubeflow whose certificate cannot be verified; nothing was sent to it.

    Args:
        ca_file: the file of certificates that verify it; None: the system's.
    """
    by = f"by {ca_file}" if ca_file else "by the system's certificates"
    return PipelineError(
        f"{doing} failed: {address} cannot be verified {by} ({_first_line(said)})",
        hint="cloud.kubeflow.ca_file names the certificates, as PEM, that have signed the service's own",
    )


def no_api(address: str, *, doing: str, hint: str) -> PipelineError:
    """Return the error for an address at which something else than the API answers.

    Args:
        hint: what to check.
    """
    return PipelineError(
        f"{doing} failed: {address} answers with a page, such as that of a login, and not as the API does",
        hint=hint,
    )


def may_be_sent(error: BaseException) -> bool:
    """Return False if an error of a client means that nothing was sent yet."""
    return not any(word in f"{type(error).__name__} {error}" for word in _NOT_SENT)


def unfinished(said: str, *, doing: str) -> PipelineError:
    """Return the error for an operation on a schedule that the service has begun and not ended in time."""
    return PipelineError(
        f"{doing} takes longer than this command waits ({_first_line(said)}); the service goes on with it",
        hint="schedule list shows when it is done",
    )


def no_bucket(bucket: str, *, key: str, project: str, region: str) -> PipelineError:
    """Return the error for a missing bucket, which a key of the workload file names."""
    return PipelineError(
        f"{key}: there is no bucket gs://{bucket}",
        hint=f"gcloud storage buckets create gs://{bucket} --project {project} --location {region} "
        "--uniform-bucket-level-access   # or correct the name",
    )


def no_image(image: str, *, build_target: str) -> PipelineError:
    """Return the error for an image that the registry does not have."""
    return PipelineError(
        f"{'cloud.training.image' if build_target else 'cloud.image'}: {image} is not in its registry",
        hint=f"{image_command(image, target=build_target)} && docker push {image}",
    )


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no reason was given"

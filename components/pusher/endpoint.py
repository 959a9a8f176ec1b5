"""Names and traffic shares for deploying a version to a Vertex AI endpoint. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from slipway.components.pusher.versions import Published

ALL_TRAFFIC = 100
"""The sum of the traffic shares of an endpoint's models, in percent."""
NEW = "0"
"""The name of the model to deploy in a deploy request's traffic split."""

_LONGEST_DEPLOYED_ID = 10


@dataclass(frozen=True)
class EndpointSettings:
    """The endpoint to deploy a version to, and its machines.

    Attributes:
        project: id of the Google Cloud project.
        name: id of the endpoint, which is created if it does not exist.
        min_replicas: minimum number of machines, >= 1; `max_replicas`: maximum number.
        traffic: percentage of the requests that go to the new version, 0 to 100.
        address: of the API; empty: https://REGION-aiplatform.googleapis.com.
        service_account: the account that the container runs as; empty: the service's own.
        encryption_key: the Cloud KMS key of a model or endpoint that is created; empty: Google's keys.
    """

    project: str
    region: str
    name: str
    container: str
    machine_type: str
    min_replicas: int
    max_replicas: int
    traffic: int
    address: str = ""
    service_account: str = ""
    encryption_key: str = ""

    @property
    def parent(self) -> str:
        """The resource name of the project and region."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def endpoint(self) -> str:
        """The resource name of the endpoint."""
        return f"{self.parent}/endpoints/{self.name}"

    @property
    def url(self) -> str:
        """The address of the API."""
        return self.address or f"https://{self.region}-aiplatform.googleapis.com"


class DeployRequest(TypedDict):
    """The service's form of a deploy request; `traffic_split`: percentage by the id of a deployment."""

    endpoint: str
    deployed_model: Mapping[str, object]
    traffic_split: dict[str, int]


def deploy_request(
    settings: EndpointSettings,
    published: Published,
    *,
    workload: str,
    model: str,
    shares: Mapping[str, int],
) -> DeployRequest:
    """Build the request that deploys a model and gives it its share of the requests.

    Args:
        model: the version's resource name in the registry, with `@` and its number there.
        shares: of the endpoint's current models, in percent by the id of their deployment.
    """
    deployed: dict[str, object] = {
        "model": model,
        "display_name": f"{workload} {published.version}",
        "dedicated_resources": {
            "machine_spec": {"machine_type": settings.machine_type},
            "min_replica_count": settings.min_replicas,
            "max_replica_count": settings.max_replicas,
        },
    }
    if settings.service_account:
        deployed["service_account"] = settings.service_account
    # With a given id, repeating the request after a lost response does not deploy the model twice.
    if len(str(published.version)) <= _LONGEST_DEPLOYED_ID:
        deployed["id"] = str(published.version)
    return {
        "endpoint": settings.endpoint,
        "deployed_model": deployed,
        "traffic_split": traffic_split(shares, settings.traffic),
    }


def traffic_split(shares: Mapping[str, int], new: int) -> dict[str, int]:
    """Return the shares after adding a model: it gets `new` percent, the others share the rest as before.

    Args:
        shares: percentage by id of the current models; models with 0 are left out.
        new: percentage of the new model, which is called `NEW`; it gets 100 if it is the only one.

    Returns:
        Shares above 0 that add up to 100; the share of the new model is included even if it is 0.
    """
    others = {name: share for name, share in sorted(shares.items()) if share > 0}
    if not others:
        return {NEW: ALL_TRAFFIC}
    rest, total = ALL_TRAFFIC - new, sum(others.values())
    split = {name: share * rest // total for name, share in others.items()}
    # Largest remainder method: the shares that lost most by rounding get the remaining percents.
    by_loss = sorted(others, key=lambda name: (-(others[name] * rest % total), name))
    for name in by_loss[: rest - sum(split.values())]:
        split[name] += 1
    return {NEW: new, **{name: share for name, share in split.items() if share}}

"""Names and traffic shares for deploying a version to a Vertex AI endpoint. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from slipway.components.pusher.versions import Published

ALL_TRAFFIC = 100
"""The shares of an endpoint's models add up to it, in percent."""
NEW = "0"
"""How a request calls the model that it deploys."""

_LONGEST_DEPLOYED_ID = 10


@dataclass(frozen=True)
class EndpointSettings:
    """Where a version is deployed, and on what.

    Attributes:
        project: id of the Google Cloud project.
        address: of the API; empty: https://REGION-aiplatform.googleapis.com.
        name: id of the endpoint; made where there is none.
        min_replicas: machines at the least, >= 1; `max_replicas`: at the most.
        traffic: percent of the requests that go to the new version, 0 to 100.
        service_account: that the container runs as; empty: the service's own.
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

    @property
    def parent(self) -> str:
        """The project and the region, as requests name them."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def endpoint(self) -> str:
        """The endpoint, as requests name it."""
        return f"{self.parent}/endpoints/{self.name}"

    @property
    def url(self) -> str:
        """Where the API is."""
        return self.address or f"https://{self.region}-aiplatform.googleapis.com"


class DeployRequest(TypedDict):
    """A request as the service takes it; `traffic_split`: percent by the id of a deployment."""

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
    """Deploys a model and gives it its share of the requests.

    Args:
        settings: where and on what.
        model: the resource name of the version in the registry, with `@` and its number there.
        shares: of the endpoint's models now, in percent by the id of their deployment.
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
    # With an id of ours, a request that is repeated because its answer was lost deploys nothing twice.
    if len(str(published.version)) <= _LONGEST_DEPLOYED_ID:
        deployed["id"] = str(published.version)
    return {
        "endpoint": settings.endpoint,
        "deployed_model": deployed,
        "traffic_split": traffic_split(shares, settings.traffic),
    }


def traffic_split(shares: Mapping[str, int], new: int) -> dict[str, int]:
    """The shares after a new model came: it gets `new` percent, the others share the rest as before.

    Args:
        shares: percent by id, of the models that are there; those without any are left out.
        new: percent for the new one, which is called `NEW`; it gets all where it is alone.

    Returns:
        Shares above 0 that add up to 100; that of the new one also where it is 0.
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

"""The environment variables of a rehearsed task: the image's, and some of this machine's. Pure."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from slipway.components.home_folder import at_home
from slipway.components.s3_and_azure_store import VARIABLES
from slipway.pipeline.cloud.image_contents import image_environment, on_this_machine

CERTIFICATES = "CURL_CA_BUNDLE"
"""The variable that names a file of certificates."""
# A container gets these from the service, not from its image: its identity and its network access. The last
# is the certificate of a store on loopback, for TensorFlow's access to gs://.
_IDENTITY = ("GOOGLE_", "CLOUDSDK_", "NO_GCE_CHECK", "STORAGE_EMULATOR_HOST", CERTIFICATES)
# A task that is a process of this machine also gets these; an image has its own.
_OF_MACHINE = ("SSL_CERT_", "TMPDIR")
_NOT_PROXIED = "no_proxy"
_PROXIES = ("http_proxy", "https_proxy", _NOT_PROXIED)
_LOOPBACK = re.compile(r"(^|//|@)(localhost|127(\.\d+){3}|\[::1\])(:\d+)?(/|$)")


def from_outside(here: Mapping[str, str], *, stores: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that a service gives to any container, as far as this machine has them.

    Args:
        stores: the kinds of stores beside gs:// that the tasks open, keys of `VARIABLES`: only those stores'
            variables are among them.
    """
    named = {name for kind in stores for name in VARIABLES[kind]}
    return {
        name: value
        for name, value in here.items()
        if name.startswith(_IDENTITY) or name in named or name.lower() in _PROXIES
    }


def names_loopback(variables: Mapping[str, str]) -> bool:
    """Return True if a variable names a server on this machine's loopback: a store's emulator, or a proxy."""
    return any(_LOOPBACK.search(value) for name, value in variables.items() if name.lower() != _NOT_PROXIED)


def container_environment(
    here: Mapping[str, str],
    *,
    staged: Path,
    home: Path,
    own: Collection[str] = (),
    stores: Collection[str] = (),
) -> dict[str, str]:
    """Return the variables of a task that runs as a process of this machine, in place of a container.

    Args:
        staged: the folder with the image's project files.
        home: an empty folder that only this user may write to. The image's home folder is its /tmp, which is
            everybody's here; and Python and Keras run and read what is in a home folder.
        own: variables that keep their value on this machine if they are set: the image of a user's own
            pipeline belongs to the user, too.
        stores: see `from_outside`.
    """
    given = from_outside(here, stores=stores) | {
        name: here[name] for name in here if name.startswith(_OF_MACHINE)
    }
    # The image's HOME is empty; the service provides the account in another way.
    given.setdefault("CLOUDSDK_CONFIG", at_home("~/.config/gcloud"))
    return (
        given
        | {name: on_this_machine(value, staged=staged) for name, value in image_environment().items()}
        | {"HOME": str(home)}
        | {name: here[name] for name in own if name in here}
    )

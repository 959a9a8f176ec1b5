"""The command `verify`: checks the files of pushed versions against their manifests."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from slipway.components.project import PROJECT_ROOT
from slipway.components.pusher.signature import Trust, claimed_key
from slipway.components.pusher.signing_keys import short
from slipway.components.pusher.version_store import version_store_at
from slipway.components.pusher.versions import version_number
from slipway.components.store_address import is_in_store
from slipway.pipeline.commands.versions import no_version
from slipway.pipeline.config import WorkloadChoice
from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.wiring.pushed_versions import serving_base, trust_in, trusted_versions


class Verified(NamedTuple):
    """The result of checking one version.

    Attributes:
        problem: what is wrong, in words; empty if nothing is.
        signed_by: the fingerprint of the key that the signature names; empty if there is no signature, or
            it names no key.
        is_trusted: whether the signature was verified; False also where no key is known.
    """

    address: str
    problem: str
    signed_by: str = ""
    is_trusted: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the result as plain data."""
        return {
            "version": self.address,
            "sound": not self.problem,
            "problem": self.problem,
            "signed_by": self.signed_by or None,
            "signature_verified": self.is_trusted,
        }

    def line(self) -> str:
        """Return the result on one line."""
        if self.problem:
            return f"{self.address}: {self.problem}"
        signed = f"; signed with the key {short(self.signed_by)}" if self.signed_by else ""
        checked = "" if self.is_trusted or not signed else ", not verified: no --verify-key"
        return f"{self.address}: is what its manifest says{signed}{checked}"


def verify_all(
    place: str | None,
    chosen: WorkloadChoice,
    output: Path,
    *,
    verify_key: Path | None = None,
) -> list[Verified]:
    """Check one version, or all versions of a workload or in a folder.

    Args:
        place: a workload's name, or the `place` of `verify`; None: the versions of `workload`.
        chosen: the workload whose versions to check if `place` is None.
        verify_key: the public key whose private key must have signed the versions; None: the workload's key,
            if `place` is None and the workload has one.

    Raises:
        UsageError: the key cannot be read, there is no version, or there is neither a workload nor a folder
            named `place`.
    """
    if place and not Path(place).exists():
        if (PROJECT_ROOT / "workloads" / place).is_dir():
            chosen, place = replace(chosen, workload=Path(place)), None
        elif "/" not in place and version_number(place) is None:
            raise UsageError(
                f"verify {place}: there is no workload of that name, and no folder {Path(place).absolute()}.",
                hint=command("versions"),
            )
    trust = trust_in(str(verify_key)) if verify_key else None
    if place is None:
        config = chosen.config()
        trust = trusted_versions(config, verify_key)
        place = serving_base(config, output.absolute())
        if not version_store_at(place).numbers():
            raise no_version(place, config, output)
    return list(verify(place, trust))


def verified_text(found: Sequence[Verified]) -> str:
    """Return one line per version, and a hint if one differs."""
    lines = [each.line() for each in found]
    if any(each.problem for each in found):
        lines.append(
            "hint: run pushes the newest version anew if it is damaged; rollback publishes an earlier one"
        )
    return "\n".join(lines)


def verify(place: str, trust: Trust | None = None) -> Iterator[Verified]:
    """Check one version, or all versions in a folder, and yield the results.

    Args:
        place: the directory or address of a version, or of a folder that holds versions.
        trust: the keys to verify signatures with; None: signatures are not verified.

    Raises:
        UsageError: there is no version.
    """
    place = place.rstrip("/") or "/"
    above, _, name = place.rpartition("/")
    if not is_in_store(place) and not Path(place).is_absolute():
        place = str(Path(place).absolute())
        above, _, name = place.rpartition("/")
    number = version_number(name)
    store = version_store_at(above if number and above.count("/") else place, trust)
    wanted = [number] if number else store.numbers()
    if not wanted:
        raise UsageError(f"{place} has no version.", hint=command("versions"))
    for version in wanted:
        problem, signature = store.problem(version), store.signature(version)
        signed_by = claimed_key(signature) if signature else ""
        yield Verified(f"{store.base}/{version}", problem, signed_by, trust is not None and not problem)

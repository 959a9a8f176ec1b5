"""The commands `versions` and `rollback`: list pushed versions, and go back to an earlier one."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.pusher.destination import deployment_at, push
from slipway.components.pusher.endpoint import ALL_TRAFFIC
from slipway.components.pusher.hook import run_hook
from slipway.components.pusher.manifest import Manifest, read_manifest
from slipway.components.pusher.manifest_contents import Provenance, Republished
from slipway.components.pusher.provenance import read_sbom
from slipway.components.pusher.retention import thin_out
from slipway.components.pusher.version_files import Extras
from slipway.components.pusher.version_store import UntrustedError, VersionStore, version_store_at
from slipway.components.pusher.versions import Published
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.journal import way_to_write
from slipway.pipeline.errors import PipelineError, UsageError, raised_as
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import changing_pushes
from slipway.pipeline.runs.run_target import Origin
from slipway.pipeline.runs.user import user_name
from slipway.pipeline.screen.wording import metrics_line
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.wiring.pushed_versions import (
    endpoint_settings,
    serving_base,
    signing_key,
    trusted_versions,
)


@dataclass(frozen=True)
class Version:
    """A pushed version as `versions` lists it.

    Attributes:
        live: whether servers serve this version, which means that it is the newest.
        manifest: the version's manifest; None if the version was not pushed, or the manifest is damaged.
    """

    version: int
    live: bool
    manifest: Manifest | None

    @property
    def provenance(self) -> Provenance:
        """The contents of the manifest, except the list of files."""
        return self.manifest.provenance if self.manifest else {}

    @property
    def copy_of(self) -> int:
        """The version under which the model was first pushed; this version unless it was republished."""
        return int(self.provenance.get("republished", {}).get("version", self.version))

    @property
    def replaced(self) -> int:
        """The version that was live before a rollback published this one; 0 if none did."""
        return int(self.provenance.get("republished", {}).get("instead_of", 0))

    @property
    def _by(self) -> str:
        """The user, time and reason of a republication, as far as recorded."""
        again = self.provenance["republished"]
        by = f" by {again['by']}, {again.get('at', '')}".rstrip(", ") if again.get("by") else ""
        return by + (f": {again['reason']}" if again.get("reason") else "")

    def to_json(self) -> dict[str, object]:
        """Return the version as plain data."""
        keys = ("pushed_at", "run", "metrics", "republished")
        return {
            "version": self.version,
            "live": self.live,
            "has_manifest": self.manifest is not None,
            **{key: self.provenance.get(key) for key in keys},
            "model": self.manifest.model_digest if self.manifest else None,
            "bytes": sum(file.bytes for file in self.manifest.files.values()) if self.manifest else None,
        }

    def line(self) -> str:
        """Return the version on one line."""
        mark = "live" if self.live else ""
        if self.manifest is None:
            return f"{self.version:>10}  {mark:<4}  no readable manifest"
        again = f"version {self.copy_of} again{self._by}" if self.copy_of != self.version else ""
        facts = (
            self.provenance.get("pushed_at", ""),
            metrics_line(self.provenance.get("metrics", {})),
            again,
        )
        return f"{self.version:>10}  {mark:<4}  {'  '.join(filter(None, facts))}".rstrip()


def versions(config: WorkloadConfig, output: Path) -> list[Version]:
    """Return the pushed versions of a workload, newest first."""
    return _versions(version_store_at(serving_base(config, output.absolute())))


def versions_text(found: Sequence[Version], config: WorkloadConfig, output: Path) -> str:
    """Return one line per version, or a line that names the searched folder if there is none."""
    if found:
        return "\n".join(version.line() for version in found)
    base = serving_base(config, output.absolute())
    there, hint = _pushed_elsewhere(base, config, output)
    return f"No version was pushed yet to {base}{there}." + (f"\nhint: {hint}" if hint else "")


@dataclass(frozen=True)
class RolledBack:
    """The result of `rollback`: the published version, the one it repeats, and the one it replaced."""

    published: Published
    target: int
    instead_of: int

    def to_json(self) -> dict[str, object]:
        """Return the result as plain data."""
        return {
            "version": self.published.version,
            "path": self.published.address,
            "repeats": self.target,
            "instead_of": self.instead_of,
        }

    def text(self) -> str:
        """Return lines that name the live version, and note that the next model's baseline is unchanged."""
        return (
            f"Version {self.target} is live again as {self.published.version}, "
            f"instead of {self.instead_of} -> {self.published.address}\n"
            "The next model and its data are still compared with the latest blessed model and its data; "
            "`baseline --set RUN` changes that."
        )


def rollback(config: WorkloadConfig, output: Path, *, to: int | None, reason: str = "") -> RolledBack:
    """Publish an earlier version again as the newest one, so that servers pick it up by themselves.

    The user, time and reason are recorded in the new version's manifest and in the run history. Because the
    manifest is new, the version is signed again if the workload signs its versions.

    Args:
        output: the folder of the workload's runs; no run of the workload may be active there.
        to: the version to go back to; None: the one before the live model. After a rollback, that is one
            version further back. If the rollback to that version could not deploy it or its hook failed,
            that is done again, and nothing is published.
        reason: the user's reason; may be empty.

    Raises:
        UsageError: there is no such version, or none to go back to; a run is active; the version is not
            trusted, or must be signed and there is no key.
        ComponentError: the version is damaged, or cannot be published.
        PipelineError: the rollback is done, but could not be recorded in the run history.
    """
    base = serving_base(config, output.absolute())
    endpoint = endpoint_settings(config)
    # All requests, not the share of a new model: the live one is to get none any more.
    deployment = deployment_at(endpoint and replace(endpoint, traffic=ALL_TRAFFIC))
    trust, key = trusted_versions(config), signing_key(config)
    if trust and not key:
        raise UsageError(
            "push.verify_key asks for signed versions, and a rollback publishes a new one, which without "
            "push.sign has no signature.",
            hint="name the private key by push.sign",
        )
    began = time.monotonic()
    with changing_pushes(output.absolute(), config.name, run_id="rollback"):
        found = _versions(version_store_at(base))
        if not found:
            raise no_version(base, config, output)
        is_more = bool(deployment or config.push.hook)
        target = _target(found, to, base, command("versions", *config.words, output=output), is_more=is_more)
        repeated = command("rollback", *config.words, "--to", str(target.version), output=output)
        with (
            _repeated_by(repeated),
            raised_as(UsageError, UntrustedError),
            version_store_at(base, trust).fetched(target.version) as folder,
        ):
            # From here on what was checked counts, not what lies in the base by now.
            target = replace(target, manifest=read_manifest(folder))
            again: Republished = {
                "version": target.copy_of,
                "instead_of": found[0].version,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "by": user_name(),
            }
            if reason:
                again["reason"] = reason
            if found[0].manifest:
                again["instead_of_model"] = found[0].manifest.model_digest
            provenance: Provenance = {**target.provenance, "republished": again}
            published = push(folder, base=base, provenance=provenance, extras=Extras(key, read_sbom(folder)))
        if published.was_there:  # by an earlier call, which could not do all that follows
            done = RolledBack(published, target.version, found[0].replaced)
            unnoted = None
        else:
            done = RolledBack(published, target.version, found[0].version)
            unnoted = _record(History(output.absolute()), target, done, again, began)
        with _repeated_by(repeated):
            if deployment:
                deployment.deploy(published, workload=config.name, provenance=provenance)
            if config.push.keep:
                thin_out(base, keep=config.push.keep)
            run_hook(config.push.hook, published, workload=config.name)
    if unnoted:
        raise PipelineError(
            f"Version {target.version} is live again as {published.version}, but `runs` will not show it: "
            f"{output} cannot be written: {unnoted.strerror or unnoted}.",
            hint=f"{way_to_write(unnoted)}; nothing else is left to do: the version's manifest records who "
            "and why",
        )
    return done


@contextlib.contextmanager
def _repeated_by(words: str) -> Iterator[None]:
    """Let the remedies of the push name the rollback: to resume a run would push over it."""
    try:
        yield
    except ComponentError as error:
        raise type(error)(error.message, hint=error.hint.replace("resume the run", words)) from error


def no_version(base: str, config: WorkloadConfig, output: Path) -> UsageError:
    """Return the error for a workload without versions, with the command that shows or makes one."""
    there, hint = _pushed_elsewhere(base, config, output)
    return UsageError(
        f"{base} has no version{there}.", hint=hint or command("run", *config.words, output=output)
    )


def _pushed_elsewhere(base: str, config: WorkloadConfig, output: Path) -> tuple[str, str]:
    """Return where the workload's last push went, in words, if not to `base`, and how to look there.

    The destination may be that of a profile, or of a `--set`, which whoever asks left out. Both texts are
    empty if nothing was pushed elsewhere, and the second if the same words meant another place then.
    """
    for record in History(output.absolute()).runs(leave_out=("nodes",)):
        if record.workload != config.name or not record.pushed or record.rollback:
            continue
        place, _, version = record.pushed["path"].rpartition("/")
        if place == base:
            break
        told = f"; run {record.run_id} pushed version {version} to {place}"
        origin = record.target.origin or Origin()
        name, *asked = config.words
        options = ["--profile", origin.profile] if origin.profile else []
        for each in origin.sets:
            options += ["--set", each] if each.startswith(("push.destination=", "push=")) else []
        return told, "" if options == asked else command("versions", name, *options, output=output)
    return "", ""


def pushed_version(store: VersionStore, version: int | None, config: WorkloadConfig, output: Path) -> int:
    """Return that version of a workload's base, or the newest for None.

    Raises:
        UsageError: there is no such version, or none at all.
    """
    numbers = store.numbers()
    if not numbers:
        raise no_version(store.base, config, output)
    if version not in (None, *numbers):
        raise UsageError(
            f"{store.base} has no version {version}.", hint=command("versions", *config.words, output=output)
        )
    return version or numbers[-1]


def _record(
    history: History, target: Version, done: RolledBack, again: Republished, began: float
) -> OSError | None:
    """Record a rollback in the run history; return why that failed, if it did: the rollback stands."""
    try:
        record = history.new_run(target.provenance.get("workload", ""))
        record.state, record.exit_code, record.wall_s = "complete", 0, time.monotonic() - began
        record.metrics = dict(target.provenance.get("metrics", {}))
        record.pushed = {"version": str(done.published.version), "path": done.published.address}
        record.rollback = {
            "version": done.target,
            "instead_of": done.instead_of,
            "by": again["by"],
            "reason": again.get("reason", ""),
        }
        history.save(record)
    except OSError as error:
        return error
    return None


def _versions(store: VersionStore) -> list[Version]:
    numbers = store.numbers()
    return [Version(each, each == numbers[-1], store.manifest(each)) for each in reversed(numbers)]


def _target(found: Sequence[Version], to: int | None, base: str, see: str, *, is_more: bool) -> Version:
    """Return the version to go back to.

    Args:
        is_more: whether a rollback does more than to publish: the version that it has published already may
            then be named again.
    """
    live = found[0]
    if to is not None:
        wanted = next((version for version in found if version.version == to), None)
        if wanted is None:
            raise UsageError(f"{base} has no version {to}.", hint=see)
    else:
        wanted = next((v for v in found if v.version < live.copy_of and _is_other(v, live)), None)
        if wanted is None:
            raise UsageError(f"There is no version before {live.version} to go back to in {base}.", hint=see)
    if wanted.manifest is None:
        raise UsageError(f"Version {wanted.version} in {base} has no readable manifest.", hint=see)
    is_repeated = is_more and live.replaced and wanted.copy_of == live.copy_of
    if live.manifest and wanted.manifest.model_digest == live.manifest.model_digest and not is_repeated:
        raise UsageError(f"Version {live.version}, which is live, already is that model.", hint=see)
    return wanted


def _is_other(version: Version, live: Version) -> bool:
    if version.manifest is None:
        return False
    return live.manifest is None or version.manifest.model_digest != live.manifest.model_digest

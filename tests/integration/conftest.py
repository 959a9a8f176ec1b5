"""gs://, s3:// and az:// on loopback, for all that uses them; and trainings that import little."""

import json
from concurrent.futures import wait

import pytest
from object_servers import azure, google, has_azurite, s3


@pytest.fixture(scope="module")
def forked(warm):
    """Python modules get processes that are forked from the warm one, as in a run: they import little."""
    from slipway.components import python_process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_process, "fork_channel", warm._line)
        yield warm


@pytest.fixture
def beside(monkeypatch):
    """The processes beside this one that did a task: each of them gets one before this one begins."""
    from slipway.components import process_pool

    pids = set()
    share_out, do = process_pool.ProcessPool.map, process_pool._Worker.do

    def when_all_are_ready(self, *given, **more):
        wait(self._started.values())
        return share_out(self, *given, **more)

    def noted(self, *given):
        done = do(self, *given)
        pids.add(self.pid)
        return done

    monkeypatch.setattr(process_pool.ProcessPool, "map", when_all_are_ready)
    monkeypatch.setattr(process_pool._Worker, "do", noted)
    return pids


@pytest.fixture(scope="module")
def gs(tmp_path_factory):
    """A strict Cloud Storage with the bucket `bucket`, as variables that lead all clients there."""
    with google(tmp_path_factory.mktemp("gs")) as variables:
        yield variables


@pytest.fixture(scope="session")
def account_key():
    """The private key of a service account that exists nowhere; short: it is checked whenever it is read."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=1024).private_bytes(  # noqa: S505
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.fixture
def log_in(account_key, tmp_path, monkeypatch):
    """Logs this process in to Google Cloud, as an account whose tokens come from an address."""

    def call(address, *, project="p"):
        account = {
            "type": "service_account",
            "project_id": project,
            "private_key_id": "k",
            "private_key": account_key.decode(),
            "client_email": f"a@{project}.iam.gserviceaccount.com",
            "token_uri": f"{address}/token",
        }
        (tmp_path / "account.json").write_text(json.dumps(account), encoding="utf-8")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))

    return call


@pytest.fixture(scope="session")
def s3_server():
    with s3() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server():
    if not has_azurite():
        pytest.skip("Azurite is not here: make azurite")
    with azure() as server:
        yield server


@pytest.fixture(params=["s3", pytest.param("az", marks=pytest.mark.external)])
def object_server(request, monkeypatch):
    """S3 or Azure, which the environment names."""
    from slipway.components.ingest import s3_and_azure_objects

    server = request.getfixturevalue({"s3": "s3_server", "az": "azure_server"}[request.param])
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    if request.param == "s3":
        server.fail()
    s3_and_azure_objects._store_of.cache_clear()
    yield server
    s3_and_azure_objects._store_of.cache_clear()

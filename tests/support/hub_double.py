"""A double of the Hugging Face Hub on loopback: data sets, commits, and answers that are spoiled on demand.

The real one cannot be reached from where the tests run. It answers with the paths, pages, statuses and
headers of the Hub's documented API, as far as `slipway.components.ingest.hub_client` uses them; large files
are redirected to another address. The Hub's own client, huggingface_hub 2.4, was tried with it: it lists and
downloads, and tells the refusals apart. `spoil` names what goes wrong with the next requests: a status, maybe
with headers, or "drop" (no answer), "truncate" (half of the content), "corrupt" (one wrong bit), "whole" (all
of it where a part was asked for), "page" (a sign-in page).
"""

import contextlib
import hashlib
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, quote, unquote, urlsplit

import loopback

TOKEN = "hf_token-of-the-tests"  # noqa: S105
PAGE_ENTRIES = 2
LARGE_BYTES = 1000


@dataclass
class DataSet:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    is_private: bool = False
    is_gated: bool = False


@dataclass
class Hub:
    """What the double holds, and what it was asked: (path with query, Authorization, Range) of each request.

    Attributes:
        linked_address: the address in the links to further pages, if not its own: a mirror passes on the
            Hub's.
    """

    address: str = ""
    files_address: str = ""
    linked_address: str = ""
    data_sets: dict[str, DataSet] = field(default_factory=dict)
    faults: list = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    downloads: list[tuple[str, str, str]] = field(default_factory=list)

    def commit(self, repository, files, ref="main"):
        """Commit files, the whole content of the data set, and move a branch or tag; returns the id."""
        data_set = self.data_sets.setdefault(repository, DataSet())
        content = b"".join(b"%s\0%s\0" % (name.encode(), data) for name, data in sorted(files.items()))
        commit = hashlib.sha1(b"%d %s" % (len(data_set.commits), content), usedforsecurity=False).hexdigest()
        data_set.commits[commit] = dict(files)
        data_set.refs[ref] = commit
        return commit

    def spoil(self, *faults):
        self.faults += faults


def git_digest(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        hub = self.server.hub
        asked = (self.path, self.headers.get("Authorization", ""), self.headers.get("Range", ""))
        (hub.downloads if self.server.has_files else hub.requests).append(asked)
        url = urlsplit(self.path)
        if self.server.has_files:
            repository, commit, name = parse_qs(url.query)["of"][0].split(" ", 2)
            return self.content(hub.data_sets[repository].commits[commit][name])
        fault = (
            hub.faults.pop(0)
            if hub.faults and hub.faults[0] not in ("truncate", "corrupt", "whole")
            else None
        )
        if fault == "drop":
            self.close_connection = True
            return self.connection.close()
        if fault == "page":
            return self.answer(200, b"<html>Sign in</html>")
        if fault is not None:
            status, headers = fault if isinstance(fault, tuple) else (fault, {})
            return self.answer(status, b"{}", headers)
        return self.route(url)

    do_HEAD = do_GET  # noqa: N815  (the server's name; the Hub's own client asks this first)

    def route(self, url):
        hub, parts = self.server.hub, url.path.split("/")
        is_api = parts[1] == "api"
        owner, name, what, revision, *rest = parts[3:] if is_api else parts[2:]
        repository, revision = f"{owner}/{name}", unquote(revision)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in ("", TOKEN):
            return self.refuse(401, "", "Invalid credentials in Authorization header")
        data_set = hub.data_sets.get(repository)
        if data_set is None or (data_set.is_private and not token):
            if token:
                return self.refuse(404, "RepoNotFound", "Repository not found")
            return self.refuse(401, "", "Invalid username or password.")
        commit = data_set.refs.get(revision, revision)
        if commit not in data_set.commits:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if what == "revision":
            return self.answer(200, json.dumps({"id": repository, "sha": commit}).encode())
        path = unquote("/".join(rest))
        if what == "tree":
            return self.tree(data_set.commits[commit], path, url)
        if data_set.is_gated:
            return self.refuse(
                403 if token else 401, "GatedRepo", f"Access to dataset {repository} is restricted"
            )
        if path not in data_set.commits[commit]:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        return self.resolve(repository, commit, path, data_set.commits[commit][path])

    def tree(self, files, folder, url):
        query = parse_qs(url.query)
        below = f"{folder}/" if folder else ""
        names = sorted(name for name in files if name.startswith(below))
        if folder and not names:
            return self.refuse(404, "EntryNotFound", f"{folder} does not exist")
        entries = {}
        for name in names:
            parts = name.removeprefix(below).split("/")
            folders = ["/".join(parts[: i + 1]) for i in range(len(parts) - 1)]
            is_deep = query["recursive"] == ["true"]
            for each in folders if is_deep else folders[:1]:
                entries[below + each] = {
                    "type": "directory",
                    "path": below + each,
                    "size": 0,
                    "oid": "0" * 40,
                }
            if is_deep or not folders:
                entries[name] = self.entry(name, files[name])
        first = int(query.get("cursor", ["0"])[0])
        page = list(entries.values())[first : first + PAGE_ENTRIES]
        headers, hub_address = {}, self.server.hub.linked_address or self.server.hub.address
        if len(entries) > first + PAGE_ENTRIES:
            after = f"recursive={query['recursive'][0]}&expand=false&cursor={first + PAGE_ENTRIES}"
            headers["Link"] = f'<{hub_address}{url.path}?{after}>; rel="next"'
        return self.answer(200, json.dumps(page).encode(), headers)

    @staticmethod
    def entry(name, data):
        found = {"type": "file", "path": name, "size": len(data), "oid": git_digest(data)}
        if len(data) >= LARGE_BYTES:
            found["oid"] = git_digest(b"a pointer to " + data)
            digest = hashlib.sha256(data).hexdigest()
            found["lfs"] = {"oid": digest, "size": len(data), "pointerSize": 130}
        return found

    def resolve(self, repository, commit, name, data):
        if len(data) < LARGE_BYTES:
            headers = {"X-Repo-Commit": commit, "ETag": f'"{git_digest(data)}"'}
            return self.content(data, headers)
        signed = (
            f"{self.server.hub.files_address}/?of={quote(f'{repository} {commit} {name}')}&signature=s3cret"
        )
        headers = {
            "Location": signed,
            "X-Repo-Commit": commit,
            "X-Linked-Size": str(len(data)),
            "X-Linked-ETag": f'"{hashlib.sha256(data).hexdigest()}"',
        }
        return self.answer(302, b"", headers)

    def content(self, data, headers=None):
        faults = self.server.hub.faults
        fault = faults.pop(0) if faults and faults[0] in ("truncate", "corrupt", "whole") else None
        first = 0
        if (asked := self.headers.get("Range")) and fault != "whole":
            first = int(asked.removeprefix("bytes=").partition("-")[0])
            headers = {**(headers or {}), "Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"}
        sent = data[first:]
        if fault == "corrupt":
            sent = bytes([sent[0] ^ 1]) + sent[1:]
        if fault != "truncate":
            return self.answer(206 if first else 200, sent, headers)
        self.answer(206 if first else 200, sent, headers, letters=len(sent) // 2)
        self.close_connection = True
        return self.connection.close()

    def refuse(self, status, code, said):
        headers = {"X-Error-Message": said, **({"X-Error-Code": code} if code else {})}
        return self.answer(status, json.dumps({"error": said}).encode(), headers)

    def answer(self, status, body, headers=None, letters=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[:letters])
            self.wfile.flush()


@contextlib.contextmanager
def running_hub():
    """Provide a Hub that answers, on two free ports: the API's and that of large files."""
    hub, servers = Hub(), [loopback.Server(("127.0.0.1", 0), Handler) for _ in range(2)]
    for server, has_files in zip(servers, (False, True), strict=True):
        server.hub, server.has_files = hub, has_files
    with loopback.running(servers[0]) as hub.address, loopback.running(servers[1]) as hub.files_address:
        yield hub

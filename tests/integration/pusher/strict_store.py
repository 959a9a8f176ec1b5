"""A strict Cloud Storage on loopback, for tests: python strict_store.py [HOST [BUCKET]]; prints its port.

The handlers are those of gcp-storage-emulator. Around them stand what it ignores (preconditions, generations,
paging) and faults on demand: POST /_faults with [{"method", "match", "kind", "skip", "times"}, ...]. Kinds:
a status code, "drop" (no answer, nothing done), "lost" (done, no answer) or "corrupt" (one wrong bit).
GET /_requests lists what was asked; PUT /_buckets/NAME makes a bucket.
"""

import io
import json
import logging
import re
import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers import buckets, objects
from gcp_storage_emulator.server import RequestHandler, Router
from gcp_storage_emulator.storage import Storage

PAGE_OBJECTS = 3
OBJECT = re.compile(r"(?:/download)?/storage/v1/b/([^/]+)/o/(.+?)(?:/(?:rewriteTo|copyTo)/b/([^/]+)/o/(.+))?")
XML_OBJECT = re.compile(r"/(?!storage/|download/|upload/|batch)([^/]+)/(.+)")  # as TensorFlow reads


class Kept(Storage):
    """The emulator's own, in memory alone: what lies there is not written out as text after each request."""

    def _write_config_to_file(self):
        pass


class Store(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host="127.0.0.1", *names):
        self.storage = Kept(use_memory_fs=True)
        for name in names:
            buckets.create_bucket(name, self.storage)
        super().__init__((host, 0), partial(Handler, self.storage))
        self.lock = threading.RLock()
        self.faults = []
        self.requests = []

    def handle_error(self, request, client_address):
        pass

    def fault_for(self, method, path):
        """The kind of fault that this request meets; None for most."""
        for fault in self.faults:
            if fault.get("method", method) != method or not re.search(fault.get("match", ""), path):
                continue
            if fault.get("skip", 0):
                fault["skip"] -= 1
            elif fault.get("times", 1):
                fault["times"] = fault.get("times", 1) - 1
                return fault["kind"]
        return None


class Handler(RequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        self.serve("GET")

    def do_POST(self):  # noqa: N802
        self.serve("POST")

    def do_PUT(self):  # noqa: N802
        self.serve("PUT")

    def do_DELETE(self):  # noqa: N802
        self.serve("DELETE")

    def serve(self, method):
        store = self.server
        body = self.body()
        if self.path.startswith("/_"):
            return self.control(method, body)
        with store.lock:
            store.requests.append(f"{method} {unquote(self.path)}")
            fault = store.fault_for(method, unquote(self.path))
        if isinstance(fault, int):
            return self.fail(fault, "injected")
        if fault == "drop":
            return self.hang_up()
        answer = self.answered(method, body)
        if fault == "lost":
            return self.hang_up()
        if fault == "corrupt":
            answer = answer[:-1] + bytes([answer[-1] ^ 1])
        self.wfile.write(answer)
        return None

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        body = b"".join(chunks)
        del self.headers["Transfer-Encoding"]
        self.headers["Content-Length"] = str(len(body))
        return body

    def hang_up(self):
        self.close_connection = True
        self.connection.close()

    def control(self, method, body):
        if self.path == "/_faults":
            self.server.faults[:] = json.loads(body)
        elif self.path.startswith("/_buckets/"):
            buckets.create_bucket(self.path.rpartition("/")[2], self.storage)
        elif method == "DELETE":
            self.server.requests.clear()
        self.send_json(200, self.server.requests)

    def answered(self, method, body):
        """The whole answer as bytes; one request at a time touches the objects."""
        reading, writing = self.rfile, self.wfile
        self.rfile, self.wfile = io.BytesIO(body), io.BytesIO()
        try:
            with self.server.lock:
                self.handled(method, body)
            return self.wfile.getvalue()
        finally:
            self.rfile, self.wfile = reading, writing

    def handled(self, method, body):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        listed = re.fullmatch(r"/storage/v1/b/([^/]+)/o", url.path)
        if listed and method == "GET":
            return self.page(listed[1], query)
        if url.path.endswith("/storageLayout"):
            layout = {"kind": "storage#storageLayout", "hierarchicalNamespace": {"enabled": False}}
            return self.send_json(200, layout)
        bucket, name = self.target(url.path, query, body)
        there = self.storage.objects.get(bucket, {}).get(name)
        generation = int(there["generation"]) if there else 0
        asked = query.get("ifGenerationMatch")
        # A resumable upload is held against it when it ends.
        if asked is not None and int(asked) != generation:
            return self.fail(412, "At least one of the pre-conditions you specified did not hold.")
        if method in ("GET", "DELETE") and query.get("generation", str(generation)) != str(generation):
            return self.fail(404, f"No such object: {bucket}/{name}")
        source = OBJECT.fullmatch(url.path)
        if source and source[3]:
            origin = self.storage.objects.get(source[1], {}).get(unquote(source[2]))
            if origin is None:
                return self.fail(404, f"No such object: {bucket}/{unquote(source[2])}")
            for key in ("ifSourceGenerationMatch", "sourceGeneration"):
                if query.get(key, origin["generation"]) != origin["generation"]:
                    return self.fail(412, "At least one of the pre-conditions you specified did not hold.")
        if query.get("uploadType") == "media" and not body:
            return self.put_nothing(bucket, name)
        begin = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if begin and there and int(begin[1]) >= int(there["size"]):
            return self.fail(416, "Request range not satisfiable")
        Router(self).handle(method)
        return None

    def target(self, path, query, body):
        """The bucket and the object that a precondition is about."""
        if path.startswith("/upload/"):
            bucket = path.split("/")[5]
            if "upload_id" in query:
                return bucket, self.storage.get_resumable_file_obj(query["upload_id"])["name"]
            if "name" in query:  # as TensorFlow names it
                return bucket, query["name"]
            text = body.split(b"\r\n\r\n", 1)[1] if query["uploadType"] == "multipart" else body
            found = json.JSONDecoder().raw_decode(text.decode("utf-8", "surrogateescape").lstrip())
            return bucket, found[0]["name"]
        found = OBJECT.fullmatch(path) or XML_OBJECT.fullmatch(path)
        if not found:
            return "", ""
        if found.re is XML_OBJECT:
            return unquote(found[1]), unquote(found[2])
        return (unquote(found[3] or found[1]), unquote(found[4] or found[2]))

    def page(self, bucket, query):
        try:
            found, folders = self.storage.get_file_list(
                bucket, query.get("prefix"), query.get("delimiter"), None
            )
        except NotFound:
            return self.fail(404, "The specified bucket does not exist.")
        named = sorted([(each["name"], each) for each in found] + [(name, None) for name in folders])
        named = [each for each in named if each[0] > query.get("pageToken", "")]
        page = named[: int(query.get("maxResults", PAGE_OBJECTS))]
        document = {
            "kind": "storage#objects",
            "items": [each for _, each in page if each],
            "prefixes": [name for name, each in page if each is None],
        }
        if len(named) > len(page):
            document["nextPageToken"] = page[-1][0]
        return self.send_json(200, document)

    def put_nothing(self, bucket, name):
        """An empty object, as TensorFlow makes for a folder; the emulator drops the connection."""
        there = objects._make_object_resource(
            f"http://{self.headers['Host']}", bucket, name, "application/octet-stream", "0"
        )
        there = objects._checksums(b"", there)
        self.storage.create_file(bucket, name, b"", there)
        self.send_json(200, there)

    def fail(self, code, message):
        return self.send_json(code, {"error": {"code": code, "message": message}})

    def send_json(self, code, document):
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    logging.disable()
    store = Store(*sys.argv[1:])
    print(store.server_address[1], flush=True)
    store.serve_forever()

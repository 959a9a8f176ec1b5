"""A Cloud Storage of its own on loopback, for tests: python object_store.py; prints its port.

It speaks what the client library uses to list and read (paging, generations, ranges, checksums), takes
objects by PUT /_objects/BUCKET/NAME, with their Content-Encoding, and spoils answers on demand: POST
/_faults with {"kind", "times"}.
Kinds: "503", "403", "drop" (no answer), "stall" (none for STALL_S), "truncate" (half of the body), "replace"
(half of it, and then another object in its place), "corrupt" (one wrong bit).
"""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c

PAGE_OBJECTS = 2
STALL_S = 3


class Store(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.buckets = {}
        self.encodings = {}
        self.generation = 1000
        self.faults = []
        self.requests = []
        self.lock = threading.Lock()

    def handle_error(self, request, client_address):
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        _, _, bucket, name = self.path.split("/", 3)
        body = self.body()
        with self.server.lock:
            self.server.generation += 1
            self.server.encodings[bucket, unquote(name)] = self.headers.get("Content-Encoding")
            self.server.buckets.setdefault(bucket, {})[unquote(name)] = (self.server.generation, body)
        self.answer(200, b"{}")

    def do_DELETE(self):
        _, _, bucket, name = self.path.split("/", 3)
        del self.server.buckets[bucket][unquote(name)]
        self.answer(200, b"{}")

    def do_POST(self):
        fault = json.loads(self.body())
        self.server.faults += [fault["kind"]] * fault["times"]
        self.answer(200, b"{}")

    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        parts = url.path.split("/")
        if parts[1] == "_requests":
            return self.answer(200, json.dumps(self.server.requests).encode())
        self.server.requests.append(f"{self.path} {self.headers.get('Range', '')}".rstrip())
        with self.server.lock:
            # The client also looks at the bucket, by itself and whenever it likes.
            is_ours = "o" in parts
            fault = self.server.faults.pop(0) if is_ours and self.server.faults else None
        if fault in ("503", "403"):
            return self.fail(int(fault), "injected")
        if fault == "stall":
            time.sleep(STALL_S)
        if fault in ("drop", "stall"):
            self.close_connection = True
            return self.connection.close()
        named = parts[parts.index("b") + 1]
        bucket = self.server.buckets.get(named)
        if bucket is None:
            return self.fail(404, "The specified bucket does not exist.")
        if parts[-1] == "o":
            return self.listing(bucket, query, lambda name: self.server.encodings.get((named, name)))
        name = unquote(parts[-1])
        return self.content(bucket, name, query, fault, self.server.encodings.get((named, name)))

    def listing(self, bucket, query, encodings):
        names = sorted(name for name in bucket if name.startswith(query.get("prefix", "")))
        names = [name for name in names if name > query.get("pageToken", "")]
        items = [
            {"name": name, "generation": str(bucket[name][0]), "size": str(len(bucket[name][1])),
             "crc32c": checksum(bucket[name][1]), "contentEncoding": encodings(name)}
            for name in names[:PAGE_OBJECTS]
        ]  # fmt: skip
        page = {"kind": "storage#objects", "items": items}
        if len(names) > PAGE_OBJECTS:
            page["nextPageToken"] = items[-1]["name"]
        return self.answer(200, json.dumps(page).encode())

    def content(self, bucket, name, query, fault, encoding):
        generation, body = bucket.get(name, (0, b""))
        if not generation or query.get("generation", str(generation)) != str(generation):
            return self.fail(404, f"No such object: {name}")
        first = 0
        if asked := self.headers.get("Range"):
            first = int(asked.removeprefix("bytes=").partition("-")[0])
        sent = body[first:]
        if fault == "corrupt":
            sent = bytes([sent[0] ^ 1]) + sent[1:]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        if encoding:  # as it is kept, since the client accepts that
            self.send_header("Content-Encoding", encoding)
        self.send_header("X-Goog-Hash", f"crc32c={checksum(body)}")
        self.send_header("X-Goog-Generation", str(generation))
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        if fault in ("truncate", "replace"):
            if fault == "replace":
                bucket[name] = (generation + 1, bytes(len(body)))
            self.wfile.write(sent[: len(sent) // 2])
            self.wfile.flush()
            self.close_connection = True
            return self.connection.close()
        self.wfile.write(sent)
        return None

    def fail(self, code, message):
        return self.answer(code, json.dumps({"error": {"code": code, "message": message}}).encode())

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def log_message(self, *args):
        pass


def checksum(data):
    return base64.b64encode(google_crc32c.Checksum(data).digest()).decode()


if __name__ == "__main__":
    store = Store()
    print(store.server_address[1], flush=True)
    store.serve_forever()

"""An S3 on loopback, for tests: python s3_store.py; prints its port.

It is Moto's server, one request at a time, because its conditional writes are not atomic by themselves.
Faults on demand: POST /_faults with [{"method", "match", "kind", "skip", "times"}, ...]. Kinds: a status
code, "lost" (done, answered with 500), "unconditional" (If-None-Match and If-Match are ignored) or
"no If-Match" (only that one is).
GET /_requests lists what was asked, DELETE /_requests forgets it.
"""

import json
import logging
import re
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response


class Store:
    def __init__(self):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.faults = []
        self.requests = []

    def __call__(self, environ, start_response):
        request = Request(environ)
        if request.path.startswith("/_"):
            return self.control(request)(environ, start_response)
        with self.lock:
            self.requests.append(f"{request.method} {request.path}")
            fault = self.fault_for(request.method, request.path)
            if isinstance(fault, int):
                return Response("injected", fault)(environ, start_response)
            if fault == "unconditional":
                environ.pop("HTTP_IF_NONE_MATCH", None)
            if fault in ("unconditional", "no If-Match"):
                environ.pop("HTTP_IF_MATCH", None)
            if fault == "lost":
                list(self.moto(environ, lambda *_: None))
                return Response("injected", 500)(environ, start_response)
            return list(self.moto(environ, start_response))

    def control(self, request):
        if request.path == "/_faults":
            self.faults[:] = request.get_json()
        elif request.method == "DELETE":
            self.requests.clear()
        return Response(json.dumps(self.requests), content_type="application/json")

    def fault_for(self, method, path):
        for fault in self.faults:
            if fault.get("method", method) != method or not re.search(fault.get("match", ""), path):
                continue
            if fault.get("skip", 0):
                fault["skip"] -= 1
            elif fault.get("times", 1):
                fault["times"] = fault.get("times", 1) - 1
                return fault["kind"]
        return None


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_, **__):
        pass


if __name__ == "__main__":
    logging.disable()
    server = make_server("127.0.0.1", 0, Store(), threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()

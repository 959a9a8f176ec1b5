"""As much of Dataflow's API as a submission needs, on loopback; each job is done as soon as it is there.

A request that is none of the published type is refused, as the service does.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import loopback
from google.cloud import dataflow


class Service(loopback.Server):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.jobs = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(loopback.JsonAnswers, BaseHTTPRequestHandler):
    def do_POST(self):
        job = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            dataflow.Job.from_json(job, ignore_unknown_fields=False)
        except Exception as error:
            return self.answer(400, {"error": {"code": 400, "message": str(error)}})
        path = urlsplit(self.path).path.split("/")
        where = {"projectId": path[path.index("projects") + 1], "location": path[path.index("locations") + 1]}
        self.server.jobs.append({**json.loads(job), **where})
        return self.answer(
            200, {"id": f"job-{len(self.server.jobs)}", "currentState": "JOB_STATE_DONE", **where}
        )

    def do_GET(self):
        self.answer(200, {"currentState": "JOB_STATE_DONE"})

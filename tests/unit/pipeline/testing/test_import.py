"""`slipway.pipeline.testing` costs nothing before one of its functions is called."""

import json
import subprocess
import sys


def test_importing_it_imports_no_tfx(project):
    look = "import json, sys, slipway.pipeline.testing; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", look], cwd=project, capture_output=True, check=True)
    assert not {"tfx", "tensorflow", "apache_beam", "keras"}.intersection(json.loads(done.stdout))

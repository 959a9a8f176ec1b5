# Types of what __init__.py resolves by name.
from slipway.pipeline.commands.load_from_python import Loaded as Loaded
from slipway.pipeline.commands.load_from_python import load as load
from slipway.pipeline.commands.run_from_python import RunFailedError as RunFailedError
from slipway.pipeline.commands.run_from_python import RunResult as RunResult
from slipway.pipeline.commands.run_from_python import run as run
from slipway.pipeline.engine.processes.warm import Warm as Warm

class OtherNameError(ImportError):
    def __init__(self, package: str) -> None: ...

def refuse_other_name(name: str) -> None: ...

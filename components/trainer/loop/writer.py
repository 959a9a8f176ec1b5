"""Writes checkpoints beside the training, one at a time and in order."""

import threading

from components.trainer.checkpoint import Checkpoint, CheckpointFolder


class CheckpointWriter:
    """Writes in a thread of its own, so that the device does not wait for the disk.

    Args:
        folder: takes the checkpoints.
    """

    def __init__(self, folder: CheckpointFolder) -> None:
        self._folder = folder
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def write(self, checkpoint: Checkpoint) -> None:
        """Begins to write; first waits for the one before, so that at most one more is held in memory.

        Args:
            checkpoint: its arrays must not change any more.

        Raises:
            ComponentError: the one before could not be written.
        """
        self.finish()
        # Not a daemon: the process must not end in the middle of a file that was asked for.
        self._thread = threading.Thread(target=self._write, args=(checkpoint,), name="checkpoint")
        self._thread.start()

    def finish(self) -> None:
        """Waits until all is written.

        Raises:
            ComponentError: it could not be written.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _write(self, checkpoint: Checkpoint) -> None:
        try:
            self._folder.save(checkpoint)
        except BaseException as error:  # told where the training can be stopped
            self._error = error

"""A gate before files: a worker that comes to one of them waits there until it is opened. A run is in its midst for as
long as a test likes, on a fast machine and on a slow one."""

from pathlib import Path

_LINES = """
import pathlib, time
import workers.reading
read, closed = workers.reading.RootReader.read, pathlib.Path({closed!r})
def gated(self, relative):
    while {before!r} in relative and closed.exists():
        time.sleep(0.01)
    return read(self, relative)
workers.reading.RootReader.read = gated
"""


class Gate:
    """Closed from the start, for processes that have its `environ`, before files whose names hold `before`."""

    def __init__(self, where: Path, *, before: str = "") -> None:
        self._folder = where / "gate"
        self._folder.mkdir()
        self._closed = self._folder / "closed"
        self._closed.touch()
        (self._folder / "sitecustomize.py").write_text(
            _LINES.format(closed=str(self._closed), before=before), encoding="utf-8"
        )

    @property
    def environ(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self._folder)}

    def open(self) -> None:
        """For all who wait, until it is closed again."""
        self._closed.unlink(missing_ok=True)

    def close(self) -> None:
        self._closed.touch()

"""Looks at the processes and files of a service every few seconds, in a thread of its own (Linux: /proc)."""

import http.client
import math
import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from bench.soak_beside import Beside
from bench.soak_plan import Plan, ProcessSample, Sample
from bench.soak_service import Soaking
from tests.support.prometheus import Exported, parsed

MB = 1e6
NAN = math.nan


def process_sample(pid: int) -> ProcessSample | None:
    """None: it is gone."""
    folder = Path(f"/proc/{pid}")
    try:
        sizes = _kilobytes(folder / "smaps_rollup")
        threads = _kilobytes(folder / "status")["Threads"]
        descriptors = sum(1 for _ in (folder / "fd").iterdir())
    except (OSError, KeyError):
        return None
    megabytes = [round(sizes[name] * 1024 / MB, 3) for name in ("Rss", "Pss", "Anonymous")]
    return ProcessSample(pid, megabytes[0], megabytes[1], megabytes[2], descriptors, threads)


def _kilobytes(path: Path) -> dict[str, int]:
    """Numbers of a file of /proc by their names."""
    fields = [line.split() for line in path.read_text(encoding="ascii", errors="replace").splitlines()]
    return {field[0].rstrip(":"): int(field[1]) for field in fields if len(field) > 1 and field[1].isdecimal()}


def megabytes_of(path: Path) -> float:
    """By stat alone: a file of a store is never opened beside SQLite."""
    try:
        return path.stat().st_size / MB
    except OSError:
        return 0.0


def pressure_s() -> float:
    """For how long so far something has waited for a processor; NaN where the system does not tell."""
    try:
        line = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    except (OSError, IndexError):
        return NAN
    return int(line.rpartition("total=")[2]) / 1e6


class Sampler(Beside):
    """Samples until stopped."""

    def __init__(self, it: Soaking, plan: Plan, began_s: float) -> None:
        super().__init__("sampler")
        self._it = it
        self._plan = plan
        self._began_s = began_s
        self._waited_s = (time.monotonic(), pressure_s())
        self.samples: list[Sample] = []

    def run(self) -> None:
        number = 0
        while not self._over.wait(max(0.0, self._began_s + number * self._plan.sample_every_s - time.monotonic())):
            self.samples.append(self._sample())
            number = int((time.monotonic() - self._began_s) / self._plan.sample_every_s) + 1

    def _sample(self) -> Sample:
        at_s = time.monotonic() - self._began_s
        self._it.model.requests.clear()  # what it was sent is of no use here, and would fill this process
        layout = self._it.service.layout
        found = {name: process_sample(pid) for name, pid in self._it.pids().items()}
        queue_mb, queue_pid = self._queue()
        found |= {"queue": process_sample(queue_pid)} if queue_pid else {}
        told = self._told()
        return Sample(
            round(at_s, 2),
            {name: sample for name, sample in found.items() if sample is not None},
            megabytes_of(layout.database.with_name("knowledge.db-wal")),
            megabytes_of(layout.state.with_name("state.db-wal")),
            megabytes_of(layout.database),
            megabytes_of(layout.state),
            round(shutil.disk_usage(layout.home).free / MB),
            queue_mb,
            _value(told, "knowledge_queue_jobs", stage="check") + _value(told, "knowledge_queue_jobs", stage="write"),
            _value(told, "knowledge_dead_vectors_ratio"),
            self._pressure(),
        )

    def _queue(self) -> tuple[float, int]:
        """Memory that it uses for data, and its process; NaN and 0 while it is away."""
        try:
            with closing(self._it.queue_client()) as client:
                told: Any = client.info()
                return int(told["used_memory"]) / MB, int(told["process_id"])
        except RedisError:
            return NAN, 0

    def _told(self) -> Exported | None:
        """What the service itself tells; it looks every five seconds."""
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self._it.port, timeout=5)) as connection:
                connection.request("GET", "/metrics")
                return parsed(connection.getresponse().read().decode())
        except OSError:
            return None

    def _pressure(self) -> float:
        before_s, waited_s = self._waited_s
        self._waited_s = (time.monotonic(), pressure_s())
        passed_s = self._waited_s[0] - before_s
        return round((self._waited_s[1] - waited_s) / passed_s, 3) if passed_s > 0.01 else NAN


def _value(told: Exported | None, name: str, **labels: str) -> float:
    if told is None:
        return NAN
    return told.samples.get((name, frozenset(labels.items())), NAN)

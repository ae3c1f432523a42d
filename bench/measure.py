"""Running a command as a whole process tree and accounting for all of it (Linux: /proc and getrusage)."""

import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """One finished run: wall and CPU of all its processes in seconds, the peak of their memory in bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    exit_status: int
    output: str


def run_command(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None) -> Sample:
    """Run a command to its end. Memory is the sum of the proportional set sizes of the tree, sampled. `environment`
    stands in place of this process's own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watch = _MemoryWatch(process.pid)
    watch.start()
    output, _ = process.communicate()
    wall_s = time.perf_counter() - began
    watch.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Sample(wall_s, cpu_s, watch.peak_bytes, process.returncode, output)


def median_of(samples: Sequence[Sample], value: Callable[[Sample], float]) -> float:
    return statistics.median(value(sample) for sample in samples)


def python_command(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def knowledge_command(*arguments: str) -> list[str]:
    """The installed command of the environment that runs the benchmark."""
    return [str(Path(sys.executable).with_name("knowledge")), *arguments]


def own_configuration(directory: Path) -> None:
    """So that none above the folder counts; the index is made in `knowledge/default` below it, as without any."""
    (directory / "knowledge.yaml").write_text("knowledge:\n  identity: default\n", encoding="utf-8")


class _MemoryWatch(threading.Thread):
    """Samples the memory of a process and its descendants until stopped."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._over.wait(SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, sum(_pss_bytes(pid) for pid in _tree(self._pid)))

    def stop(self) -> None:
        self._over.set()
        self.join()


def _tree(pid: int) -> list[int]:
    """A process and its descendants; those that vanish meanwhile are left out."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208
                children = Path(f"/proc/{parent}/task/{task}/children").read_text(encoding="ascii")
                found.extend(int(child) for child in children.split())
        except OSError:
            continue
    return found


def _pss_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return 0
    return 0

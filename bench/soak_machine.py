"""What a soak was run on, without any name or place of the machine."""

import os
import platform
import subprocess
from pathlib import Path

from scheduler.queue.embedded import server_program
from store import driver


def machine() -> dict[str, str]:
    with driver.connect(":memory:", uri=False, timeout_s=5) as connection:
        (sqlite,) = connection.execute("SELECT sqlite_version()").fetchone()
    valkey = subprocess.run([server_program(), "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "processors": str(os.cpu_count()),
        "memory": memory(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}",
        "Python": platform.python_version(),
        "SQLite": str(sqlite),
        "Valkey": next((word[2:] for word in valkey.split() if word.startswith("v=")), "?"),
    }


def memory() -> str:
    try:
        first = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return "?"
    return f"{int(first.split()[1]) / 1e6:.0f} GB"

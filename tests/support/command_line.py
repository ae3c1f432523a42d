"""The installed command in a process of its own, with an environment of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.signals import sigint

COMMAND = (sys.executable, "-P", "-m", "cli.main")  # -P: a folder `app` below the working directory is none of ours


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command has ended."""

    status: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Runs commands in one directory; HOME is that directory, nothing else of this machine is seen."""

    cwd: Path
    environ: dict[str, str] = field(default_factory=dict)
    within_s: float = 60.0  # no command takes so long, but on a machine that does much else

    def __call__(self, *arguments: str, cwd: Path | None = None, **variables: str) -> Ended:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=cwd or self.cwd,
            env=self.environment(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=self.within_s,
        )
        return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, *arguments: str, ignores_sigint: bool = False) -> "subprocess.Popen[bytes]":
        with sigint(ignored=ignores_sigint):
            return subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=self.cwd,
                env=self.environment({}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        return {
            **measured,
            "HOME": str(self.cwd),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **self.environ,
            **variables,
        }


def write_files(folder: Path, texts: dict[str, str | bytes]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

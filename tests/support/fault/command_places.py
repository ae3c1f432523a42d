"""Places in which the real command is run, what is made of them first, and the commands that meet faults there."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from domain.layout import BaseLayout
from tests.support.command_line import CommandLine, Ended, write_files
from tests.support.fault.scenarios import NO_DATABASE
from tests.support.old_stores import OLD
from tests.support.vector_runs import tree_of

TEXTS = tree_of(14, 2)
EDITED = {"00/000.md": "# Another\n\nwords of its own\n", "00/003.md": "# Less\n", "new.md": "# New\n\nnewly written\n"}
CONFIGURATION = """knowledge:
  identity: trial
  directory: home
  paths: [docs/]
  queue: {files_per_job: 4}
"""
EMBEDDINGS = "  embeddings: {{base_url: {url}, model: m, batch: 8, timeout: 120s}}\n"
BACKUP = "earlier.tar"
MOST_S = 250.0  # of one command, on a machine that has fifty others to do

# coverage writes files of its own at the end, which a limit would refuse it, and takes memory that a limit counts
UNMEASURED = {"COVERAGE_PROCESS_CONFIG": "", "COVERAGE_PROCESS_START": ""}


class Place(NamedTuple):
    """Where commands are run: a configuration, its documents, its base."""

    where: Path
    line: CommandLine

    @property
    def home(self) -> Path:
        return self.where / "home"

    @property
    def docs(self) -> Path:
        return self.where / "docs"

    @property
    def database(self) -> Path:
        return BaseLayout(self.home).database


def place_in(scratch: Path) -> Place:
    temporary = scratch / "tmp"
    temporary.mkdir(exist_ok=True)
    return Place(scratch / "work", CommandLine(scratch / "work", {"TMPDIR": str(temporary), **UNMEASURED}))


def make_template(place: Place, url: str = "", *, has_backup: bool = True) -> Path:
    """A place with an index and a backup of it, with vectors from a server or, without one, for words alone; returned,
    and gone from where it was."""
    place.where.mkdir()
    (place.where / "knowledge.yaml").write_text(CONFIGURATION + (EMBEDDINGS.format(url=url) if url else ""))
    write_files(place.docs, dict(TEXTS))
    for words in (("index", "--workers", "0", "--quiet"), *([("backup", BACKUP)] if has_backup else [])):
        done = run_command(place, words)
        if done.status:
            raise AssertionError(f"{words}: {done.status}\n{done.err}")
    template = place.where.with_name("template")
    shutil.move(place.where, template)
    return template


def nothing(place: Place) -> None:
    """The base as it was built, over the same files."""


def edited(place: Place) -> None:
    write_files(place.docs, dict(EDITED))
    (place.docs / "01/013.md").unlink(missing_ok=True)


def without_index(place: Place) -> None:
    shutil.rmtree(place.home)


def of_old_format(place: Place) -> None:
    OLD["a column less"](place.database)


def no_database(place: Place) -> None:
    place.database.write_bytes(NO_DATABASE * 400)


class Action(NamedTuple):
    """What is made of a place first, and the command that meets the fault."""

    words: tuple[str, ...]
    prepare: Callable[[Place], None] = nothing
    part: str = "home"  # of the place, whose files are concerned
    again: tuple[int, ...] = (0,)  # how the same command may end when it is run again
    gone_text: bytes = b""  # which is in no file of the home then


INDEX = ("index", "--quiet", "--allow-mass-delete")
ACTIONS = {
    "index-first": Action((*INDEX, "--workers", "0"), without_index),
    "index": Action((*INDEX, "--workers", "0"), edited),
    "index-workers": Action((*INDEX, "--workers", "1"), edited),
    "rehash": Action((*INDEX, "--rehash", "--workers", "0"), edited),
    "reindex": Action((*INDEX, "--reindex", "--re-embed", "--workers", "0")),
    "rm": Action(("rm", "docs/00/"), again=(0, 4)),
    "purge": Action(("rm", "--purge", "docs/00/"), again=(0, 4), gone_text=b"of file 0, about matter"),
    "reset": Action(("reset", "--force")),
    "reset-no-database": Action(("reset", "--force"), no_database),
    "rebuild": Action(("rebuild",)),
    "compact": Action(("compact",)),
    "verify": Action(("verify", "--deep")),
    "backup": Action(("backup", "--force", "out/b.tar"), part="out"),
    "restore": Action(("restore", "--force", BACKUP), edited),
    "upgrade": Action(("upgrade",), of_old_format),
}


def lay_out(place: Place, template: Path, action: Action) -> None:
    shutil.rmtree(place.where, ignore_errors=True)
    shutil.copytree(template, place.where)
    (place.where / "out").mkdir()
    action.prepare(place)


def run_command(place: Place, words: Sequence[str]) -> Ended:
    return run_with(place, words, {})[0]


def run_with(place: Place, words: Sequence[str], environ: Mapping[str, str]) -> tuple[Ended, int]:
    process = replace(place.line, environ={**place.line.environ, **environ}).start(*words)
    try:
        out, err = process.communicate(timeout=MOST_S)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return Ended(process.returncode, out.decode(errors="replace"), err.decode(errors="replace")), process.pid


_LIMITED = (
    "import os, resource, sys\n"
    "kind, most = getattr(resource, sys.argv[1]), int(sys.argv[2])\n"
    "resource.setrlimit(kind, (most, most))\n"
    "os.execv(sys.executable, [sys.executable, '-P', '-m', 'cli.main', *sys.argv[3:]])\n"
)


def run_limited(place: Place, words: Sequence[str], limit: str, most: int) -> Ended:
    """The command under a limit of the system, RLIMIT_FSIZE or RLIMIT_AS, in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, limit, str(most), *words],
        cwd=place.where,
        env=place.line.environment({}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=MOST_S,
    )
    return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

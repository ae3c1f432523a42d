"""Flipped bits and cut files: refused, or answered right, or found by `verify`; never a crash or a hang (T30).

Run in a child process, so that a crash of SQLite itself is a failed test and not the end of all.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

from app import maintenance
from domain.errors import KnowledgeError
from domain.settings import Settings
from store.port import Visibility
from store.sqlite import SqliteStore
from tests.support.bases import build_base, layout_of
from tests.support.scratch import scratch_directory

PROJECT = Path(__file__).parents[2]
FLIPS, CUTS = 300, 20
EVERYTHING = Visibility.everything()


def test_no_flipped_bit_ends_in_a_crash_or_a_silent_error() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.integration.test_store_bit_flips"],
        capture_output=True, text=True, timeout=110, check=False, cwd=PROJECT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert told["silent"] == []
    assert told["unexpected"] == []
    assert told["refused"] + told["found"] > FLIPS / 10  # the flips do reach what is read
    assert told["tried"] == FLIPS + CUTS


def answers(path: Path) -> dict[str, str | None]:
    """What a reader is told of everything that is stored."""
    store = SqliteStore(path, base_id=None)
    try:
        snapshot = store.reader()
        snapshot.identity()
        told: dict[str, str | None] = {}
        for document in snapshot.documents("", visibility=EVERYTHING):
            chunks = snapshot.chunks(document.key, visibility=EVERYTHING)
            whole = snapshot.text(document.key, visibility=EVERYTHING)
            told[document.key] = f"{document.title}|{[chunk.body for chunk in chunks]}|{whole}"
        list(snapshot.stored_files(""))
        snapshot.counts(visibility=EVERYTHING)
        return told
    finally:
        store.close()


def try_all() -> dict[str, object]:
    rolls = random.Random(20)
    told: dict[str, list[str] | int] = {"silent": [], "unexpected": [], "refused": 0, "found": 0, "tried": 0}
    with scratch_directory() as scratch:
        settings = build_base(scratch)
        path = layout_of(settings).database
        sound, right = path.read_bytes(), answers(path)
        for number in range(FLIPS + CUTS):
            if number < FLIPS:
                at, bit = rolls.randrange(len(sound)), rolls.randrange(8)
                name = f"bit {bit} of {at}"
                broken = sound[:at] + bytes([sound[at] ^ (1 << bit)]) + sound[at + 1 :]
            else:
                length = rolls.randrange(1, len(sound))
                name, broken = f"cut at {length}", sound[:length]
            for sidecar in path.parent.glob("knowledge.db-*"):
                sidecar.unlink()
            path.write_bytes(broken)
            outcome = _try(settings, path, right)
            told["tried"] = number + 1
            found = told.get(outcome)
            if isinstance(found, int):
                told[outcome] = found + 1
            elif outcome != "right":
                kind = "silent" if outcome == "silent" else "unexpected"
                entry = told[kind]
                assert isinstance(entry, list)
                entry.append(f"{name}: {outcome}")
    return dict(told)


def _try(settings: Settings, path: Path, right: dict[str, str | None]) -> str:
    try:
        answered = answers(path)
    except KnowledgeError:
        answered = None
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"reading: {type(error).__name__}: {error}"
    try:
        is_found = maintenance.verify(settings, deep=True).exit_status != 0
    except KnowledgeError:
        is_found = True
    except Exception as error:  # noqa: BLE001
        return f"verify: {type(error).__name__}: {error}"
    if answered is None:
        return "refused"
    if answered == right:
        return "right"
    return "found" if is_found else "silent"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(try_all()))

"""Whatever is given to `restore`: an index that can be read, or words, with nothing made (T30, P32)."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from app.backing_up import back_up, restore
from app.wiring import readable_base
from domain.errors import IntegrityError
from domain.settings import Settings
from store.port import Visibility
from tests.support.bases import build_base, settings_of
from tests.support.depth import scaled
from tests.support.figures import NoteFigure
from tests.support.fuzz_tars import backup
from tests.support.fuzz_trying import ASKED, Trial, chooser, told
from tests.support.scratch import scratch_directory

INPUTS = scaled(150, ASKED)
EMPTY = {"knowledge.lock", "CACHEDIR.TAG", ".gitignore"}  # of a home that was made for it and holds no index


@pytest.fixture(scope="module")
def sound() -> Iterator[bytes]:
    """The bytes of a backup."""
    with scratch_directory() as place:
        back_up(build_base(place), place / "b.tar", force=False)
        yield (place / "b.tar").read_bytes()


def read_all(settings: Settings) -> None:
    """What came back, document by document; a database that is not whole may refuse it."""
    with readable_base(settings) as base, base.store.snapshot() as snapshot:
        for document in snapshot.documents("", visibility=Visibility.everything()):
            snapshot.text(document.key, visibility=Visibility.everything())
        base.state.roots()
        list(base.state.runs())


def restored(settings: Settings, path: Path) -> None:
    try:
        restore(settings, path, force=False)
    except IntegrityError as error:  # of the backup: what is done about an index would harm the one that there is
        assert str(path) in error.message and "reset" not in error.hint, error
        raise


def outcome(place: Path, raw: bytes) -> str:
    """After a refusal there is no index, where there was none, and nothing of one that was begun."""
    path, settings = place / "b.tar", settings_of(place / "home")
    path.write_bytes(raw)
    try:
        done = told(lambda: restored(settings, path), "restored")
        if done != "restored":
            left = [one.name for one in settings.home.iterdir()] if settings.home.exists() else []
            assert set(left) <= EMPTY, left
            return done
        return f"restored, {told(lambda: read_all(settings), 'and read')}"
    finally:
        shutil.rmtree(settings.home, ignore_errors=True)
        path.unlink()


def test_whatever_is_given_to_restore_is_an_index_or_is_refused(note_figure: NoteFigure, sound: bytes) -> None:
    """P32, T30: tars, manifests and databases that were changed, with hashes that were made right again."""
    trial = Trial("backups")
    with scratch_directory() as place:
        for number in range(INPUTS):
            raw = backup(chooser("backups", number), sound)
            trial.take(f"{number}: {len(raw)} bytes", partial(outcome, place, raw))
    note_figure(trial.figure(("P32", "T30"), "backups that are given to restore"))
    assert trial.faults == [], trial.report()
    assert trial.outcomes["restored, and read"] > 0 and trial.outcomes["refused (integrity)"] > INPUTS // 20

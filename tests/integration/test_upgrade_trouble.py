"""What an upgrade says of the disk and of the old index where not all is well (S0-57, R3, R37)."""

from pathlib import Path

import pytest

from app import upgrade_staging
from app.indexing import Running
from app.present_upgrade import upgrade_text
from app.progress import RunProgress
from app.run_ending import EndedRun
from app.upgrade_report import UpgradeReport, UpgradeRequest, UpgradeStatus
from app.upgrading import upgrade
from domain.errors import DiskFullError
from domain.layout import sidecars
from domain.status import Tier, TierKind
from store import files
from tests.support.old_stores import OLD, by
from tests.support.runs import Base, base_in, nothing_left
from tests.support.trees import make_tree

TEXTS: dict[str, str | bytes] = {f"{name}.md": f"# {name}\n\nwords of {name}\n" for name in ("a", "b", "c")}
MANY = {f"m{index:03}.md": f"# File {index}\n\nmatter {index}\n" for index in range(400)}


@pytest.fixture
def base(tmp_path: Path) -> Base:
    made = base_in(tmp_path)
    made.index(make_tree(tmp_path / "docs", TEXTS))
    return made


def upgraded(base: Base, progress: RunProgress | None = None, **request: bool) -> UpgradeReport:
    with nothing_left(base):
        return upgrade(base.settings, UpgradeRequest(worker_processes=0, **request), progress or RunProgress())


def test_the_room_that_is_asked_for_is_enough(base: Base, tmp_path: Path) -> None:
    """What an upgrade takes on the disk at its highest, the log of the new index included, is what it has foreseen."""
    make_tree(tmp_path / "docs", MANY)
    base.index()
    OLD["only its number"](base.layout.database)
    foreseen = upgraded(base, dry_run=True)
    old_bytes = base.layout.database.stat().st_size
    staged = sidecars(base.layout.upgrading.database)[:2]
    highest = 0

    class Measuring(RunProgress):
        def __setattr__(self, name: str, value: object) -> None:
            nonlocal highest
            super().__setattr__(name, value)
            highest = max(highest, sum(path.stat().st_size for path in staged if path.exists()))

    report = upgraded(base, Measuring())
    assert (report.status, report.needed_bytes, report.free_bytes) == (UpgradeStatus.UPGRADED, None, None)
    assert foreseen.needed_bytes is not None
    assert old_bytes < highest < foreseen.needed_bytes - upgrade_staging.RECORD_BYTES


def test_no_room(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    OLD["only its number"](base.layout.database)
    monkeypatch.setattr(files, "free_bytes", lambda path: 1000)
    with pytest.raises(DiskFullError, match="are needed"):
        upgraded(base)
    assert not base.layout.upgrade_staging.exists()
    assert "1.0 kB free - not enough" in upgrade_text(upgraded(base, dry_run=True), Tier(TierKind.LEXICAL))
    monkeypatch.undo()
    assert upgraded(base).status is UpgradeStatus.UPGRADED


def test_documents_that_the_old_index_does_not_tell(base: Base) -> None:
    """What cannot be compared is no document that is there: how many there are is told, or that nobody knows."""
    by(
        "CREATE TABLE d AS SELECT * FROM documents",
        "DROP TABLE documents",
        "ALTER TABLE d RENAME TO documents",
        "UPDATE documents SET key = CAST(key AS BLOB) WHERE key = 'docs/a.md'",
    )(base.layout.database)
    report = upgraded(base)
    assert report.missing == (0, (), 1)
    assert "not compared: 1 document, which cannot be read in it" in upgrade_text(report, Tier(TierKind.LEXICAL))
    OLD["documents of another name"](base.layout.database)
    report = upgraded(base)
    assert report.missing == (0, (), None)
    assert "not compared: what the old index held" in upgrade_text(report, Tier(TierKind.LEXICAL))


def test_a_disk_that_fills_up_meanwhile(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-57, R37: the error says that nothing is lost, and what brings the upgrade to its end."""
    OLD["only its number"](base.layout.database)
    before = base.layout.database.read_bytes()

    def full(_running: Running) -> EndedRun:
        raise DiskFullError("no space left to write it", hint="free some space")

    monkeypatch.setattr("app.upgrading.carry_out", full)
    with pytest.raises(DiskFullError) as caught:
        upgraded(base)
    assert caught.value.hint == (
        "free some space; the old index is as it was; run `knowledge upgrade` again: it goes on"
    )
    assert base.layout.database.read_bytes() == before
    assert base.last_run()[:2] == ("failed", "disk_full")
    monkeypatch.undo()
    assert upgraded(base).is_continued

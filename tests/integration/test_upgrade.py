"""`knowledge upgrade`: an index of another format made anew beside the old one, and what holds it back (S0-57, R3)."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from app import maintenance
from app.consistency import is_older_than_recorded
from app.doctor import diagnose
from app.indexing import Running, carry_out
from app.progress import RunProgress
from app.run_ending import EndedRun
from app.upgrade_report import UpgradeReport, UpgradeRequest, UpgradeStatus
from app.upgrading import upgrade
from app.wiring import readable_base, writable_base
from domain.checks import CheckState
from domain.errors import (
    BaseMismatchError,
    FormatError,
    IntegrityError,
    KnowledgeError,
    LockedError,
    NotBuiltError,
)
from domain.settings import RootSettings, Settings
from store import format_gate
from store.connection import open_reader
from store.lock import WriteLock
from tests.support.audit import audit
from tests.support.backups import listing
from tests.support.old_stores import FORMAT_1_FINGERPRINT, OLD, by, rows_of
from tests.support.runs import Base, base_in, nothing_left
from tests.support.trees import make_tree
from workers.reading import RootReader

TEXTS: dict[str, str | bytes] = {
    "a.md": "# Alpha\n\nthe quick brown fox\n",
    "b.md": "# Beta\n\nlazy dogs sleep\n\n## More\n\nof rivers\n",
    "sub/c.txt": "plain words of a third file\n",
}
KEYS = ["docs/a.md", "docs/b.md", "docs/sub/c.txt"]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", TEXTS)


@pytest.fixture
def base(tmp_path: Path, docs: Path) -> Base:
    """An indexed base without a configuration."""
    made = base_in(tmp_path)
    made.index(docs)
    return made


def upgraded(base: Base, progress: RunProgress | None = None, **request: bool) -> UpgradeReport:
    with nothing_left(base):
        return upgrade(base.settings, UpgradeRequest(worker_processes=0, **request), progress or RunProgress())


def many(folder: Path, number: int) -> None:
    make_tree(folder, {f"m{index:03}.md": f"# File {index}\n\nmatter {index}\n" for index in range(number)})


def check_of(settings: Settings, name: str) -> CheckState:
    return next(result.state for result in diagnose(settings) if result.name == name)


@pytest.mark.parametrize("kind", list(OLD))
def test_an_old_index_of_any_shape(base: Base, kind: str) -> None:
    """S0-57: what the gate refuses is made anew, whole, under the same base and with a generation of its own (R25)."""
    content, generation = base.content(), base.rows("SELECT value FROM meta WHERE key = 'generation'")
    uuid = base.rows("SELECT value FROM meta WHERE key = 'store_uuid'")
    OLD[kind](base.layout.database)
    with pytest.raises(FormatError) as caught, readable_base(base.settings):
        pass
    assert caught.value.hint.index("knowledge upgrade") < caught.value.hint.index("knowledge reset")
    report = upgraded(base)
    assert report.status is UpgradeStatus.UPGRADED
    assert report.exit_status == 0
    assert report.documents_before == (None if "another name" in kind else 3)
    assert base.content() == content
    assert base.found("rivers") == ["docs/b.md"]
    assert audit(base.layout.database) == []
    assert maintenance.verify(base.settings, deep=True).exit_status == 0
    assert int(base.rows("SELECT value FROM meta WHERE key = 'generation'")[0][0]) > int(generation[0][0])
    assert base.rows("SELECT value FROM meta WHERE key = 'store_uuid'") != uuid
    assert sorted(path.name for path in base.layout.home.iterdir() if path.is_dir()) in ([], ["spool"])
    assert base.index().counts == {"unchanged": 3}


def test_format_1_is_what_the_program_of_that_time_wrote(base: Base) -> None:
    OLD["format 1"](base.layout.database)
    with closing(open_reader(base.layout.database)) as connection:
        assert format_gate.fingerprint(connection) == FORMAT_1_FINGERPRINT
        assert format_gate.meta_rows(connection)["format_version"] == "1"


def test_the_history_has_the_run(base: Base) -> None:
    OLD["only its number"](base.layout.database)
    report = upgraded(base)
    with base.state() as state:
        run = state.runs(1)[0]
        assert (run.kind, run.state, run.counts, run.full) == ("upgrade", "done", {"added": 3}, True)
        assert [root.last_full_generation for root in state.roots()] == [run.generation]
    assert report.index is not None
    assert check_of(base.settings, "index_consistent") is CheckState.PASS
    with readable_base(base.settings) as opened:
        assert opened.store.reader().identity().complete_ns is not None


def test_nothing_to_do(base: Base) -> None:
    before = base.layout.database.read_bytes()
    base.layout.upgrade_staging.mkdir(mode=0o700)
    assert check_of(base.settings, "upgrade") is CheckState.FAIL
    report = upgraded(base)
    assert (report.status, report.exit_status) == (UpgradeStatus.CURRENT, 0)
    assert base.layout.database.read_bytes() == before
    assert not base.layout.upgrade_staging.exists()
    assert check_of(base.settings, "upgrade") is CheckState.PASS


def test_a_dry_run_writes_nothing(base: Base) -> None:
    OLD["a column less"](base.layout.database)
    before = listing(base.layout.home)
    report = upgraded(base, dry_run=True)
    assert (report.status, report.documents_before, report.exit_status) == (UpgradeStatus.POSSIBLE, 3, 0)
    assert report.needed_bytes is not None and report.free_bytes is not None
    assert 0 < report.needed_bytes < report.free_bytes
    assert listing(base.layout.home) == before
    with base.state() as state:
        assert [run.kind for run in state.runs()] == ["index"]


def test_what_an_upgrade_refuses(base: Base, tmp_path: Path) -> None:
    """Not built 10, newer 12, of another base 12, of another program 12, damaged 13; nothing is changed."""
    with pytest.raises(NotBuiltError):
        upgraded(base_in(tmp_path / "nowhere"))
    good = base.layout.database.read_bytes()
    cases: list[tuple[bytes | None, tuple[str, ...], str | None, type[KnowledgeError], str]] = [
        (None, (), "3", FormatError, "upgrade this program"),
        (None, ("UPDATE meta SET value = 'other' WHERE key = 'base_id'",), "1", BaseMismatchError, "another base"),
        (None, ("DELETE FROM meta WHERE key = 'base_id'",), "1", FormatError, "reset"),
        (None, ("DELETE FROM meta WHERE key = 'commit_seq'",), None, IntegrityError, "commit_seq"),
        (b"no database " * 100, (), None, IntegrityError, "damaged"),
    ]
    for content, statements, version, error, words in cases:
        base.layout.database.write_bytes(content or good)
        if content is None:
            by(*statements, version=version)(base.layout.database)
        before = base.layout.database.read_bytes()
        with pytest.raises(error) as caught:
            upgraded(base)
        assert words in caught.value.message + caught.value.hint
        assert base.layout.database.read_bytes() == before
        assert not base.layout.upgrade_staging.exists()


def test_an_index_with_few_of_our_names_is_still_ours(base: Base) -> None:
    """An older format may have had hardly anything in common: its rows of meta say whose it is."""
    base.execute("PRAGMA foreign_keys = OFF")
    by(*(f"DROP TABLE IF EXISTS {name}" for name in ("chunks_vocabulary", "chunks_stems", "chunks_fts_tri")))(
        base.layout.database
    )
    by(
        "DROP TABLE chunks_fts_exact",
        "DROP TABLE chunks_fts",
        "DROP VIEW chunks_tri_source",
        "DROP TABLE chunks",
        "DROP TABLE tombstones",
        "DROP TABLE skipped_files",
    )(base.layout.database)
    assert upgraded(base).status is UpgradeStatus.UPGRADED
    assert base.stored_keys() == KEYS


def test_beside_a_writer(base: Base) -> None:
    """11 while another process writes; while that one is an upgrade, the gate says to wait for it."""
    OLD["only its number"](base.layout.database)
    with WriteLock(base.layout.lock, purpose="knowledge index"), pytest.raises(LockedError, match="knowledge index"):
        upgraded(base)
    with (
        WriteLock(base.layout.lock, purpose="knowledge upgrade"),
        pytest.raises(FormatError) as caught,
        readable_base(base.settings),
    ):
        pass
    assert "`knowledge upgrade`, process" in caught.value.hint
    assert "wait" in caught.value.hint
    with pytest.raises(FormatError) as caught, readable_base(base.settings):
        pass
    assert caught.value.hint.startswith("run `knowledge upgrade`")


def test_a_reader_of_the_old_index_goes_on(base: Base) -> None:
    """Searches go on: during the run and after the switch, until the reader opens the index again."""
    OLD["a table less"](base.layout.database)
    seen: list[int] = []
    with closing(open_reader(base.layout.database)) as old:

        def look() -> None:
            found = old.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'fox'").fetchone()
            seen.append(found[0])

        class Looking(RunProgress):
            def __setattr__(self, name: str, value: object) -> None:
                super().__setattr__(name, value)
                if name == "stage" and self.stage in ("indexing", "done"):
                    look()

        old.execute("BEGIN")
        assert upgraded(base, Looking()).status is UpgradeStatus.UPGRADED
        look()
        old.execute("COMMIT")
        look()
        make_tree(base.layout.home.parent / "docs", {"d.md": "# Fox\n\nfox again\n"})
        base.index()
        look()
    assert len(seen) >= 5
    assert set(seen) == {1}
    assert base.found("fox") == ["docs/a.md", "docs/d.md"]
    assert audit(base.layout.database) == []


def test_files_that_changed_meanwhile(base: Base, docs: Path) -> None:
    """The new index is of the files as they are now; a few that are gone are named, and no reason to wait."""
    OLD["only its number"](base.layout.database)
    (docs / "a.md").unlink()
    make_tree(docs, {"b.md": "# Beta\n\nquite another text\n", "new.md": "# New\n\nwords\n"})
    report = upgraded(base)
    assert (report.status, report.exit_status) == (UpgradeStatus.UPGRADED, 0)
    assert report.missing == (1, ("docs/a.md",), 0)
    assert base.stored_keys() == ["docs/b.md", "docs/new.md", "docs/sub/c.txt"]


def test_a_file_that_cannot_be_read_now(base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its document is not in the new index: exit 3 says so, by name, and it is tried again."""
    OLD["only its number"](base.layout.database)
    read = RootReader.read

    def refused(reader: RootReader, relative: str) -> object:
        if relative == "b.md":
            raise PermissionError(13, "Permission denied")
        return read(reader, relative)

    monkeypatch.setattr(RootReader, "read", refused)
    report = upgraded(base)
    assert (report.status, report.exit_status) == (UpgradeStatus.UPGRADED, 3)
    assert report.missing == (1, ("docs/b.md",), 0)
    assert list(base.failures()) == ["docs/b.md"]
    monkeypatch.undo()
    OLD["only its number"](base.layout.database)
    assert upgraded(base).exit_status == 0  # tried at once, however long an ordinary run would wait
    assert (base.stored_keys(), base.failures()) == (KEYS, {})


def test_most_documents_are_gone(base: Base, docs: Path) -> None:
    """R34: more than a fifth and more than fifty hold the switch; what was made is kept for the next time."""
    many(docs, 120)
    base.index()
    OLD["only its number"](base.layout.database)
    for path in sorted(docs.glob("m*.md"))[:60]:
        path.unlink()
    before = base.layout.database.read_bytes()
    report = upgraded(base)
    assert (report.status, report.exit_status) == (UpgradeStatus.HELD, 3)
    assert [(held.root, held.count, held.documents, held.cause) for held in report.held] == [
        ("docs", 60, 123, "removals_held")
    ]
    assert report.missing.number == 60
    assert base.layout.database.read_bytes() == before
    assert base.last_run()[:2] == ("partial", "removals_held")
    with base.state() as state:
        generation = int(rows_of(base.layout.database, "SELECT value FROM meta WHERE key = 'generation'")[0][0])
        assert not is_older_than_recorded(generation, state.roots())
    assert check_of(base.settings, "upgrade") is CheckState.FAIL
    again = upgraded(base, allow_mass_delete=True)
    assert (again.status, again.is_continued) == (UpgradeStatus.UPGRADED, True)
    assert again.index is not None
    assert again.index.counts.get("added", 0) == 0  # nothing is cut twice
    assert len(base.stored_keys()) == 63
    assert maintenance.verify(base.settings, deep=True).exit_status == 0


def test_a_folder_that_is_empty_now(base: Base, docs: Path) -> None:
    """S0-32: an unmounted folder looks like one without files; nothing is switched, however few documents it had."""
    OLD["only its number"](base.layout.database)
    shutil.move(docs, docs.parent / "aside")
    docs.mkdir()
    report = upgraded(base)
    assert report.status is UpgradeStatus.HELD
    assert report.held[0].cause == "source_empty"
    docs.rmdir()
    report = upgraded(base)
    assert report.held[0].cause == "source_unreadable"
    shutil.move(docs.parent / "aside", docs)
    assert upgraded(base).status is UpgradeStatus.UPGRADED
    assert base.stored_keys() == KEYS


def test_roots_that_the_configuration_has_left_behind(tmp_path: Path, docs: Path) -> None:
    """Their documents stay in the index as before; what was excluded of them once is not read now."""
    other = make_tree(tmp_path / "other", {"x.rst": "Words of x\n", "private/p.md": "# P\n\nsecret\n", "y.md": "# Y\n"})
    left = RootSettings(path=other, exclude=("private/",), extensions=(".rst", ".md"))
    base_in(tmp_path, RootSettings(path=docs), left).index()
    base = base_in(tmp_path, RootSettings(path=docs))
    base.index()
    keys = base.stored_keys()
    assert keys == [*KEYS, "other/x.rst", "other/y.md"]
    OLD["a column less"](base.layout.database)
    report = upgraded(base)
    assert report.status is UpgradeStatus.UPGRADED
    assert report.missing.number == 0
    assert base.stored_keys() == keys
    assert base.found("secret") == []
    assert base.last_run()[0] == "done"
    assert check_of(base.settings, "index_consistent") is CheckState.PASS


def test_reset_and_the_next_run_sweep_what_was_left(base: Base) -> None:
    OLD["only its number"](base.layout.database)
    base.layout.upgrade_staging.mkdir(mode=0o700)
    with pytest.raises(FormatError):
        base.index()
    assert base.layout.upgrade_staging.exists()  # an upgrade may go on with it
    maintenance.reset(base.settings, force=True)
    assert not base.layout.upgrade_staging.exists()
    base.layout.upgrade_staging.mkdir(mode=0o700)
    with writable_base(base.settings, "test"):
        assert not base.layout.upgrade_staging.exists()


def test_an_empty_index(tmp_path: Path) -> None:
    """Of a base that was reset and never indexed again, with its root or without any."""
    made = base_in(tmp_path)
    with writable_base(made.settings, "test"):
        pass
    OLD["only its number"](made.layout.database)
    report = upgraded(made)
    assert report.status is UpgradeStatus.UPGRADED
    assert made.stored_keys() == []
    assert maintenance.verify(made.settings, deep=True).exit_status == 0


def test_a_failed_check_drops_the_new_index(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other documents than the run has stored: the old index stands, and the next upgrade begins anew."""
    OLD["only its number"](base.layout.database)
    before = base.layout.database.read_bytes()

    def losing(running: Running) -> EndedRun:
        ended = carry_out(running)
        return replace(ended, report=replace(ended.report, documents=2))

    monkeypatch.setattr("app.upgrading.carry_out", losing)
    with pytest.raises(IntegrityError, match="2 documents, where the run has stored 3"):
        upgraded(base)
    assert base.layout.database.read_bytes() == before
    assert not base.layout.upgrade_staging.exists()
    assert base.last_run()[:2] == ("failed", "integrity")
    monkeypatch.undo()
    assert upgraded(base).status is UpgradeStatus.UPGRADED

"""`backup` and `restore`: a base as one file and back, while it is in use (P32, R2, R25)."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.backing_up import back_up, restore
from app.wiring import readable_base, writable_base
from domain.errors import (
    DiskFullError,
    KnowledgeError,
    LockedError,
    NotBuiltError,
    RefusedError,
    UnsafePlaceError,
    UsageError,
)
from domain.settings import Settings
from store import backup
from tests.integration.test_store_files import NOBODY, as_nobody
from tests.support.audit import audit
from tests.support.backups import elsewhere, listing
from tests.support.bases import (
    ALL_KEYS,
    TEXTS,
    assert_sound,
    identity_of,
    index_into,
    keys_of,
    layout_of,
    runs_of,
    settings_of,
    write_files,
)
from tests.support.runs import base_in

PROJECT = Path(__file__).resolve().parents[2]
ROUNDS = 20


def test_there_and_back(base: Settings, place: Path, out: Path) -> None:
    """Both databases, the same documents and history; whole by both opinions; no cache believes it (R25)."""
    report = back_up(base, out / "b.tar", force=False)
    assert (report.documents, report.chunks, report.generation) == (5, 11, 1)
    assert report.file_bytes == (out / "b.tar").stat().st_size > report.database_bytes + report.state_bytes
    assert [path.name for path in out.iterdir()] == ["b.tar"]
    other = elsewhere(place)
    restored = restore(other, out / "b.tar", force=False)
    assert (restored.documents, restored.was_replaced) == (5, False)
    assert restored.generation > report.generation
    assert keys_of(other) == ALL_KEYS
    assert [run.kind for run in runs_of(other)] == ["restore", "index"]
    before, after = identity_of(base), identity_of(other)
    assert after.store_uuid != before.store_uuid
    assert (after.base_id, after.commit_seq) == (before.base_id, before.commit_seq)
    assert_sound(other)
    assert_sound(base)
    assert not list(other.home.glob("restore*"))


def test_it_is_private_from_the_first_instant(base: Settings, place: Path, out: Path) -> None:
    """S0-05: whatever the umask says."""
    old = os.umask(0)
    try:
        back_up(base, out / "b.tar", force=False)
        restore(elsewhere(place), out / "b.tar", force=False)
    finally:
        os.umask(old)
    assert (out / "b.tar").stat().st_mode & 0o777 == 0o600
    home = elsewhere(place).home
    assert home.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in home.iterdir()} == {0}


@pytest.mark.parametrize("name", ["100% sure?#1 &x=2.tar", "-b", "żółw\n.tar", "file:x?mode=ro", "x" * 255])
def test_any_name_will_do(base: Settings, place: Path, out: Path, name: str) -> None:
    folder = out / "50%?#&"
    folder.mkdir()
    back_up(base, folder / name, force=False)
    restore(elsewhere(place), folder / name, force=False)
    assert [path.name for path in folder.iterdir()] == [name]
    assert keys_of(elsewhere(place)) == ALL_KEYS


def test_any_tar_can_look_into_it(base: Settings, out: Path) -> None:
    back_up(base, out / "b.tar", force=False)
    with tarfile.open(out / "b.tar") as tar:
        entries = [(entry.name, entry.uid, entry.uname) for entry in tar]
        file = tar.extractfile("knowledge-backup.json")
        assert file is not None
        manifest = json.load(file)
    names = ["knowledge-backup.json", "state.db", "knowledge.db"]
    assert entries == [(name, 0, "") for name in names]
    assert manifest["base_id"] == identity_of(base).base_id
    assert [member["name"] for member in manifest["members"]] == names[1:]


def test_removed_text_is_not_in_it(base: Settings, out: Path) -> None:
    """The live file keeps pages that were given up; the copy has none."""
    with writable_base(base, "test") as held:
        root = base.home.parent / "docs"
        write_files(root, {"secret.md": "# Secret\n\n" + "The launch code is swordfish. " * 400})
        index_into(held, base, root, "docs", ["secret.md"])
        held.writer.connection.execute("DELETE FROM chunks WHERE body LIKE '%swordfish%'")
        held.writer.connection.execute("DELETE FROM documents WHERE key = 'docs/secret.md'")
    assert b"launch code is swordfish" in layout_of(base).database.read_bytes()
    back_up(base, out / "b.tar", force=False)
    assert b"launch code is swordfish" not in (out / "b.tar").read_bytes()


def test_the_next_index_costs_nothing_for_unchanged_files(place: Path, out: Path) -> None:
    docs = place / "docs"
    write_files(docs, TEXTS)
    made = base_in(place)
    made.index(docs)
    made.settle()
    back_up(made.settings, out / "b.tar", force=False)
    (docs / "a.md").write_bytes(b"# Alpha\n\nother words\n")
    back = base_in(place / "elsewhere")
    restore(back.settings, out / "b.tar", force=False)
    checked = dict(back.rows("SELECT key, checked_ns FROM documents"))
    report = back.index()
    assert report.counts == {"updated": 1, "unchanged": 4}
    now = dict(back.rows("SELECT key, checked_ns FROM documents"))
    assert {key for key in now if now[key] != checked[key]} == {"docs/a.md"}
    assert_sound(back.settings)


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {project!r})
from app.wiring import writable_base
from tests.support.bases import index_into, settings_of, write_files
import select
settings, root = settings_of(Path({home!r})), Path({root!r})
number = 0
with writable_base(settings, "test") as base:
    while not select.select([sys.stdin], [], [], 0)[0]:
        number += 1
        texts = {{f"n{{n}}.md": f"# N{{n}}\\n\\n" + f"word{{number}}. " * (number * n % 97 + 1) for n in range(12)}}
        write_files(root, texts)
        index_into(base, settings, root, "docs", sorted(texts))
        print(number, flush=True)
"""


@contextmanager
def writing(settings: Settings, root: Path) -> Iterator[None]:
    """A process that replaces documents for as long as the block goes on."""
    code = WRITER.format(project=str(PROJECT), home=str(settings.home), root=str(root))
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"1\n"
    try:
        yield
        assert child.poll() is None
    finally:
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors.decode()


def test_under_load(base: Settings, place: Path, out: Path) -> None:
    """P32: every backup that is made beside a writer and a reader is whole, and each of them is of a later moment."""
    seen: list[tuple[int, int]] = []
    with writing(base, place / "docs"), readable_base(base) as reading, reading.store.snapshot():
        for number in range(ROUNDS):
            report = back_up(base, out / "b.tar", force=True)
            seen.append((report.generation, report.commit_seq))
            other = settings_of(place / f"restored-{number}")
            restore(other, out / "b.tar", force=False)
            assert audit(layout_of(other).database) == []
            states = {run.state for run in runs_of(other)}
            assert states <= {"done", "interrupted"}
            assert identity_of(other).commit_seq == report.commit_seq
            if number in (0, ROUNDS - 1):
                assert_sound(other)
            shutil.rmtree(other.home)
    assert seen == sorted(seen)
    assert seen[0][1] < seen[-1][1]
    assert [path.name for path in out.iterdir()] == ["b.tar"]


def test_a_plain_copy_is_no_backup(base: Settings, place: Path, out: Path) -> None:
    """What `cp knowledge.db` gives while the index is written: an older state, for the newest is in the log beside."""
    docs = place / "docs"
    write_files(docs, {"newest.md": "# Newest\n\nwritten a moment ago\n"})
    with writable_base(base, "test") as held:
        index_into(held, base, docs, "docs", ["newest.md"])
        back_up(base, out / "b.tar", force=False)
        copied = settings_of(place / "copied")
        copied.home.mkdir()
        shutil.copy(layout_of(base).database, copied.home)
        shutil.copy(layout_of(base).state, copied.home)
    restore(elsewhere(place), out / "b.tar", force=False)
    assert "docs/newest.md" in keys_of(elsewhere(place))
    assert "docs/newest.md" not in keys_of(copied)


def test_a_plain_copy_of_a_young_index_holds_nothing(place: Path) -> None:
    """Before the first checkpoint the whole of it is in the log."""
    docs, settings, copied = place / "docs", settings_of(place / "home"), settings_of(place / "copied")
    write_files(docs, TEXTS)
    copied.home.mkdir()
    with writable_base(settings, "test") as held:
        index_into(held, settings, docs, "docs", sorted(TEXTS))
        for path in (layout_of(settings).database, layout_of(settings).state):
            shutil.copy(path, copied.home)
    with pytest.raises(KnowledgeError):
        keys_of(copied)


def test_a_file_in_the_way(base: Settings, out: Path) -> None:
    target = out / "b.tar"
    target.write_bytes(b"precious")
    with pytest.raises(RefusedError) as caught:
        back_up(base, target, force=False)
    assert "--force" in caught.value.hint
    assert target.read_bytes() == b"precious"
    back_up(base, target, force=True)
    assert target.read_bytes() != b"precious"


@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_never_written_through(base: Settings, out: Path, force: bool) -> None:
    precious, target = out / "precious", out / "b.tar"
    precious.write_bytes(b"precious")
    target.symlink_to(precious)
    with pytest.raises(UnsafePlaceError):
        back_up(base, target, force=force)
    assert precious.read_bytes() == b"precious"
    target.unlink()
    target.symlink_to(out / "not there")
    with pytest.raises(UnsafePlaceError):
        back_up(base, target, force=force)


def test_places_that_are_refused(base: Settings, place: Path, out: Path) -> None:
    (base.home / "sub").mkdir()
    (place / "alias").symlink_to(base.home)
    for target in (base.home / "b.tar", base.home / "sub" / "b.tar", place / "alias" / "b.tar", out):
        with pytest.raises(UnsafePlaceError):
            back_up(base, target, force=True)
    for target in (out / "nowhere" / "b.tar", layout_of(base).database / "b.tar"):
        with pytest.raises(UsageError):
            back_up(base, target, force=True)
    with pytest.raises(NotBuiltError):
        back_up(elsewhere(place), out / "b.tar", force=False)
    assert not elsewhere(place).home.exists()
    assert list(out.iterdir()) == []


def test_a_folder_that_may_not_be_written(base: Settings, out: Path) -> None:
    if os.getuid() == 0:
        for path in (*base.home.iterdir(), base.home):
            os.chown(path, NOBODY, NOBODY)
    out.chmod(0o555)
    call = f"from app.backing_up import back_up; back_up(settings, Path({str(out / 'b.tar')!r}), False)"
    assert as_nobody(base.home, call) == ["storage 14 True"]
    assert list(out.iterdir()) == []


def test_no_room(base: Settings, place: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before the disk is full; the fault injector's full disks are in test_store_faults."""
    back_up(base, out / "b.tar", force=False)
    monkeypatch.setattr("store.files.free_bytes", lambda directory: 1000)
    with pytest.raises(DiskFullError):
        back_up(base, out / "c.tar", force=False)
    with pytest.raises(DiskFullError):
        restore(elsewhere(place), out / "b.tar", force=False)
    assert [path.name for path in out.iterdir()] == ["b.tar"]
    assert not list(elsewhere(place).home.glob("*.db*"))


def test_two_backups_to_one_file(base: Settings, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused as long as the first goes on."""
    refused: list[str] = []

    def second_comes(layout: object, directory: Path) -> None:
        monkeypatch.undo()
        with pytest.raises(LockedError):
            back_up(base, out / "b.tar", force=False)
        refused.append("b.tar")

    monkeypatch.setattr("store.backup._require_room", second_comes)
    back_up(base, out / "b.tar", force=False)
    assert refused == ["b.tar"]


def test_ctrl_c_is_heeded_while_sqlite_copies(base: Settings, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal makes Python's function fail that SQLite asks now and then; nothing is left of the backup."""
    back_up(base, out / "b.tar", force=False)
    before = listing(out)
    monkeypatch.setattr("store.backup._STEPS_BETWEEN_LOOKS", 10)
    monkeypatch.setattr("store.backup._go_on", lambda: 1 // 0)
    with pytest.raises(KeyboardInterrupt):
        back_up(base, out / "b.tar", force=True)
    assert listing(out) == before
    assert len(list(out.iterdir())) == 1


def test_what_a_killed_backup_has_left_is_cleared(base: Settings, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.backup.remove_staging", lambda directory: None)
    back_up(base, out / "b.tar", force=False)
    assert len(list(out.iterdir())) == 2
    monkeypatch.undo()
    back_up(base, out / "b.tar", force=True)
    assert [path.name for path in out.iterdir()] == ["b.tar"]


def test_a_backup_is_of_one_pair(base: Settings, place: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that comes between the two copies is seen."""
    back_up(base, out / "b.tar", force=False)
    copied = backup._copied

    def restored_between(path: Path, copy: Path, target: Path) -> Path:
        if path.name == "knowledge.db":
            restore(base, out / "b.tar", force=True)
        return copied(path, copy, target)

    monkeypatch.setattr(backup, "_copied", restored_between)
    with pytest.raises(LockedError, match="replaced"):
        back_up(base, out / "c.tar", force=False)
    assert [path.name for path in out.iterdir()] == ["b.tar"]

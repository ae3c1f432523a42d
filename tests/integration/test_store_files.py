"""Modes from the first instant, symlinks refused, unsafe places refused, readers that may not write (P10, P11, P30)."""

import os
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app import maintenance
from app.wiring import readable_base, writable_base
from domain.errors import StorageError, UnsafePlaceError
from domain.settings import Settings
from store import files, filesystems
from tests.support.bases import layout_of, settings_of
from tests.support.scratch import scratch_directory

PROJECT = Path(__file__).parents[2]
NOBODY = 65534

Act = Callable[[Settings], object]


def read(settings: Settings) -> None:
    with readable_base(settings):
        pass


def write(settings: Settings) -> None:
    with writable_base(settings, "test"):
        pass


def modes_below(home: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in (home, *home.iterdir())}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_private_from_the_first_instant(umask: int) -> None:
    """A watcher looks all the while that a base is made: it never sees a bit for others."""
    with scratch_directory() as path:
        seen: dict[str, int] = {}
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.is_set():
                for folder, _, names in os.walk(path / "home"):
                    for name in ("", *names):
                        try:
                            mode = os.lstat(os.path.join(folder, name)).st_mode  # noqa: PTH118
                        except FileNotFoundError:
                            continue
                        seen[name] = seen.get(name, 0) | (mode & 0o077)

        watcher = threading.Thread(target=watch)
        before = os.umask(umask)
        try:
            watcher.start()
            with writable_base(settings_of(path / "home"), "test"):
                inside = modes_below(path / "home")
        finally:
            is_over.set()
            watcher.join()
            os.umask(before)
        assert inside.pop("home") == 0o700
        assert set(inside.values()) == {0o600}
        assert {"knowledge.db", "knowledge.db-wal", "state.db", "knowledge.lock"} <= set(inside)
        assert {name: bits for name, bits in seen.items() if bits} == {}


def test_what_was_open_to_others_is_closed(base: Settings) -> None:
    base.home.chmod(0o755)
    for path in base.home.iterdir():
        path.chmod(0o644)
    write(base)
    assert base.home.stat().st_mode & 0o077 == 0
    layout = layout_of(base)
    assert [path for path in (layout.database, layout.state, layout.lock) if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("name", ["knowledge.db", "knowledge.db-wal", "knowledge.db-shm", "state.db", "state.db-wal"])
@pytest.mark.parametrize("act", [read, write], ids=["read", "write"])
def test_a_link_at_a_databases_place_is_refused(base: Settings, name: str, act: Act) -> None:
    _refused_at(base, name, act)


@pytest.mark.parametrize(
    "act",
    [
        write,
        lambda settings: maintenance.verify(settings, deep=False),
        lambda settings: maintenance.reset(settings, force=True),
        maintenance.rebuild,
    ],
    ids=["write", "verify", "reset", "rebuild"],
)
@pytest.mark.parametrize("name", ["knowledge.lock", "knowledge.db", "knowledge.db-wal"])
def test_a_link_is_refused_by_every_verb_that_takes_the_lock(base: Settings, name: str, act: Act) -> None:
    _refused_at(base, name, act)


def _refused_at(base: Settings, name: str, act: Act) -> None:
    target = base.home.parent / "target"
    target.write_bytes(b"precious")
    target.chmod(0o644)
    (base.home / name).unlink(missing_ok=True)
    (base.home / name).symlink_to(target)
    with pytest.raises(UnsafePlaceError) as caught:
        act(base)
    assert caught.value.exit_status == 2
    assert (base.home / name).is_symlink()
    assert target.read_bytes() == b"precious"
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_link_at_the_homes_place_is_refused() -> None:
    with scratch_directory() as path:
        (path / "real").mkdir()
        (path / "home").symlink_to(path / "real")
        with pytest.raises(UnsafePlaceError, match="symbolic link"):
            write(settings_of(path / "home"))
        assert list((path / "real").iterdir()) == []


@pytest.mark.parametrize("place", ["home", "home/below"])
def test_a_file_in_the_homes_way_is_refused(place: str) -> None:
    with scratch_directory() as path:
        (path / "home").write_bytes(b"precious")
        with pytest.raises(UnsafePlaceError, match="not a directory"):
            write(settings_of(path / place))
        assert (path / "home").read_bytes() == b"precious"


MOUNTS = textwrap.dedent(
    """\
    22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
    30 22 0:40 / /home rw - nfs4 server:/home rw
    31 30 8:2 / /home/local\\040disk rw - xfs /dev/vdb rw
    32 22 0:41 / /mnt/share rw - cifs //server/share rw
    33 22 0:42 / /media/user rw - fuse.sshfs host:/ rw
    34 22 0:43 / /mnt/usb rw - fuseblk /dev/sdb1 rw
    35 22 0:44 / /mnt/c rw - 9p C: rw
    36 32 8:3 / /mnt/share rw - ext4 /dev/vdc rw
    a line that is none
    """
)


@pytest.mark.parametrize(
    ("path", "kind", "is_unsafe"),
    [
        ("/srv/x", "ext4", False),
        ("/home/me/notes", "nfs4", True),
        ("/homework", "ext4", False),
        ("/home/local disk/notes", "xfs", False),
        ("/media/user/x", "fuse.sshfs", True),
        ("/mnt/usb/x", "fuseblk", False),
        ("/mnt/c/Users", "9p", True),
        ("/mnt/share/x", "ext4", False),
    ],
)
def test_the_kind_of_a_places_file_system(path: str, kind: str, is_unsafe: bool) -> None:
    assert filesystems.kind_in(MOUNTS, path) == kind
    assert filesystems.is_unsafe(kind) is is_unsafe


def test_a_new_store_on_a_network_file_system_is_refused(monkeypatch: pytest.MonkeyPatch, base: Settings) -> None:
    monkeypatch.setattr(files, "file_system_kind", lambda path: "nfs4")
    write(base)  # one that is there is not locked out
    fresh = settings_of(base.home.parent / "fresh")
    with pytest.raises(UnsafePlaceError, match="nfs4") as caught:
        files.make_home(layout_of(fresh))
    assert caught.value.exit_status == 2
    assert not fresh.home.exists()
    files.make_home(layout_of(fresh), allow_network_filesystem=True)
    assert fresh.home.is_dir()


def test_a_database_is_removed_with_its_sidecars(base: Settings) -> None:
    path = layout_of(base).database
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).write_bytes(b"x")
    files.remove_database(path)
    assert [left.name for left in base.home.iterdir() if left.name.startswith("knowledge.db")] == []


AS_NOBODY = """
import os, sys
sys.path.insert(0, {project!r})
from pathlib import Path
from app import maintenance
from app.doctor import diagnose, exit_status
from app.wiring import readable_base, writable_base
from domain.errors import KnowledgeError
from store.port import Visibility
from tests.support.bases import settings_of
import app.backing_up, scheduler.queue.embedded
if os.getuid() == 0:
    os.setgroups([]); os.setgid({nobody}); os.setuid({nobody})
settings = settings_of(Path({home!r}))
for act in {acts!r}:
    try:
        exec(act)
    except KnowledgeError as error:
        print(error.code, error.exit_status, bool(error.hint))
"""
READ = "with readable_base(settings) as b: print(b.store.reader().counts('', visibility=Visibility.everything()))"
WRITE = "with writable_base(settings, 'x'): pass"
VERIFY = "r = maintenance.verify(settings, True); print(r.exit_status, *sorted({c.state.value for c in r.results}))"
REFUSED = "storage 14 True"


def as_nobody(home: Path, *acts: str) -> list[str]:
    """What commands print that are run as somebody who owns nothing (the tests may be run as root)."""
    code = AS_NOBODY.format(project=str(PROJECT), home=str(home), acts=acts, nobody=NOBODY)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def give_away(home: Path, *, directory_mode: int) -> None:
    for path in (*home.iterdir(), home):
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    home.chmod(directory_mode)


def test_a_reader_in_a_directory_that_it_may_not_write(base: Settings) -> None:
    """Without the writer's sidecars SQLite cannot read there; with them it can. Neither is a traceback."""
    give_away(base.home, directory_mode=0o500)
    assert as_nobody(base.home, READ) == [REFUSED]
    base.home.chmod(0o700)
    with writable_base(base, "knowledge index"):
        give_away(base.home, directory_mode=0o500)
        assert as_nobody(base.home, READ) == ["StoreCounts(documents=5, chunks=11, skipped=0)"]
    base.home.chmod(0o700)


def test_a_base_that_is_somebody_elses(base: Settings) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can own what nobody may not read")
    told = as_nobody(
        base.home, READ, WRITE, "maintenance.reset(settings, True)", "print(exit_status(diagnose(settings)))"
    )
    assert told == [REFUSED, REFUSED, REFUSED, "5"]


def test_verify_where_no_lock_can_be_made(base: Settings) -> None:
    """What needs the lock is not run, and says so; the rest is checked."""
    with writable_base(base, "knowledge index"):
        layout_of(base).lock.unlink()
        give_away(base.home, directory_mode=0o500)
        assert as_nobody(base.home, VERIFY) == ["11 not_run pass"]
    base.home.chmod(0o700)


def test_a_full_disk_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with scratch_directory() as path:

        def full(*_: object, **__: object) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch, pytest.raises(StorageError) as caught:
            patch.setattr(os, "open", full)  # for this one call: the folder is removed with the real one
            files.create_private(path / "x")
    assert caught.value.code == "disk_full"
    assert caught.value.exit_status == 14

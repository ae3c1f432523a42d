"""Files that are no backup, or no longer one: refused before anything is made (P32)."""

import hashlib
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.backing_up import back_up, restore
from app.present_backup import restore_text
from app.progress import RunProgress
from app.upgrade_report import UpgradeRequest, UpgradeStatus
from app.upgrading import upgrade
from domain.errors import FormatError, IntegrityError, KnowledgeError, UnsafePlaceError, UsageError
from domain.settings import Settings
from domain.status import Tier
from tests.support.bases import ALL_KEYS, assert_sound, build_base, keys_of, settings_of
from tests.support.old_stores import OLD
from tests.support.scratch import scratch_directory

BLOCK = 512


@pytest.fixture(scope="module")
def sound() -> Iterator[bytes]:
    """The bytes of a backup."""
    with scratch_directory() as path:
        back_up(build_base(path), path / "b.tar", force=False)
        yield (path / "b.tar").read_bytes()


@pytest.fixture
def nowhere(place: Path) -> Settings:
    return settings_of(place / "home")


def refused(path: Path, settings: Settings) -> KnowledgeError:
    with pytest.raises(KnowledgeError) as caught:
        restore(settings, path, force=False)
    assert caught.value.hint
    assert not settings.home.exists()
    return caught.value


def test_cut_short_anywhere(sound: bytes, place: Path, nowhere: Settings) -> None:
    """Beyond its last entry a tar has only padding: without it nothing is lost."""
    path = place / "b.tar"
    end = len(sound.rstrip(b"\0"))
    for size in (0, 5, 22, BLOCK, BLOCK + 100, 3 * BLOCK, 9 * BLOCK, 10 * BLOCK, 50_000, end // 2, end - 1):
        path.write_bytes(sound[:size])
        assert refused(path, nowhere).exit_status == (12 if size < 22 else 13), size


def test_a_changed_byte_is_found_or_says_nothing(sound: bytes, place: Path, nowhere: Settings) -> None:
    path = place / "b.tar"
    points = [*range(0, 1200, 37), *range(9 * BLOCK, len(sound), 8111)]
    statuses = set()
    for at in points:
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x15]) + sound[at + 1 :])
        try:
            restore(settings_of(place / f"home-{at}"), path, force=False)
        except (FormatError, IntegrityError) as error:
            statuses.add(error.exit_status)
        else:
            assert keys_of(settings_of(place / f"home-{at}")) == ALL_KEYS
            statuses.add(0)
    assert {13, 12} <= statuses


def tar_of(**entries: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, data in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def zip_of(name: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr(name, "x")
    return made.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"a text\n" * 500, tar_of(notes=b"x"), zip_of("knowledge-backup.json"), b"SQLite format 3\0" + b"\0" * 5000],
    ids=["empty", "text", "tar", "zip", "database"],
)
def test_what_is_none_of_ours(content: bytes, place: Path, nowhere: Settings) -> None:
    path = place / "b.tar"
    path.write_bytes(content)
    assert refused(path, nowhere).exit_status == 12


@pytest.mark.parametrize(
    "manifest", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b'{"version": true}', b'{"version": 1, "members": [1]}']
)
def test_a_manifest_that_says_nothing(manifest: bytes, place: Path, nowhere: Settings) -> None:
    path = place / "b.tar"
    path.write_bytes(tar_of(**{"knowledge-backup.json": manifest, "state.db": b"", "knowledge.db": b""}))
    assert refused(path, nowhere).exit_status == 13


def with_manifest(sound: bytes, change: Callable[[dict[str, object]], None]) -> bytes:
    value = json.loads(sound[BLOCK : 9 * BLOCK])
    change(value)
    return sound[:BLOCK] + json.dumps(value).encode().ljust(8 * BLOCK) + sound[9 * BLOCK :]


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("version", 2, "upgrade"),
        ("format_version", 99, "upgrade"),
        ("state_version", 99, "upgrade"),
    ],
)
def test_another_version(sound: bytes, place: Path, nowhere: Settings, key: str, value: int, word: str) -> None:
    path = place / "b.tar"
    path.write_bytes(with_manifest(sound, lambda manifest: manifest.update({key: value})))
    error = refused(path, nowhere)
    assert error.exit_status == 12
    assert word in error.hint


def test_an_older_format_comes_back_for_an_upgrade(sound: bytes, place: Path, nowhere: Settings) -> None:
    """S0-57, P32: a backup made before an update of the program is still worth something after it."""
    (place / "b.tar").write_bytes(in_format_1(sound, place))
    report = restore(nowhere, place / "b.tar", force=False)
    assert (report.format_version, report.is_outdated, report.documents) == (1, True, 5)
    assert "next: `knowledge upgrade`: the index has the older format 1" in restore_text(report, Tier.LEXICAL, 0)
    with pytest.raises(FormatError, match="older format 1"):
        keys_of(nowhere)
    upgraded = upgrade(nowhere, UpgradeRequest(worker_processes=0, allow_mass_delete=True), RunProgress())
    assert upgraded.status is UpgradeStatus.UPGRADED
    assert_sound(nowhere)


def in_format_1(sound: bytes, place: Path) -> bytes:
    """A backup as the program of that time wrote it."""
    with tarfile.open(fileobj=io.BytesIO(sound)) as tar:
        parts = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    database = place / "old.db"
    database.write_bytes(parts["knowledge.db"])
    OLD["format 1"](database)
    parts["knowledge.db"] = database.read_bytes()
    manifest = json.loads(parts["knowledge-backup.json"])
    manifest["format_version"] = 1
    for member in manifest["members"]:
        data = parts[member["name"]]
        member.update(size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    parts["knowledge-backup.json"] = json.dumps(manifest).encode().ljust(8 * BLOCK)
    return tar_of(**parts)


def test_entries_that_do_not_belong(sound: bytes, place: Path, nowhere: Settings) -> None:
    """A link, another name, a path that leads out: nothing is unpacked by its name."""
    path = place / "b.tar"
    with tarfile.open(fileobj=io.BytesIO(sound)) as tar:
        parts = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    added = tar_of(**parts, **{"/tmp/x": b"x"})
    moved = tar_of(**{("../" * (name == "state.db")) + name: data for name, data in parts.items()})
    linked = io.BytesIO()
    with tarfile.open(fileobj=linked, mode="w") as tar:
        for name, data in parts.items():
            entry = tarfile.TarInfo(name)
            if name == "state.db":
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    for content in (added, moved, linked.getvalue()):
        path.write_bytes(content)
        assert refused(path, nowhere).exit_status == 13


def test_no_file(place: Path, nowhere: Settings) -> None:
    os.mkfifo(place / "pipe")
    for path, kind in (
        (place / "nope", UsageError),
        (place / "nope" / "b.tar", UsageError),
        (place, UnsafePlaceError),
        (place / "pipe", UnsafePlaceError),
    ):
        error = refused(path, nowhere)
        assert isinstance(error, kind)
        assert error.exit_status == 2


def test_a_link_to_a_backup_is_read(sound: bytes, place: Path, nowhere: Settings) -> None:
    (place / "b.tar").write_bytes(sound)
    (place / "latest.tar").symlink_to(place / "b.tar")
    restore(nowhere, place / "latest.tar", force=False)
    assert keys_of(nowhere) == ALL_KEYS

"""Backups that somebody's disk, network or hand has changed; the hashes in them are made right again in most."""

import hashlib
import json
import tarfile
from io import BytesIO
from random import Random
from typing import Any

from tests.support.fuzz_trying import mutated

BLOCK = 512
_MANIFEST_END = BLOCK + 4096
_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**63 - 1, 2**63, 1.5, "", "x", "../state.db", "knowledge.db", "state.db", [], {}, [{}],
    ["x"], "\ud800", "\x00", "a" * 3_000, 10**40,
)  # fmt: skip
_TOKENS = (
    b"\x00", b"\xff" * 8, b"\x80" + b"\xff" * 11, b"ustar\x0000", b"ustar  \x00", b"0000000\x00", b"7777777\x00",
    b"-000001\x00", b"L", b"x", b"g", b"S", b"2", b"5",
    b"state.db\x00", b"../../x\x00", b"/etc/passwd\x00", b"SQLite format 3\x00", bytes(BLOCK), b"size=1\n",
    b"GNU.sparse.major=1\n",
)  # fmt: skip
_PAGE = 4096


def whole(parts: dict[str, bytes], manifest: dict[str, Any]) -> bytes:
    """A tar of these, with the manifest as given in front."""
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        text = json.dumps(manifest).encode("utf-8", "surrogatepass")[:4095].ljust(4096)
        for name, data in {"knowledge-backup.json": text, **parts}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, BytesIO(data))
    return made.getvalue()


def parts_of(sound: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the databases of a sound backup."""
    with tarfile.open(fileobj=BytesIO(sound)) as tar:
        read = {entry.name: tar.extractfile(entry).read() for entry in tar.getmembers()}  # type: ignore[union-attr]
    manifest: dict[str, Any] = json.loads(read.pop("knowledge-backup.json"))
    return manifest, read


def described(manifest: dict[str, Any], parts: dict[str, bytes]) -> dict[str, Any]:
    """The manifest with sizes and hashes of these databases."""
    members = [
        {"name": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in parts.items()
    ]
    return {**manifest, "members": members}


def changed_database(random: Random, data: bytes) -> bytes:
    """Bytes of pages, of the header above all; sometimes another file altogether."""
    kind = random.random()
    if kind < 0.05:
        return random.choice(
            (b"", b"x", b"SQLite format 3\x00", data[:100], data[: _PAGE + 50], bytes(len(data)), data + bytes(_PAGE))
        )
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8, 60))):
        if kind < 0.3:
            at = random.randrange(100)  # the database's header
        elif kind < 0.6:
            at = random.randrange(len(data) // _PAGE) * _PAGE + random.randrange(24)  # that of a page
        else:
            at = random.randrange(len(data))
        changed[at] = random.choice((0, 1, 0x7F, 0xFF, changed[at] ^ 1 << random.randrange(8)))
    if kind > 0.9:
        del changed[random.randrange(len(changed)) :]
    return bytes(changed)


def _hostile_entries(random: Random, sound: bytes) -> bytes:
    """Headers that send a reader of tars in circles, or far away."""
    first, rest = sound[:_MANIFEST_END], sound[_MANIFEST_END:]
    many = random.choice((1, 3, 1_200))
    kind = random.choice((b"L", b"K", b"x", b"g", b"S", b"X", b"1", b"2", b"3", b"6", b"7", b"\x00", b"Z"))
    content = random.choice(
        (
            b"state.db\x00",
            b"18 size=99999999999\n",
            b"6 a=b\n",
            b"99 a=b\n",
            b"0 a=b\n",
            b"x",
            b"24 GNU.sparse.major=1\n24 GNU.sparse.minor=0\n",
        )
    )
    return first + _header(random, kind, content) * many + rest


def _header(random: Random, kind: bytes, content: bytes) -> bytes:
    entry = tarfile.TarInfo("x")
    entry.size = len(content)
    head = bytearray(entry.tobuf(tarfile.GNU_FORMAT)[:BLOCK])
    head[156:157] = kind
    if random.random() < 0.4:
        head[124:136] = random.choice(
            (
                b"\xff" * 12,
                b"\x80" + b"\x7f" * 11,
                b"77777777777\x00",
                b"-0000000001\x00",
                b"\xff" * 4 + bytes(8),
                b" " * 12,
            )
        )
    return _summed(head) + content.ljust(BLOCK, b"\0")


def _summed(head: bytearray) -> bytes:
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def _odd_manifest(random: Random, manifest: dict[str, Any]) -> dict[str, Any]:
    made = json.loads(json.dumps(manifest))
    for _ in range(random.choice((1, 1, 2))):
        places = (
            [made, *made["members"]]
            if isinstance(made.get("members"), list) and all(isinstance(m, dict) for m in made["members"])
            else [made]
        )
        place = random.choice(places)
        key = random.choice(sorted(place))
        if random.random() < 0.2:
            del place[key]
        else:
            place[key] = random.choice(_ODD)
    return made  # type: ignore[no-any-return]


def backup(random: Random, sound: bytes) -> bytes:
    """One that is to be refused, or restored as far as it is right."""
    manifest, parts = parts_of(sound)
    kind = random.random()
    if kind < 0.12:
        return mutated(random, sound, _TOKENS)
    if kind < 0.22:
        at = random.randrange(min(len(sound), _MANIFEST_END + BLOCK))
        return sound[:at] + random.choice(_TOKENS) + sound[at:]
    if kind < 0.34:
        return _hostile_entries(random, sound)
    if kind < 0.4:
        deep = random.choice(
            (
                b"[" * 4_000,
                b'{"a":' * 800,
                b'{"version":1,"members":' + b"[" * 4_000,
                b"9" * 4_095,
                b"\xff\xfe[\x00",
                b'{"version":' + b"1" * 4_000 + b"}",
            )
        )
        return sound[:BLOCK] + deep[:4096].ljust(4096) + sound[_MANIFEST_END:]
    if kind < 0.52:
        return whole(parts, _odd_manifest(random, manifest))
    if kind < 0.56:
        parts = (
            dict(reversed(parts.items()))
            if random.random() < 0.5
            else {**parts, random.choice(("z", "../z", "state.db-wal")): b"x"}
        )
        return whole(parts, described(manifest, parts))
    if kind < 0.58:
        return sound
    name = random.choice(sorted(parts))
    parts[name] = changed_database(random, parts[name])
    return whole(parts, described(manifest, parts))

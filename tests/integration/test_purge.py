"""`rm --purge`: what is removed is in none of the index's files any more, and what is left there is counted."""

from contextlib import closing
from pathlib import Path

import pytest

from app import maintenance
from app.present_maintenance import remove_json, remove_text
from app.wiring import writable_base
from domain.errors import LockedError, NotBuiltError
from domain.settings import Settings
from domain.status import Tier
from store import compacting, traces, vector_queries
from store.connection import open_reader
from store.traces import PIECE_BYTES, PieceFinder, pieces_of
from tests.support.bases import (
    TEXTS,
    assert_sound,
    build_base,
    index_into,
    keys_of,
    layout_of,
    settings_of,
    write_files,
)
from tests.support.vector_stores import embed_base

SECRET = "the launch code of the northern station is violet-heron-48151 and nobody may ever repeat it"
SHARED = "this sentence stands in the licence of each and every file that anybody has ever written here"
KEPT = "a quite different sentence about the tides of the harbour, which is to stay where it is"


def long_text(sentence: str, name: str) -> str:
    """Long enough to fill pages of its own."""
    parts = [f"## Part {n} of {name}\n\n{sentence} {n}. " + f"filling {name} words {n} " * 40 for n in range(20)]
    return f"# {name}\n\n{SHARED}\n\n" + "\n\n".join(parts) + "\n"


@pytest.fixture
def base(place: Path) -> Settings:
    texts = {"secret.md": long_text(SECRET, "secret"), "kept.md": long_text(KEPT, "kept"), **TEXTS}
    return build_base(place, texts)


def holds(settings: Settings, text: str) -> bool:
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    return any(text.encode() in path.read_bytes() for path in files)


def take(settings: Settings, prefix: str) -> traces.Pieces:
    path = layout_of(settings).database
    with closing(open_reader(path)) as connection:
        return traces.take_pieces(connection, path, [prefix])


def test_a_plain_removal_leaves_the_text_in_the_files(base: Settings, place: Path) -> None:
    """What a purge is for: without its steps the text is there, and the search finds it."""
    pieces = take(base, "docs/secret.md")
    maintenance.remove_paths(base, place, ["docs/secret.md"])
    assert holds(base, SECRET)
    path = layout_of(base).database
    with closing(open_reader(path)) as connection:
        own = pieces.without(traces.common_pieces(connection, path, pieces.all))
    found = traces.find_traces(layout_of(base), own.all)
    assert [trace.path for trace in found] == [path]
    assert found[0].places >= len(own.all) > 0


@pytest.mark.parametrize("left_out", ["rewrite_whole", "merge_full_text"])
def test_each_step_is_needed(base: Settings, place: Path, monkeypatch: pytest.MonkeyPatch, left_out: str) -> None:
    monkeypatch.setattr(compacting, left_out, lambda *_: None)
    report = maintenance.purge_paths(base, place, ["docs/secret.md"])
    assert report.purge is not None
    if left_out == "rewrite_whole":
        assert report.purge.places > 0
        assert report.exit_status == 3
        assert holds(base, SECRET)
    else:  # full text holds words, not sentences
        assert report.purge.is_clean
        assert holds(base, "iolet") or holds(base, "48151")


def test_a_purge_leaves_nothing(base: Settings, place: Path) -> None:
    assert holds(base, SECRET)
    report = maintenance.purge_paths(base, place, ["docs/secret.md"])
    assert (report.documents, report.exit_status) == (1, 0)
    purge = report.purge
    assert purge is not None
    assert (purge.places, purge.is_clean, purge.is_log_truncated) == (0, True, True)
    told = remove_text(report, Tier.LEXICAL)
    assert f"looked for in the index's files: {purge.pieces} pieces of 1 document, found at 0 places" in told
    assert "not covered: backups" in told
    assert remove_json(report, Tier.LEXICAL)["purge"]["is_clean"] is True
    assert (purge.documents, purge.documents_searched) == (1, 1)
    assert purge.pieces >= 4
    assert purge.bytes_after < purge.bytes_before
    for gone in (SECRET, SECRET[10:40], "northern", "violet", "heron", "48151", "iolet"):
        assert not holds(base, gone), gone
    assert holds(base, KEPT)
    assert holds(base, SHARED)
    assert "docs/secret.md" not in keys_of(base)
    assert_sound(base)


def test_a_folder_and_a_root(base: Settings, place: Path) -> None:
    report = maintenance.purge_paths(base, place, ["docs/sub/", "docs/nothing.md"])
    assert report.purge is not None
    assert (report.documents, report.exit_status, report.purge.places) == (2, 4, 0)
    whole = maintenance.purge_paths(base, place, [], root="docs")
    assert whole.root is not None
    assert whole.purge is not None
    assert (whole.root.documents, whole.purge.places, whole.exit_status) == (5, 0, 0)
    for gone in (SECRET, KEPT, SHARED):
        assert not holds(base, gone)
    assert_sound(base)


def test_a_file_that_became_a_folder_is_purged_with_what_lies_in_it(base: Settings, place: Path) -> None:
    """What lies in it is removed, so it is looked for as well."""
    (place / "docs" / "a.md").unlink()
    write_files(place / "docs", {"a.md/inner.md": long_text(f"{SECRET}, within", "inner")})
    with writable_base(base, "test") as held:
        index_into(held, base, place / "docs", "docs", ["a.md/inner.md"])
    report = maintenance.purge_paths(base, place, ["docs/a.md"])
    assert report.purge is not None
    assert (report.documents, report.purge.places) == (2, 0)
    assert report.purge.pieces >= 4, "those of the long text in the folder"
    assert not holds(base, f"{SECRET}, within")


def test_earlier_versions_and_earlier_removals_go_too(base: Settings, place: Path) -> None:
    write_files(place / "docs", {"a.md": f"# A\n\n{SECRET}, said again\n"})
    with writable_base(base, "test") as held:
        index_into(held, base, place / "docs", "docs", ["a.md"])
    write_files(place / "docs", {"a.md": "# A\n\nharmless words instead of what stood here\n"})
    with writable_base(base, "test") as held:
        index_into(held, base, place / "docs", "docs", ["a.md"])
    maintenance.remove_paths(base, place, ["docs/secret.md"])
    assert holds(base, SECRET)
    again = maintenance.purge_paths(base, place, ["docs/secret.md"])
    assert again.exit_status == 4  # it is not indexed any more
    assert again.purge is not None
    assert (again.purge.documents, again.purge.pieces, again.purge.places) == (0, 0, 0)
    assert not holds(base, SECRET)
    assert_sound(base)


def test_the_spool_is_emptied(base: Settings, place: Path) -> None:
    spool = layout_of(base).spool
    spool.mkdir(exist_ok=True)
    (spool / "1-1-1.page").write_bytes(SECRET.encode())
    (spool / "1-1-2.part").write_bytes(SECRET.encode())
    report = maintenance.purge_paths(base, place, ["docs/secret.md"])
    assert report.purge is not None
    assert report.purge.is_clean
    assert not holds(base, SECRET)


def test_what_is_left_is_counted_and_named(base: Settings, place: Path) -> None:
    """A file that nobody expects in the spool: the search sees it, and the exit status says so."""
    spool = layout_of(base).spool
    spool.mkdir(exist_ok=True)
    (spool / "strange.bin").write_bytes(b"x" * 7 + long_text(SECRET, "secret").encode())
    report = maintenance.purge_paths(base, place, ["docs/secret.md"])
    assert report.purge is not None
    assert [trace.path.name for trace in report.purge.traces] == ["strange.bin"]
    assert report.purge.places >= report.purge.pieces > 0
    assert report.exit_status == 3
    told = remove_text(report, Tier.LEXICAL)
    assert f"still in {spool / 'strange.bin'}: {report.purge.places} places" in told
    assert remove_json(report, Tier.LEXICAL)["purge"]["is_clean"] is False


def test_a_reader_that_stays_keeps_text_and_is_named(
    base: Settings, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.connection.BUSY_TIMEOUT_S", 0.05)
    with closing(open_reader(layout_of(base).database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchone()
        monkeypatch.setattr(traces, "find_traces", lambda *_: ())  # this process has the file open
        report = maintenance.purge_paths(base, place, ["docs/secret.md"])
        assert report.purge is not None
        assert not report.purge.is_log_truncated
        assert report.exit_status == 3


def test_no_store_file_is_read_while_sqlite_has_it_open(
    base: Settings, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open and close one would drop SQLite's locks (reliability, finding 1)."""
    look = traces.find_traces

    def find(layout: object, pieces: frozenset[bytes]) -> tuple[traces.Trace, ...]:
        held = [path.readlink().name for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        assert not [name for name in held if name.startswith(("knowledge.db", "state.db"))]
        assert "knowledge.lock" in held
        return look(layout, pieces)  # type: ignore[arg-type]

    monkeypatch.setattr(traces, "find_traces", find)
    report = maintenance.purge_paths(base, place, ["docs/secret.md"])
    assert report.purge is not None
    assert report.purge.is_clean


def test_vectors_of_the_removed_texts_go(place: Path) -> None:
    settings = build_base(place)
    with writable_base(settings, "test") as held:
        embed_base(held.writer)
        before = vector_queries.counts(held.writer.connection).vectors
    report = maintenance.purge_paths(settings, place, ["docs/sub/"])
    assert report.purge is not None
    with writable_base(settings, "test") as held:
        counts = vector_queries.counts(held.writer.connection)
    assert (counts.vectors, counts.unused) == (before - report.purge.vectors_dropped, 0)
    assert 0 < counts.vectors < before
    assert_sound(settings)


def test_a_copy_of_what_stays_is_not_looked_for(place: Path) -> None:
    texts = {"one.md": f"# One\n\n{SHARED}\n", "two.md": f"# Two\n\n{SHARED}\n", "tiny.md": "# T\n\nhi\n"}
    settings = build_base(place, texts)
    report = maintenance.purge_paths(settings, place, ["docs/one.md", "docs/tiny.md"])
    assert report.purge is not None
    assert (report.purge.documents, report.purge.documents_searched, report.purge.places) == (2, 0, 0)
    told = remove_text(report, Tier.LEXICAL)
    assert "found at" not in told  # nothing was looked for: that is not said to be clean
    assert "not looked for: 2 documents" in told
    assert remove_json(report, Tier.LEXICAL)["purge"]["is_clean"] is None
    assert holds(settings, SHARED)


def test_a_command_takes_effect_once(base: Settings, place: Path) -> None:
    assert not maintenance.purge_paths(base, place, ["docs/secret.md"], command_id="p1").is_repeated
    assert maintenance.purge_paths(base, place, ["docs/secret.md"], command_id="p1").is_repeated


def test_a_purge_that_was_broken_off_is_done_by_the_same_command(
    base: Settings, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(compacting, "rewrite_whole", break_off)
        with pytest.raises(KeyboardInterrupt):
            maintenance.purge_paths(base, place, ["docs/secret.md"], command_id="p1")
    assert holds(base, SECRET)
    again = maintenance.purge_paths(base, place, ["docs/secret.md"], command_id="p1")
    assert again.purge is not None
    assert again.purge.is_clean
    assert not holds(base, SECRET)
    assert_sound(base)


def test_what_it_needs(base: Settings, place: Path) -> None:
    with writable_base(base, "knowledge index"), pytest.raises(LockedError, match="knowledge index"):
        maintenance.purge_paths(base, place, ["docs/secret.md"])
    with pytest.raises(NotBuiltError):
        maintenance.purge_paths(settings_of(place / "nowhere"), place, ["x"])


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 23, 511, 4096 - 24])
def test_a_piece_is_found_at_any_offset(offset: int) -> None:
    piece = SECRET.encode()[:PIECE_BYTES]
    finder = PieceFinder(frozenset({piece, KEPT.encode()[:PIECE_BYTES]}))
    assert finder.found_in(b"." * offset + piece + b"." * 9) == [piece]
    assert finder.found_in(b"." * offset + piece[:-1]) == []


def test_a_place_across_two_blocks_is_found_once(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = SECRET.encode()[:PIECE_BYTES]
    spool = layout_of(base).spool
    spool.mkdir(exist_ok=True)
    (spool / "odd.page").write_bytes(piece * 50)
    for block_bytes in (64, 100, 1000, 4096):
        monkeypatch.setattr(traces, "BLOCK_BYTES", block_bytes)
        found = traces.find_traces(layout_of(base), frozenset({piece}))
        assert sum(trace.places for trace in found if trace.path.name == "odd.page") == 50


def test_nothing_to_look_for() -> None:
    assert PieceFinder(frozenset()).found_in(b"anything at all, of some length") == []
    assert pieces_of([], 8) == ()
    assert pieces_of([b"short", b"-" * 200], 8) == ()
    many = pieces_of([SECRET.encode() * 5, KEPT.encode()], 3)
    assert 0 < len(many) <= 3
    assert all(len(piece) == PIECE_BYTES for piece in many)

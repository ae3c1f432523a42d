"""What inputs that nobody would send have brought out, each as a test of its own."""

import tarfile
import warnings
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from app.backing_up import back_up, restore
from app.config import locate, read
from app.config_roots import place_problems
from app.evaluation_collection import DOCUMENTS, read_documents
from app.failures import of_keys
from app.present_safe import name, typed
from app.removal_targets import targets_of
from app.runs import known_run
from app.showing import KnownPlaces, ShownChunk, ShowRequest, show, show_chunk
from app.wiring import readable_base
from domain.citations import Citation
from domain.errors import ConfigurationError, IntegrityError, KnowledgeError, NotFoundError, UsageError
from domain.settings import RootSettings
from domain.status import Standing
from retrieval.path_filter import compile_glob
from retrieval.vocabulary import WordsRequest, list_words
from retrieval.word_pattern import MAX_WIDE_RANGES, compile_pattern
from scheduler.queue import leases, troubles
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import PayloadError, decode_write
from store import driver
from store.lock import holder_of
from store.port import Visibility
from tests.support.bases import build_base, layout_of, settings_of
from tests.support.fuzz_tars import BLOCK, described, parts_of, whole
from tests.support.payloads import write

NOWHERE = KnownPlaces((), (), Path("/"), "")


@pytest.mark.parametrize(
    ("glob", "matches", "not_matches"),
    [
        ("[!]", "docs/[!]", "docs/a"),
        ("[!]]", "docs/a", "docs/]"),
        ("[^]a]", "docs/b", "docs/]"),
        ("[\n-\t]", "docs/\n", "docs/a"),
        ("[+--]", "docs/,", "docs/."),
        ("[a--b]", "docs/-", "docs/c"),
        ("[]-a]", "docs/_", "docs/b"),
    ],
)
def test_a_set_of_a_path_pattern_is_always_one(glob: str, matches: str, not_matches: str) -> None:
    """Two of them were errors of the engine that nobody caught, others warned on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pattern = compile_glob(glob)
    assert pattern.fullmatch(matches) and not pattern.fullmatch(not_matches)


def test_flags_that_exclude_each_other_are_told() -> None:
    with pytest.raises(UsageError, match="incompatible"):
        compile_pattern("(?a)(?u)x")


@pytest.mark.parametrize("ends", ["\uffff", "\U0010ffff", "\\uffff", "\\U0010ffff", "\\xff", "\\377"])
def test_sets_of_all_letters_are_few(ends: str) -> None:
    """The engine makes a table of each, blind to case, before any limit of time begins."""
    compile_pattern(f"[a-{ends}]" * MAX_WIDE_RANGES + "[a-z]" * 40)
    with pytest.raises(UsageError, match="ranges"):
        compile_pattern(f"[a-{ends}]" * (MAX_WIDE_RANGES + 1))


@pytest.mark.parametrize("target", ["\udcff", "docs/\udcff#0", "\ud800", "<U+D800>", "<U+DCFF>#0"])
def test_a_name_that_is_no_text_is_not_found(tmp_path: Path, target: str) -> None:
    """Nothing of it was indexed: it was refused with the words and the status of a store that cannot take a row."""
    settings = build_base(tmp_path)
    with readable_base(settings) as base, base.store.snapshot() as snapshot:
        with pytest.raises(NotFoundError):
            show(snapshot, ShowRequest(target), NOWHERE)
        with pytest.raises(NotFoundError):
            show_chunk(snapshot, Citation(target, 0), 0, 0, lambda: Standing.COMPLETE)
        with pytest.raises(NotFoundError):
            of_keys(base.state, [target])
        if "\ud800" not in target:  # which no argument of a program can hold
            (found,) = targets_of(layout_of(settings), base.state, tmp_path, [target])
            assert found.prefix == ""


@pytest.mark.parametrize(
    "written", ["a<U+0041>\t.md", "<U+0009>", "<U+003C>", "<<U+0041>", "<U+110000>", "\t<U+12>", "<U+\u202e0041>"]
)
def test_what_is_shown_of_a_name_is_that_name_again(written: str) -> None:
    """A name that holds a code itself was shown like the one that it spells."""
    assert typed(name(written)) == written
    assert name("<U+0009>") != name("\t")


def test_a_limit_beyond_every_list_lists_all(tmp_path: Path) -> None:
    settings = build_base(tmp_path)
    with readable_base(settings) as base, base.store.snapshot() as snapshot:
        by_word = list_words(snapshot, WordsRequest("fox", limit=10**30, sort="word"))
        assert [word.word for word in by_word.words] == ["fox"]


def test_numbers_beyond_the_store_are_of_nothing(tmp_path: Path) -> None:
    """More neighbours than the store can count are all of them; such a run there is none."""
    settings = build_base(tmp_path)
    with readable_base(settings) as base, base.store.snapshot() as snapshot:
        shown = show(snapshot, ShowRequest("docs/a.md#1", before=10**30, after=10**30), NOWHERE)
        assert isinstance(shown, ShownChunk) and [chunk.ordinal for chunk in shown.chunks] == [0, 1]
        with pytest.raises(NotFoundError, match="there is no run"):
            known_run(base.state, 2**63)


@pytest.mark.parametrize("written", ["x" * 5_000, "y/" * 3_000 + "b.tar"])
def test_a_backup_with_a_name_that_no_system_takes_is_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(UsageError):
        back_up(build_base(tmp_path), tmp_path / written, force=False)


@pytest.mark.parametrize("column", ["roots", "counts", "progress"])
@pytest.mark.parametrize("value", [b"\x01", b"[" * 3_000], ids=["bytes", "deep"])
def test_a_row_that_was_never_written_is_told_as_damage(tmp_path: Path, column: str, value: bytes) -> None:
    """T30: what a flipped bit makes of the JSON in state.db was an error that nobody caught."""
    settings = build_base(tmp_path)
    with closing(driver.connect(str(layout_of(settings).state), uri=False, timeout_s=5)) as connection:
        connection.execute(f"UPDATE runs SET {column} = CAST(? AS TEXT)", (value,))  # noqa: S608 - a name of ours
    with readable_base(settings) as base, pytest.raises(IntegrityError, match=r"state\.db is damaged"):
        base.state.runs()


DEEP = b"[" * 3_000 + b"]" * 3_000


@pytest.mark.parametrize("manifest", [DEEP[:4_000], b'{"version": ' + b"[" * 3_500])
def test_a_manifest_that_goes_deep_is_damaged(tmp_path: Path, manifest: bytes) -> None:
    settings = build_base(tmp_path)
    back_up(settings, tmp_path / "b.tar", force=False)
    sound = (tmp_path / "b.tar").read_bytes()
    (tmp_path / "b.tar").write_bytes(sound[:BLOCK] + manifest.ljust(4096) + sound[BLOCK + 4096 :])
    with pytest.raises(IntegrityError):
        restore(settings_of(tmp_path / "other"), tmp_path / "b.tar", force=False)


def test_a_tar_of_names_for_names_is_damaged(tmp_path: Path) -> None:
    """Each header says that the next is the one: a reader of tars calls itself for each."""
    settings = build_base(tmp_path)
    back_up(settings, tmp_path / "b.tar", force=False)
    sound = (tmp_path / "b.tar").read_bytes()
    long_name = tarfile.TarInfo("x")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 1
    header = long_name.tobuf(tarfile.GNU_FORMAT) + b"x".ljust(BLOCK, b"\0")
    at = BLOCK + 4096
    (tmp_path / "b.tar").write_bytes(sound[:at] + header * 2_000 + sound[at:])
    with pytest.raises(IntegrityError):
        restore(settings_of(tmp_path / "other"), tmp_path / "b.tar", force=False)


@pytest.mark.parametrize("content", [b"", b"no database " * 900], ids=["empty", "text"])
@pytest.mark.parametrize("part", ["knowledge.db", "state.db"])
def test_a_backup_of_what_was_damaged_is_told_as_such(tmp_path: Path, part: str, content: bytes) -> None:
    """Not as damage of the index of this base, with advice to empty it."""
    settings = build_base(tmp_path)
    back_up(settings, tmp_path / "b.tar", force=False)
    manifest, parts = parts_of((tmp_path / "b.tar").read_bytes())
    parts[part] = content
    (tmp_path / "b.tar").write_bytes(whole(parts, described(manifest, parts)))
    with pytest.raises(KnowledgeError) as caught:
        restore(settings, tmp_path / "b.tar", force=True)
    assert str(tmp_path / "b.tar") in caught.value.message
    assert "reset" not in caught.value.hint and "restore.part" not in caught.value.message
    with readable_base(settings) as base, base.store.snapshot() as snapshot:
        assert snapshot.text("docs/a.md", visibility=Visibility.everything())


def test_thousands_of_folders_are_compared_in_a_moment(tmp_path: Path) -> None:
    """Pair by pair, eight thousand took a minute; each is told of the first that it overlaps with."""
    roots = [RootSettings(tmp_path / f"d{number}") for number in range(8_000)]
    roots += [RootSettings(tmp_path / "d7" / "in"), RootSettings(tmp_path), RootSettings(tmp_path / "d3")]
    problems = {problem.key: problem.text for problem in place_problems(roots, tmp_path / "x" / "home", {})}
    assert set(problems) == {"paths[8000]", "paths[8001]", "paths[8002]"}
    assert problems["paths[8000]"].endswith("(paths[7])")
    assert problems["paths[8001]"].endswith("(paths[0])")
    assert problems["paths[8002]"].endswith("(paths[3])")


@pytest.mark.parametrize("variable", ["PATHS", "SCHEDULES"])
def test_half_a_character_in_a_variable_is_told(tmp_path: Path, variable: str) -> None:
    environ = {f"KNOWLEDGE_{variable}": '[{"name": "\\ud800", "path": "\\ud800", "cron": "* * * * *"}]'}
    with pytest.raises(ConfigurationError, match=variable):
        read(locate(tmp_path, config=None, environ={}), environ, cwd=tmp_path)


def test_a_zero_byte_within_a_folder_of_a_schedule_is_told(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "knowledge.yaml").write_text(
        'knowledge:\n  paths: [docs]\n  schedules:\n    - {name: a, cron: "* * * * *", roots: ["do\\0cs"]}\n', "utf-8"
    )
    (tmp_path / "knowledge.yaml").chmod(0o600)
    with pytest.raises(ConfigurationError, match=r"schedules\[0\].roots"):
        read(locate(tmp_path, config=None, environ={}), {}, cwd=tmp_path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that opens and cannot be read is needed")
def test_a_configuration_that_cannot_be_read_to_its_end_is_told(tmp_path: Path) -> None:
    located = locate(tmp_path, config=Path("/proc/self/mem"), environ={})
    with pytest.raises(ConfigurationError, match="Cannot read"):
        read(located, {}, cwd=tmp_path)


@pytest.mark.parametrize(
    "spool_name", ["1-1-1\x00.page", "1" * 300 + "-1-1.page", "notes.txt", "1-1-1.page\n", "1-1-1.page.part"]
)
def test_a_page_has_the_name_of_a_page(spool_name: str) -> None:
    """T26: a zero byte in it, or more than a name can hold, ended the writer."""
    with pytest.raises(PayloadError):
        decode_write(write(name=spool_name))
    assert decode_write(write()).name == "1-1-1.page"


class ListedOnce:
    """A queue whose lists hold this one thing."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def pipeline(self, *, transaction: bool) -> "ListedOnce":
        return self

    async def __aenter__(self) -> "ListedOnce":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def lrange(self, *_: object) -> None: ...

    def delete(self, *_: object) -> None: ...

    async def execute(self) -> tuple[list[bytes], int]:
        return [self._value], 1

    async def scan_iter(self, **_: object) -> AsyncIterator[bytes]:
        yield b"a lease"

    async def mget(self, keys: list[bytes]) -> list[bytes]:
        return [self._value for _ in keys]


async def test_notes_in_the_queue_that_go_deep_are_passed_over() -> None:
    """T26: a few kilobytes in a list of the broker ended whoever read it."""
    names = QueueNames("base")
    deep = b"\x81\xa1z" + b"\x91" * 3_000 + b"\xc0"
    assert await troubles.take_troubles(ListedOnce(deep), names) == []  # type: ignore[arg-type]
    note = b'{"z":' + DEEP + b"}"
    assert list(await leases.live_leases(ListedOnce(note), names)) == []  # type: ignore[arg-type]
    assert leases.read_notes([note, None]) == [], "as a roll call reads them"


def test_a_holder_and_a_document_that_go_deep_are_none(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(DEEP)
    assert holder_of(tmp_path / "lock") == ""
    (tmp_path / DOCUMENTS).write_bytes(b'{"_id":"a","z":' + DEEP + b"}\n")
    with pytest.raises(UsageError, match="line 1"):
        list(read_documents(tmp_path))

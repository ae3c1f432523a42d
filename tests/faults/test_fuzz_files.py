"""Files of every content and name, through all of what reads, cuts, stores, walks and shows (T1..T3, T6..T12).

What is stored is compared with what lay on the disk, byte for byte; each store is audited at its end.
"""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from app.present_documents import chunk_text, document_on_terminal, exact_chunks
from app.present_safe import name as shown_name
from app.showing import KnownPlaces, ShownChunk, ShownDocument, ShowRequest, show
from app.wiring import WritableBase, writable_base
from domain.citations import Citation
from domain.files import FileCheck, FileFailure, Page, Reason
from domain.keys import is_plain_text
from domain.settings import EXTENSIONS, RootSettings
from domain.status import Standing, Tier
from scheduler.ignore_rules import IGNORE_FILE_NAME, scope_of_root
from scheduler.walk import WalkReport, WalkRules, walk
from store.port import Snapshot, Visibility
from store.run_port import RunRecord
from store.sqlite import SqliteStore
from store.state_port import RootRecord
from store.write_port import DocumentWrite, SkipWrite
from tests.support.audit import audit
from tests.support.bases import settings_of
from tests.support.depth import scaled
from tests.support.figures import NoteFigure
from tests.support.frame_checks import assert_harmless
from tests.support.fuzz_texts import MONSTER_BYTES, contents, file_name, ignore_lines
from tests.support.fuzz_trying import ASKED, Trial, chooser
from tests.support.scratch import scratch_directory
from workers.checking import Checked, CheckRules, check_file, finished_page
from workers.chunker import MAX_BREADCRUMB_CHARS, WHOLE_BYTES
from workers.reading import RootReader
from workers.writer.groups import apply_halving, group_of

FILES, NAMES = scaled(160, ASKED), scaled(160, ASKED + 500)  # some names come twice
A_STORE = 1_000  # inputs; the audit reads all of a store into memory
A_GROUP = 50
A_TREE = scaled(50, 250)
EVERYTHING = Visibility.everything()
MARKDOWN_CHUNK_BYTES = 4 * WHOLE_BYTES  # no body is larger, whatever it is made of
EXCLUDED = "memory"


def new_run(base: WritableBase, root: Path) -> RunRecord:
    base.state.add_root(RootRecord("docs", str(root)))
    began = RunRecord(0, 0, "index", "test", ("docs",), "walking", 1, None, {})
    return base.state.begin_run(began, floor_generation=base.writer.highest_generation())


def stores(base: WritableBase, run: RunRecord, checked: list[Checked]) -> str:
    """As the writer does it. Whatever it cannot store is a fault of the checks before."""
    page = finished_page(_page_of(checked), run.id, checked)
    assert not page.failures, page.failures[:3]
    for at in range(0, len(checked), A_GROUP):
        group = group_of([finished_page(_page_of(checked), run.id, checked[at : at + A_GROUP])])
        assert apply_halving(base.writer, group).refused == ()
    base.writer.close_generation(run.generation, complete=True)
    return "stores"


def _page_of(checked: list[Checked]) -> Page:
    return Page(1, "docs", tuple(FileCheck(one.key) for one in checked))


def rightly(raw: bytes, checked: Checked) -> str:
    """The outcome of a check, which must be what the bytes ask for."""
    assert not isinstance(checked, FileFailure), checked
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = None
    if isinstance(checked, SkipWrite):
        right = Reason.NOT_UTF8 if text is None else Reason.EMPTY
        assert checked.reason is (Reason.TOO_LARGE if len(raw) > MONSTER_BYTES else right)
        return checked.reason.value
    assert isinstance(checked, DocumentWrite) and text is not None and len(raw) <= MONSTER_BYTES
    assert "".join(row[7] + row[8] for row in checked.chunks) + checked.tail == text
    for chunk in checked.chunks:
        assert len(chunk[8].encode()) <= MARKDOWN_CHUNK_BYTES and len(chunk[6]) <= MAX_BREADCRUMB_CHARS
    return "documents"


def stored_texts(base: WritableBase, wanted: dict[str, bytes]) -> Iterator[str]:
    """Keys whose text is not what lay on the disk."""
    with (
        closing(SqliteStore(base.layout.database, base_id=base.state.base_id())) as store,
        store.snapshot() as snapshot,
    ):
        for key, raw in wanted.items():
            text = snapshot.text(key, visibility=EVERYTHING)
            if text is None or text.encode() != raw:
                yield key


def try_files(trial: Trial, place: Path, numbers: range) -> None:
    """One store's worth of them."""
    root, settings = place / "docs", settings_of(place / "home")
    root.mkdir()
    checked: list[Checked] = []
    raws = {}
    with writable_base(settings, "test") as base, RootReader(root, max_file_bytes=MONSTER_BYTES) as reader:
        run = new_run(base, root)
        rules = CheckRules(root, run.generation, MONSTER_BYTES, "auto")
        for number in numbers:
            raw, name = contents(chooser("files", number)), f"{number}.{'txt' if number % 5 == 0 else 'md'}"
            (root / name).write_bytes(raw)

            def outcome(key: str = f"docs/{name}", raw: bytes = raw) -> str:
                checked.append(check_file(FileCheck(key), "docs", reader, rules, time.monotonic))
                return rightly(raw, checked[-1])

            trial.take(f"{name}: {raw[:300]!r} ({len(raw)} bytes)", outcome)
            (root / name).unlink()
            if checked and isinstance(checked[-1], DocumentWrite):
                raws[checked[-1].key] = raw
        trial.also(f"the store of {numbers}", partial(stores, base, run, checked))
        for key in stored_texts(base, raws):
            trial.fault(key, "its stored text is another than lay on the disk")
    for problem in audit(settings.home / "knowledge.db"):
        trial.fault(f"the store of {numbers}", problem)


def test_whatever_a_file_holds_is_stored_as_it_is_or_skipped_for_a_reason(note_figure: NoteFigure) -> None:
    """T6..T9, P31: contents through read, cut and store."""
    trial = Trial("files")
    for first in range(0, FILES, A_STORE):
        with scratch_directory() as place:
            try_files(trial, place, range(first, min(FILES, first + A_STORE)))
    note_figure(
        trial.figure(("P1", "P20", "P31", "T6", "T7", "T8", "T9"), "contents of files, through read, cut and store")
    )
    assert trial.faults == [], trial.report()
    assert {"documents", "not_utf8", "empty"} <= trial.outcomes.keys()


def make_tree(root: Path, numbers: range, *, ignores: bool) -> dict[bytes, bytes]:
    """Files with names of every kind, in folders of such; what was written, by the path below the root."""
    made = {}
    top = os.fsencode(root)
    folders = [b""]
    for number in numbers:
        random = chooser("names", number)
        folder = random.choice(folders)
        if random.random() < 0.25 and folder.count(b"/") < 5:
            folder += file_name(random) + b"/"
        name, text = folder + file_name(random), f"# T{number}\n\nquagga{number}\n".encode()
        try:
            os.makedirs(top + b"/" + folder, exist_ok=True)  # noqa: PTH103 - paths of bytes
            with open(top + b"/" + name, "xb") as file:  # noqa: PTH123
                file.write(text)
        except OSError:  # there is one, or the file system takes no such name
            continue
        folders.append(folder)
        made[name] = text
        if ignores and random.random() < 0.2:
            with open(top + b"/" + folder + os.fsencode(IGNORE_FILE_NAME), "wb") as file:  # noqa: PTH123
                file.write(ignore_lines(random))
    return made


def expected_keys(made: dict[bytes, bytes]) -> dict[str, bytes]:
    """What of a tree without ignore files is met, by its key: by the rules as they are described, not as they are
    written."""
    found = {}
    for name, text in made.items():
        *folders, last = name.split(b"/")
        if any(folder.startswith(b".") or folder == EXCLUDED.encode() or not _is_utf8(folder) for folder in folders):
            continue
        if _is_utf8(last) and os.fsdecode(last).lower().endswith(EXTENSIONS):
            found["docs/" + name.decode()] = text
    return found


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def shown_as_it_is(snapshot: Snapshot, places: KnownPlaces, key: str, text: bytes) -> str:
    """By its citation, by its key, by what a terminal shows of its key; harmless on a terminal."""
    citation = Citation(key, 0)
    assert Citation.parse(citation.format()) == citation
    for target in (citation.format(), shown_name(citation.format())):
        shown = show(snapshot, ShowRequest(target), places)
        assert isinstance(shown, ShownChunk) and shown.document.key == key
        assert exact_chunks(shown).encode() == (text.strip() if is_plain_text(key) else text.splitlines()[2])
        assert_harmless(chunk_text(shown, Tier.LEXICAL, Standing.COMPLETE))
    whole = show(snapshot, ShowRequest(key), places)
    assert isinstance(whole, ShownDocument) and whole.text.encode() == text
    assert_harmless(document_on_terminal(whole) + shown_name(key))
    return "shown"


def try_names(trial: Trial, place: Path, numbers: range, *, ignores: bool) -> None:
    root, settings = place / "docs", settings_of(place / "home")
    root.mkdir()
    made = make_tree(root, numbers, ignores=ignores)
    report = WalkReport()
    rules = WalkRules(root.resolve(), "docs/", EXTENSIONS, frozenset({EXCLUDED}), settings.home, scope_of_root((), ()))
    met: dict[str, Reason | None] = {}

    def walk_all() -> str:
        met.update((file.key, file.skip) for file in walk(rules, report))
        assert report.ended_well, report.problems
        return "walks"

    trial.also(f"the tree of {numbers}", walk_all)
    taken = [key for key, skip in met.items() if skip is None]
    expected = expected_keys(made)
    if not ignores and set(taken) != set(expected):
        trial.fault(f"the tree of {numbers}", f"met and not met: {sorted(set(taken) ^ set(expected))[:5]!r}")
    with writable_base(settings, "test") as base, RootReader(root, max_file_bytes=MONSTER_BYTES) as reader:
        run = new_run(base, root.resolve())
        check = CheckRules(root, run.generation, MONSTER_BYTES, "auto")
        checked = [check_file(FileCheck(key), "docs", reader, check, time.monotonic) for key in taken]
        trial.also(f"the store of {numbers}", partial(stores, base, run, checked))
        places = KnownPlaces(base.state.roots(), (RootSettings(root, "docs"),), place, str(place))
        opened = SqliteStore(base.layout.database, base_id=base.state.base_id())
        with closing(opened) as store, store.snapshot() as snapshot:
            for at, key in enumerate(taken, numbers.start):
                if key in expected:
                    trial.take(f"{at}: {key!r}", partial(shown_as_it_is, snapshot, places, key, expected[key]))
    trial.tried += len(made) - len(taken)
    trial.outcomes["left out"] += len(made) - len(taken)


@pytest.mark.skipif(os.name == "nt", reason="names of bytes are for systems that have them")
def test_whatever_a_file_is_called_it_is_met_and_shown_or_left_out_by_a_rule(note_figure: NoteFigure) -> None:
    """T1..T3, T12, P7: names through walk, store, citation and show; some beside ignore files of every content."""
    trial = Trial("names")
    for at, first in enumerate(range(0, NAMES, A_TREE)):
        with scratch_directory() as place:
            try_names(trial, place, range(first, min(NAMES, first + A_TREE)), ignores=at % 3 == 2)
    note_figure(
        trial.figure(("P7", "P20", "T1", "T2", "T3", "T12"), "names of files, through walk, store, citation and show")
    )
    assert trial.faults == [], trial.report()
    assert trial.outcomes["shown"] > NAMES // 8

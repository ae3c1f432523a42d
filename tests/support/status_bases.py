"""Bases in every state that a surface can find one in: made by the writer itself, then by what may happen to files."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from app.config import load_with_sources, locate
from app.maintenance import reset
from app.wiring import WritableBase, writable_base
from domain.files import FileCheck, Page
from domain.layout import BaseLayout
from domain.settings import Settings
from domain.vectors import VectorIdentity
from store import driver
from store.lock import WriteLock
from store.run_port import RunRecord
from store.state_port import RootRecord
from tests.support.bases import write_files
from tests.support.vector_stores import embed_base, pin
from workers.checking import CheckRules, check_page
from workers.writer.groups import group_of

TEXTS = {
    "a.md": "# Alpha\n\nThe quick brown fox.\n",
    "b.md": "# Beta\n\nLazy dogs sleep.\n",
    "c.md": "# Gamma\n\nA fox and a river.\n",
}
MODEL = VectorIdentity("m", "m", 24, True, "", "")
EMBEDDINGS = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}  # nobody listens there


def configure(folder: Path, **block: object) -> Settings:
    """A configuration with one root, `docs`; its settings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "docs").mkdir(exist_ok=True)
    text = json.dumps({"knowledge": {"paths": ["docs"], **block}})
    (folder / "knowledge.yaml").write_text(text, encoding="utf-8")
    located = locate(folder, config=folder / "knowledge.yaml", environ={})
    return load_with_sources(located, {}, cwd=folder).settings


def run_over(base: WritableBase, settings: Settings, texts: Mapping[str, str], *, complete: bool = True) -> None:
    """One run over the folder `docs`, recorded as `index` records it."""
    root = settings.roots[0].path
    write_files(root, texts)
    if not base.state.roots():
        base.state.add_root(RootRecord("docs", str(root.resolve())))
    run = base.state.begin_run(
        RunRecord(0, 0, "index", "cli", ("docs",), "walking", time.time_ns(), None, {}, full=True),
        floor_generation=base.writer.highest_generation(),
    )
    before = base.writer.counts().documents
    rules = CheckRules(root, run.generation, settings.max_file_bytes, settings.substring_index)
    page = Page(1, "docs", tuple(FileCheck(f"docs/{name}") for name in sorted(texts)))
    if texts:
        base.writer.apply(group_of([check_page(page, run.id, rules)]))
    base.writer.close_generation(run.generation, complete=complete)
    if complete:
        base.state.mark_full(["docs"], run.generation)
    added = base.writer.counts().documents - before
    counts = {"added": added, "skipped": len(texts) - added}
    base.state.end_run(run.id, "done" if complete else "interrupted", counts, "")


def built(folder: Path, texts: Mapping[str, str] = TEXTS, *, complete: bool = True, **block: object) -> Settings:
    settings = configure(folder, **block)
    with writable_base(settings, "test") as base:
        run_over(base, settings, texts, complete=complete)
    return settings


def cut_short(folder: Path) -> None:
    """As a first run that was killed at once leaves it."""
    settings = configure(folder)
    with writable_base(settings, "test"):
        pass
    _take_away(settings)
    BaseLayout(settings.home).database.touch(mode=0o600)


def lost(folder: Path) -> None:
    """knowledge.db is deleted; what runs there were stands in state.db."""
    _take_away(built(folder))


def without_record(folder: Path) -> None:
    for path in built(folder).home.glob("state.db*"):
        path.unlink()


def blank(folder: Path) -> None:
    """Lost, and made anew by a command that writes."""
    settings = built(folder)
    _take_away(settings)
    with writable_base(settings, "test"):
        pass


def outdated(folder: Path) -> None:
    """An older copy of knowledge.db stands in its place."""
    settings = built(folder)
    layout = BaseLayout(settings.home)
    old = layout.database.read_bytes()
    with writable_base(settings, "test") as base:
        run_over(base, settings, {"d.md": "# Delta\n\nnewer\n"})
    _take_away(settings)
    layout.database.write_bytes(old)
    layout.database.chmod(0o600)


def emptied(folder: Path) -> None:
    reset(built(folder), force=True)


def with_vectors(folder: Path, *, pending: bool = False, **embeddings: object) -> Settings:
    settings = built(folder, embeddings=EMBEDDINGS | embeddings)
    with writable_base(settings, "test") as base:
        embed_base(base.writer, MODEL)
        if pending:
            run_over(base, settings, {"d.md": "# Delta\n\nAnother fox.\n"})
    return settings


def with_first_vectors_coming(folder: Path) -> None:
    settings = built(folder, embeddings=EMBEDDINGS)
    with writable_base(settings, "test") as base:
        pin(base.writer, MODEL)


def with_other_vectors(folder: Path) -> None:
    with_vectors(folder)
    configure(folder, embeddings=EMBEDDINGS | {"model": "another"})


def of_format(folder: Path, version: int) -> None:
    settings = built(folder)
    with closing(driver.connect(str(BaseLayout(settings.home).database), uri=False, timeout_s=5)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format_version'", (str(version),))


def of_another_base(folder: Path) -> None:
    settings, other = built(folder), built(folder / "other")
    shutil.copyfile(BaseLayout(other.home).database, BaseLayout(settings.home).database)


def damaged(folder: Path) -> None:
    layout = BaseLayout(built(folder).home)
    layout.database.write_bytes(b"no database " * 1000)


def with_damaged_record(folder: Path) -> None:
    layout = BaseLayout(built(folder).home)
    layout.state.write_bytes(b"no database " * 1000)


def drifted(folder: Path) -> None:
    """A word of the full text stands in no chunk."""
    settings = built(folder)
    with closing(driver.connect(str(BaseLayout(settings.home).database), uri=False, timeout_s=5)) as connection:
        connection.execute(
            "INSERT INTO chunks_fts(rowid, body, heading_path, names) VALUES (9001, 'ghost story', '', '')"
        )


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """While another command writes."""
    home = folder / "knowledge" / "knowledge"
    with WriteLock(BaseLayout(home).lock, purpose="knowledge index"):
        yield


def _take_away(settings: Settings) -> None:
    for path in settings.home.glob("knowledge.db*"):
        path.unlink()

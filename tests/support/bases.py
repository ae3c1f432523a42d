"""Small bases built without a queue: the worker's own page check, then the writer's own groups."""

from collections.abc import Mapping
from pathlib import Path

from app import maintenance
from app.wiring import WritableBase, readable_base, writable_base
from domain.checks import CheckState
from domain.files import FileCheck, Page
from domain.layout import BaseLayout
from domain.settings import Settings
from store.port import StoreIdentity, Visibility
from store.run_port import RunRecord
from store.state_port import RootRecord
from tests.support.audit import audit
from tests.support.drifts import Drift, apply_drift
from workers.checking import CheckRules, check_page
from workers.writer.groups import group_of

TEXTS = {
    "a.md": "---\ntitle: Alpha\n---\n# Alpha\n\nThe quick brown fox.\n\n## Deeper\n\nJumps over foo_bar.baz.\n",
    "b.md": "# Beta\n\nLazy dogs sleep.\n\n" + "A paragraph of some length about rivers. " * 60 + "\n\nend\n",
    "sub/c.md": "# 東京\n\n東京都は日本の首都である。\n\n## Plain\n\nnothing but ascii\n",
    "sub/d.txt": "only text\r\nwith two lines\r\n\r\nand a second block\r\n",
    "e.md": "\ufeff# Epsilon\n\nżółw and naïve café\n\n\n",
}


ALL_KEYS = ["docs/a.md", "docs/b.md", "docs/e.md", "docs/sub/c.md", "docs/sub/d.txt"]


def settings_of(home: Path, **changes: object) -> Settings:
    return Settings(identity=home.name, home=home, config_path=None, configured=False, **changes)  # type: ignore[arg-type]


def write_files(root: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def index_into(base: WritableBase, settings: Settings, root: Path, name: str, names: list[str]) -> int:
    """One run over these files of a root, as one group; says its generation."""
    base.state.add_root(RootRecord(name, str(root)))
    run = base.state.begin_run(
        RunRecord(0, 0, "index", "test", (name,), "walking", 1, None, {}),
        floor_generation=base.writer.highest_generation(),
    )
    rules = CheckRules(root, run.generation, settings.max_file_bytes, settings.substring_index)
    page = Page(1, name, tuple(FileCheck(f"{name}/{relative}") for relative in names))
    base.writer.apply(group_of([check_page(page, run.id, rules)]))
    base.writer.close_generation(run.generation, complete=True)
    base.state.end_run(run.id, "done", {}, "")
    return run.generation


def build_base(where: Path, texts: Mapping[str, str] = TEXTS, **changes: object) -> Settings:
    """A base at `where/home` over the texts in `where/docs`, its root called docs."""
    root = where / "docs"
    root.mkdir(parents=True, exist_ok=True)
    write_files(root, texts)
    settings = settings_of(where / "home", **changes)
    with writable_base(settings, "test") as base:
        index_into(base, settings, root, "docs", sorted(texts))
    return settings


def layout_of(settings: Settings) -> BaseLayout:
    return BaseLayout(settings.home)


def keys_of(settings: Settings) -> list[str]:
    with readable_base(settings) as base:
        rows = base.store.reader().documents("", visibility=Visibility.everything())
        return [row.key for row in rows]


def identity_of(settings: Settings) -> StoreIdentity:
    with readable_base(settings) as base:
        return base.store.reader().identity()


def runs_of(settings: Settings) -> list[RunRecord]:
    with readable_base(settings) as base:
        return list(base.state.runs())


def assert_sound(settings: Settings) -> None:
    """Both opinions: the audit's and the product's own."""
    assert audit(layout_of(settings).database) == []
    assert maintenance.verify(settings, deep=True).exit_status == 0


def assert_verify_names(settings: Settings, drift: Drift, name: str, table: str, document: str) -> None:
    """After a drift, `verify` fails the check of this name, and says the table and the document ("": none)."""
    apply_drift(layout_of(settings).database, drift)
    results = {result.name: result for result in maintenance.verify(settings, deep=True).results}
    assert results[name].state is CheckState.FAIL
    assert results[name].table == table
    assert not document or document in results[name].documents
    assert not document or document in results[name].detail or table in results[name].detail

"""Following real files: over inotify where there is one, and over watchfiles (S0-71..75, P22)."""

import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.watching import WatchNotice, WatchOptions, watch_roots
from domain.errors import LockedError, UsageError
from scheduler.watch import WatchPass
from scheduler.watch_portable import WatchfilesSource
from scheduler.watch_sources import SourceOf
from scheduler.watched_folders import WatchedRoot
from tests.support.waiting import eventually_true

if sys.platform == "linux":
    from scheduler.inotify import IN_Q_OVERFLOW, Event, Inotify
    from scheduler.watch_linux import InotifySource
else:
    pytest.skip("inotify is Linux's", allow_module_level=True)

QUIET_S = 0.1
BOTH = pytest.mark.parametrize("source", [InotifySource, WatchfilesSource], ids=["inotify", "watchfiles"])


class Following:
    """A watch under way, with what it has asked for and told."""

    def __init__(self) -> None:
        self.passes: list[WatchPass] = []
        self.notices: list[WatchNotice] = []
        self.on_pass: Callable[[WatchPass], None] = lambda pass_: None
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def index(self, pass_: WatchPass) -> None:
        self.passes.append(pass_)
        self.on_pass(pass_)
        await self.may_end.wait()

    def looked_at(self, path: Path) -> bool:
        """Whether a pass has looked at the path, or at a folder above it."""
        return any(path.is_relative_to(looked) for pass_ in self.passes for looked in pass_.paths)

    def kinds(self) -> list[str]:
        return [notice.kind for notice in self.notices]


def root_of(folder: Path, **changes: object) -> WatchedRoot:
    known = {"home": str(folder / "knowledge"), "extensions": (".md",), "exclude_dirs": frozenset({"memory"})}
    return WatchedRoot(str(folder), **{**known, **changes})  # type: ignore[arg-type]


@asynccontextmanager
async def following(
    *roots: WatchedRoot, source: SourceOf = InotifySource, initial: bool = False, rescan_every_s: float = 900.0
) -> AsyncIterator[Following]:
    it = Following()
    options = WatchOptions(QUIET_S, has_initial_pass=initial, rescan_every_s=rescan_every_s, source=source)
    task = asyncio.create_task(watch_roots(roots, it.index, it.notices.append, options))
    await eventually_true(lambda: "watching" in it.kinds() or task.done())
    try:
        yield it
    finally:
        it.may_end.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled(), task.exception()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("a")
    (folder / "sub" / "b.md").write_text("b")
    return folder


@BOTH
async def test_what_changes_is_looked_at(docs: Path, source: SourceOf) -> None:
    """Writing, atomic saving, removing and renaming: each names its paths, and nothing else does."""
    async with following(root_of(docs), source=source) as it:
        (docs / "a.md").write_text("changed")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))
        temporary = docs / "sub" / ".b.md.swp"
        temporary.write_text("saved")
        temporary.replace(docs / "sub" / "b.md")
        await eventually_true(lambda: it.looked_at(docs / "sub" / "b.md"))
        (docs / "a.md").rename(docs / "c.md")
        await eventually_true(lambda: it.looked_at(docs / "c.md"))
        (docs / "c.md").unlink()
        passes = len(it.passes)
        await eventually_true(lambda: len(it.passes) > passes)
        looked = {path for pass_ in it.passes for path in pass_.paths}
        assert looked == {docs / "a.md", docs / "sub" / "b.md", docs / "c.md"}
        assert {pass_.cause for pass_ in it.passes} == {"changes"}


@BOTH
async def test_new_folders_are_watched_with_all_below_them(docs: Path, source: SourceOf) -> None:
    async with following(root_of(docs), source=source) as it:
        (docs / "new" / "deep").mkdir(parents=True)
        (docs / "new" / "deep" / "n.md").write_text("n")
        await eventually_true(lambda: it.looked_at(docs / "new" / "deep" / "n.md"))
        it.passes.clear()
        (docs / "new" / "deep" / "later.md").write_text("later")
        await eventually_true(lambda: it.looked_at(docs / "new" / "deep" / "later.md"))


@BOTH
async def test_a_folder_goes_as_one(docs: Path, source: SourceOf) -> None:
    async with following(root_of(docs), source=source) as it:
        (docs / "sub" / "b.md").unlink()
        (docs / "sub").rmdir()
        await eventually_true(lambda: any(docs / "sub" in pass_.paths for pass_ in it.passes))


async def test_a_renamed_folder_is_followed_by_its_new_name(docs: Path) -> None:
    async with following(root_of(docs)) as it:
        (docs / "sub").rename(docs / "other")
        await eventually_true(lambda: it.looked_at(docs / "other") and it.looked_at(docs / "sub"))
        it.passes.clear()
        (docs / "other" / "b.md").write_text("changed")
        await eventually_true(lambda: it.looked_at(docs / "other" / "b.md"))
        assert not it.looked_at(docs / "sub" / "b.md")


@BOTH
async def test_deleted_and_made_again_at_once_is_looked_at(docs: Path, source: SourceOf) -> None:
    """P22: delete and recreate within a millisecond."""
    async with following(root_of(docs), source=source) as it:
        (docs / "a.md").unlink()
        (docs / "a.md").write_text("again")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))


@BOTH
async def test_what_is_none_of_ours_causes_no_pass(docs: Path, source: SourceOf) -> None:
    """S0-73: the index's own directory, hidden and excluded folders, files that are no documents."""
    for name in ("knowledge", ".git", "memory"):
        (docs / name).mkdir()
    async with following(root_of(docs), source=source) as it:
        for name in ("knowledge/x.md", ".git/x.md", "memory/x.md", "picture.png"):
            (docs / name).write_text("none of ours")
        (docs / "last.md").write_text("ours")
        await eventually_true(lambda: it.looked_at(docs / "last.md"))
        assert [pass_.paths for pass_ in it.passes] == [(docs / "last.md",)]


async def test_permissions_alone_are_no_change(docs: Path) -> None:
    async with following(root_of(docs)) as it:
        (docs / "a.md").chmod(0o600)
        (docs / "sub").chmod(0o755)
        (docs / "last.md").write_text("a change")
        await eventually_true(lambda: it.looked_at(docs / "last.md"))
        assert [pass_.paths for pass_ in it.passes] == [(docs / "last.md",)]


@BOTH
async def test_changes_during_a_pass_give_exactly_one_more(docs: Path, source: SourceOf) -> None:
    """S0-71, S0-72: events are drained all the while."""
    async with following(root_of(docs), source=source) as it:
        it.may_end.clear()
        (docs / "a.md").write_text("1")
        await eventually_true(lambda: len(it.passes) == 1)
        for number in range(20):
            (docs / f"{number}.md").write_text("during")
            await asyncio.sleep(0.01)
        await asyncio.sleep(5 * QUIET_S)
        assert len(it.passes) == 1
        it.may_end.set()
        await eventually_true(lambda: len(it.passes) == 2)
        await asyncio.sleep(5 * QUIET_S)
        assert len(it.passes) == 2
        assert set(it.passes[1].paths) == {docs / f"{number}.md" for number in range(20)}


@BOTH
async def test_a_storm_ends_in_few_passes_that_cover_all(docs: Path, source: SourceOf) -> None:
    """P22, scaled: 10,000 events over 100 folders, faster than they are drained."""
    for number in range(100):
        (docs / f"d{number}").mkdir()
    async with following(root_of(docs), source=source) as it:
        for number in range(3300):  # each of them made, written and closed
            (docs / f"d{number % 100}" / f"{number}.md").write_text("x")
        await eventually_true(lambda: any(docs in pass_.paths for pass_ in it.passes))
        (docs / "last.md").write_text("x")
        await eventually_true(lambda: any(docs / "last.md" in p.paths or docs in p.paths for p in it.passes[1:]))
        assert max(len(pass_.paths) for pass_ in it.passes) <= 550


async def test_the_kernels_word_that_events_were_lost_means_a_look_at_everything(docs: Path) -> None:
    """P22: IN_Q_OVERFLOW, for which other watchers have no word."""

    class Overflowing(Inotify):
        def read(self) -> list[Event]:
            return [Event(-1, IN_Q_OVERFLOW, "")] if super().read() else []

    async with following(root_of(docs), source=lambda r, s: InotifySource(r, s, Overflowing)) as it:
        (docs / "a.md").write_text("lost")
        await eventually_true(lambda: WatchPass("rescan", (docs,)) in it.passes)


class Limited(Inotify):
    """A kernel that takes two watches."""

    taken = 0

    def add(self, folder: str) -> int:
        self.taken += 1
        if self.taken > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().add(folder)


async def test_an_exhausted_limit_is_one_warning_and_the_watch_goes_on(docs: Path) -> None:
    """S0-75: what cannot be watched is looked at now and then, what can be is followed."""
    for number in range(5):
        (docs / f"d{number}").mkdir()
    source: SourceOf = lambda roots, sink: InotifySource(roots, sink, Limited)  # noqa: E731
    async with following(root_of(docs), source=source, rescan_every_s=0.2) as it:
        await eventually_true(lambda: len([pass_ for pass_ in it.passes if pass_.cause == "rescan"]) >= 3)
        (docs / "a.md").write_text("followed")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))
        limited = [notice for notice in it.notices if notice.kind == "limited"]
        assert [notice.limit for notice in limited] == ["max_user_watches"]


async def test_without_a_queue_of_the_kernels_everything_is_looked_at_now_and_then(docs: Path) -> None:
    class Refused(Inotify):
        def __init__(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    source: SourceOf = lambda roots, sink: InotifySource(roots, sink, Refused)  # noqa: E731
    async with following(root_of(docs), source=source, rescan_every_s=0.1) as it:
        await eventually_true(lambda: len(it.passes) >= 2)
        assert [notice.limit for notice in it.notices if notice.kind == "limited"] == ["max_user_instances"]


@pytest.mark.parametrize("name", ["\udcff.md", "line\nbreak.md"])
async def test_odd_names_do_not_end_the_watch(docs: Path, name: str) -> None:
    async with following(root_of(docs)) as it:
        (docs / name).write_text("odd")
        await eventually_true(lambda: it.looked_at(docs / name))
        (docs / "a.md").write_text("after it")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))


async def test_a_watchfiles_that_breaks_down_is_replaced_and_everything_looked_at(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is no UTF-8 ends watchfiles' own watcher."""
    monkeypatch.setattr("scheduler.watch_portable._AGAIN_AFTER_S", 0.1)
    async with following(root_of(docs), source=WatchfilesSource) as it:
        (docs / "\udcff.md").write_text("odd")
        await eventually_true(lambda: any(docs in pass_.paths for pass_ in it.passes))
        await eventually_true(lambda: "limited" in it.kinds())
        it.passes.clear()
        (docs / "a.md").write_text("after it")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))


async def test_a_root_of_single_files_is_watched_over_its_folder(docs: Path) -> None:
    async with following(root_of(docs, files=("a.md",))) as it:
        (docs / "other.md").write_text("not named")
        (docs / "a.md").unlink()
        (docs / "a.md").write_text("again")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))
        assert {path for pass_ in it.passes for path in pass_.paths} == {docs / "a.md"}


async def test_a_changed_ignore_file_means_a_look_at_its_root(docs: Path) -> None:
    async with following(root_of(docs)) as it:
        (docs / ".knowledgeignore").write_text("sub/\n")
        await eventually_true(lambda: any(pass_.paths == (docs,) for pass_ in it.passes))


async def test_missing_roots_are_told_and_left_out(docs: Path, tmp_path: Path) -> None:
    async with following(root_of(tmp_path / "absent"), root_of(docs), initial=True) as it:
        await eventually_true(lambda: bool(it.passes))
        assert it.passes == [WatchPass("initial", (docs,))]
        assert [notice.paths for notice in it.notices if notice.kind == "root_missing"] == [(str(tmp_path / "absent"),)]
    with pytest.raises(UsageError, match="none of the folders"):
        await watch_roots([root_of(tmp_path / "absent")], it.index, it.notices.append)


async def test_a_root_that_goes_is_told_and_nothing_of_it_is_looked_at_until_it_is_back(docs: Path) -> None:
    """P8: a root that is gone removes nothing."""
    aside = docs.with_name("aside")
    async with following(root_of(docs), rescan_every_s=0.2) as it:
        os.rename(docs, aside)  # noqa: PTH104
        await eventually_true(lambda: "root_missing" in it.kinds())
        assert not it.passes
        os.rename(aside, docs)  # noqa: PTH104
        await eventually_true(lambda: "root_back" in it.kinds())
        await eventually_true(lambda: it.looked_at(docs))
        it.passes.clear()
        (docs / "a.md").write_text("heard of again")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))
        assert it.kinds().count("root_missing") == 1


async def test_a_pass_that_finds_the_index_locked_is_tried_again(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-71: one warning, and the same paths again."""
    monkeypatch.setattr("scheduler.watch.FIRST_RETRY_S", 0.05)

    def refuse_twice(_pass: WatchPass) -> None:
        if len(it.passes) <= 2:
            raise LockedError("the index is being written by somebody else")

    async with following(root_of(docs)) as it:
        it.on_pass = refuse_twice
        (docs / "a.md").write_text("changed")
        await eventually_true(lambda: len(it.passes) == 3)
        assert {pass_.paths for pass_ in it.passes} == {(docs / "a.md",)}
        assert it.kinds().count("retrying") == 1


async def test_an_unreadable_new_folder_does_not_end_the_watch(docs: Path) -> None:
    async with following(root_of(docs)) as it:
        (docs / "closed").mkdir(mode=0o000)
        await eventually_true(lambda: it.looked_at(docs / "closed"))
        (docs / "a.md").write_text("after it")
        await eventually_true(lambda: it.looked_at(docs / "a.md"))
        (docs / "closed").chmod(0o700)

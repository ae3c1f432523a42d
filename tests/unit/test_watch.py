"""What a watch decides between its passes, without a disk and without a clock (S0-71..75, P22)."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from scheduler.watch import Disk, PassTiming, PendingChanges

ROOT = "/r"


def pending(
    gone: set[str] | None = None,
    folders: set[str] | None = None,
    *,
    most_paths: int = 4,
    most_parts: int = 3,
    whole: tuple[str, ...] = (ROOT,),
) -> PendingChanges:
    absent, there = gone if gone is not None else set(), folders if folders is not None else set()
    disk = Disk(is_gone=lambda path: path in absent, is_folder=lambda path: path in there)
    return PendingChanges({ROOT: whole}, disk, most_paths=most_paths, most_parts=most_parts)


def taken(changes: PendingChanges) -> list[str]:
    return [str(path) for path in changes.take().paths]


def test_paths_are_named_once_and_in_order() -> None:
    """S0-72: whatever happened to a path, and however often, it is looked at once."""
    changes = pending()
    for path in ("/r/b.md", "/r/a.md", "/r/b.md"):
        changes.look_at(ROOT, path)
    assert changes.take() == ("changes", (Path("/r/a.md"), Path("/r/b.md")))
    assert not changes
    assert taken(changes) == []


def test_a_folder_covers_what_is_in_it_but_not_what_is_gone_from_it() -> None:
    """R29: a pass over a folder removes nothing, so what is gone is named beside it."""
    changes = pending(gone={"/r/d/gone.md"}, folders={"/r/d", "/r/d/e"})
    for path in ("/r/d", "/r/d/e", "/r/d/a.md", "/r/d/gone.md"):
        changes.look_at(ROOT, path)
    assert taken(changes) == ["/r/d", "/r/d/gone.md"]


def test_a_folder_that_is_gone_covers_what_was_in_it() -> None:
    changes = pending(gone={"/r/d", "/r/d/a.md"})
    for path in ("/r/d/a.md", "/r/d"):
        changes.look_at(ROOT, path)
    assert taken(changes) == ["/r/d"]


def test_many_paths_become_their_folders_and_many_folders_the_root() -> None:
    """P22: memory is bounded."""
    changes = pending()
    for number in range(1000):
        changes.look_at(ROOT, f"/r/d/{number}.md")
    assert changes.held <= 5
    assert taken(changes) == ["/r/d"]
    for number in range(1000):
        changes.look_at(ROOT, f"/r/{number}/a.md")
        assert changes.held <= 8
    assert changes.take() == ("rescan", (Path(ROOT),))


def test_many_paths_that_are_gone_become_a_look_at_the_root_under_its_guard() -> None:
    """R34: an unmounted disk looks like many removals; named one by one they would pass by the guard."""
    gone = {f"/r/{number}.md" for number in range(4)}
    changes = pending(gone=gone)
    for path in gone:
        changes.look_at(ROOT, path)
    assert taken(changes) == [ROOT]


def test_a_collapsed_folder_still_hears_of_what_goes() -> None:
    gone: set[str] = set()
    changes = pending(gone=gone)
    for number in range(6):
        changes.look_at(ROOT, f"/r/d/{number}.md")
    gone.add("/r/d/0.md")
    changes.look_at(ROOT, "/r/d/0.md")
    assert taken(changes) == ["/r/d", "/r/d/0.md"]


def test_lost_events_mean_a_look_at_everything() -> None:
    changes = pending(whole=("/r/only.md",))
    changes.look_at(ROOT, "/r/only.md")
    changes.look_at_everything()
    assert changes.take() == ("rescan", (Path("/r/only.md"),)), "a root of single files never becomes a whole one"


def test_a_pass_that_did_not_come_about_is_put_back() -> None:
    changes = pending()
    changes.look_at(ROOT, "/r/a.md")
    pass_ = changes.take()
    changes.look_at(ROOT, "/r/b.md")
    changes.put_back(pass_)
    assert taken(changes) == ["/r/a.md", "/r/b.md"]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.booleans()), max_size=60),
    st.integers(1, 8),
    st.integers(1, 4),
)
def test_no_path_is_ever_forgotten(events: list[tuple[str, str, bool]], most_paths: int, most_parts: int) -> None:
    """P22: each path that was named is named by the pass, covered by a folder while it is there, or by the root."""
    gone: set[str] = set()
    changes = pending(gone, {f"/r/{folder}" for folder in "abcd"}, most_paths=most_paths, most_parts=most_parts)
    named = set()
    for folder, file, is_removal in events:
        path = f"/r/{folder}/{file}.md"
        (gone.add if is_removal else gone.discard)(path)
        changes.look_at(ROOT, path)
        named.add(path)
    paths = set(taken(changes))
    for path in named:
        covered = ROOT in paths or path in paths
        assert covered or (path not in gone and str(Path(path).parent) in paths)


def test_a_pass_waits_until_it_is_quiet() -> None:
    timing = PassTiming(100.0, debounce_s=2.0)
    assert timing.wait_s(100.0) is None
    timing.noticed(100.0)
    timing.noticed(101.0)
    assert timing.wait_s(101.5) == 1.5
    assert timing.wait_s(103.0) == 0.0
    timing.began()
    assert timing.wait_s(103.0) is None


def test_whoever_never_stops_does_not_keep_a_pass_waiting() -> None:
    timing = PassTiming(0.0, debounce_s=2.0)
    for tenth in range(200):
        timing.noticed(tenth / 10)
    assert timing.wait_s(9.0) == 1.0
    assert timing.wait_s(10.0) == 0.0


def test_changes_during_a_pass_are_one_more_pass() -> None:
    """S0-72."""
    timing = PassTiming(0.0, debounce_s=2.0)
    timing.noticed(0.0)
    timing.began()
    timing.noticed(3.0)
    timing.noticed(4.0)
    timing.ended(2.0, 10.0, was_rescan=False)
    assert timing.wait_s(10.0) == 0.0
    timing.began()
    timing.ended(10.0, 11.0, was_rescan=False)
    assert timing.wait_s(11.0) is None


def test_a_pass_that_failed_is_tried_again_and_again_later() -> None:
    timing = PassTiming(0.0, debounce_s=2.0)
    timing.began()
    waits = [timing.failed(0.0) for _ in range(8)]
    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert timing.wait_s(0.0) == 60.0
    timing.ended(60.0, 61.0, was_rescan=False)
    assert timing.failed(61.0) == 2.0


def test_everything_is_looked_at_now_and_then_and_sooner_where_not_all_is_watched() -> None:
    """S0-75; a rescan that takes long comes seldom."""
    timing = PassTiming(0.0, debounce_s=2.0, rescan_every_s=900.0)
    assert timing.rescan_wait_s(0.0, partly_watched=False) == 900.0
    assert timing.rescan_wait_s(0.0, partly_watched=True) == 60.0
    timing.ended(0.0, 30.0, was_rescan=True)
    assert timing.rescan_wait_s(30.0, partly_watched=True) == 300.0
    assert timing.rescan_wait_s(930.0, partly_watched=False) == 0.0

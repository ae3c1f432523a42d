"""docs/promises.md against the tests that it names and the figures that it tells."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the other script imports it by this name
    spec.loader.exec_module(module)
    return module


figures_of = script("promises_figures")
promises = script("promises")
WORDS = promises.read_words(ROOT / promises.WORDS)
FIGURES = promises.read_figures(ROOT / promises.RESULTS)
TESTS = promises.tests_below(ROOT)
PAGE = (ROOT / promises.PAGE).read_text(encoding="utf-8")


def figure(name: str = "kill-writer", **changes: Any) -> Any:
    fields = {
        "promises": ("P1",), "what": "kills", "tried": 20, "of": 0, "bad": 0, "asked": 0, "detail": "",
        "day": "2026-01-02",
    }  # fmt: skip
    return figures_of.Figure(name, **(fields | changes))


def bar(*patterns: str, tried: int = 0, together: int = 0, share: float = 0.0, limits: tuple[Any, ...] = ()) -> Any:
    return figures_of.Bar("kills", "20 of each", patterns, tried, together, share, limits)


def test_every_promise_has_tests_that_exist_and_every_figure_a_promise() -> None:
    assert promises.problems(WORDS, TESTS, FIGURES) == []


def test_the_page_is_current() -> None:
    """Figures that are newer than the page are no reason to fail: `make promises` writes them into it."""
    assert not promises.is_stale(PAGE, WORDS, FIGURES), "docs/promises.md is stale: run `make promises`"


def test_the_page_says_first_what_falls_short() -> None:
    opening = PAGE.split("\n\n")[1]
    assert opening.startswith(promises.BEGIN)
    said = [line for line in promises.page(WORDS, []).splitlines() if line.startswith("**Not run:**")]
    assert len(said) == 1
    assert all(one.name in said[0] for one in WORDS.bars)
    everything = promises.page(WORDS._replace(bars=(bar("kill-*"),)), [figure()])
    assert "Every figure that is asked of a release was reached" in everything


def test_a_promise_without_figures_says_so() -> None:
    page = promises.page(WORDS, [figure(promises=("P2",))])
    parts = {part.split(":")[0]: part for part in page.split("\n### ")[1:]}
    assert "no figures yet" in parts["P1"]
    assert "no figures yet" not in parts["P2"]
    assert "- kills: 20 tried, 0 bad (2026-01-02)" in parts["P2"]


def test_a_figure_that_quotes_an_input_makes_no_markup() -> None:
    page = promises.page(WORDS, [figure(detail="slowest 1 s ([x](gone.md) <b>*|`a_b`)")])
    assert r"slowest 1 s (\[x\]\(gone.md) \<b\>\*\|\`a\_b\`)" in page


@pytest.mark.parametrize(
    ("changed", "is_stale"),
    [
        (lambda page, figures: (page, figures), False),
        (lambda page, figures: (page, [figure(tried=21)]), False),  # newer figures
        (lambda page, figures: (page, []), False),
        (lambda page, figures: (page.replace("20 tried", "2,000 tried"), figures), True),  # nobody measured that
        (lambda page, figures: (page.replace("replaced whole", "replaced"), figures), True),
        (lambda page, figures: (page.replace("replaced whole", "replaced"), []), True),
        (lambda page, figures: ("", figures), True),
    ],
)
def test_what_makes_the_page_stale(changed: Any, is_stale: bool) -> None:
    figures = [figure()]
    page, now = changed(promises.page(WORDS, figures), figures)
    assert promises.is_stale(page, WORDS, now) is is_stale


LIMIT = figures_of.Limit("first answer", r"p99 ([\d.]+) ms", 100, "ms")


@pytest.mark.parametrize(
    ("asked", "figures", "state", "told"),
    [
        (bar("kill-*"), [], "not run", "not run: kill-*"),
        (bar("kill-writer", "kill-queue"), [figure()], "not run", "not run: kill-queue"),
        (bar("kill-*"), [figure()], "reached", "reached: 20 tried, 0 bad (2026-01-02)"),
        (bar("kill-*"), [figure(bad=1)], "not reached", "kill-writer: 1 bad of 20"),
        (bar("kill-*"), [figure(asked=30)], "not reached", "kill-writer: 20 tried, 30 asked for"),
        (bar("kill-*", tried=40), [figure()], "not reached", "kill-writer: 20 tried, 40 asked for"),
        (bar("kill-*", share=0.5), [figure(of=50)], "not reached", "kill-writer: 20 of 50 tried"),
        (bar("kill-*", share=0.5), [figure(of=48)], "reached", "reached"),  # rounded down, each way
        (bar("kill-*", share=0.5), [figure(of=40)], "reached", "reached: 20 tried, 0 bad (2026-01-02)"),
        (bar("kill-*", share=0.5), [figure(of=40, asked=40)], "reached", "reached"),  # the bar's own, not the test's
        (bar("kill-*", together=40), [figure(), figure("kill-queue")], "reached", "reached: 40 tried"),
        (bar("kill-*", together=41), [figure(), figure("kill-queue")], "not reached", "40 tried, 41 asked for"),
        (bar("kill-*", "x"), [figure(bad=1)], "not reached", "kill-writer: 1 bad of 20"),  # worse than what is missing
        (bar("kill-*", limits=(LIMIT,)), [figure()], "not run", "not run: first answer"),
        (bar("kill-*", limits=(LIMIT,)), [figure(detail="p99 101.5 ms")], "not reached", "first answer 101.5 ms"),
        (bar("kill-*", limits=(LIMIT,)), [figure(detail="p99 9.5 ms")], "reached", "first answer 9.5 ms"),
    ],
)  # fmt: skip
def test_whether_a_figure_of_a_release_is_reached(asked: Any, figures: list[Any], state: str, told: str) -> None:
    standing = figures_of.standing_of(asked, figures)
    assert standing.state == state
    assert told in standing.told


def test_figures_are_read_as_tests_write_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import figures

    monkeypatch.setattr(figures, "_FOLDER", str(tmp_path / "proofs"))
    figures.keep(figures.Figure("a-b", ("P1", "T4"), "what", 3, 4, 1, 5, 0.5, "in words"))
    (read,) = figures_of.read_figures(tmp_path)
    assert read[:-1] == ("a-b", ("P1", "T4"), "what", 3, 4, 1, 5, "in words")


def test_a_soak_is_a_figure_too(tmp_path: Path) -> None:
    (tmp_path / "soak").mkdir()
    told = {"day": "2026-01-02", "minutes": 60.0, "falls_short": ["memory of serve grows"], "largest_log_mb": 12.34}
    (tmp_path / "soak" / "soak.json").write_text(json.dumps(told), encoding="utf-8")
    (soak,) = figures_of.read_figures(tmp_path)
    assert (soak.name, soak.tried, soak.asked, soak.bad) == ("soak", 60, 60, 1)
    assert soak.detail == "largest write-ahead log 12.3 MB; falls short: memory of serve grows"


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (lambda words: words._replace(promises=words.promises[1:]), "the promises are not P1 to P32"),
        (lambda words: words._replace(inputs=words.inputs[::-1]), "the inputs are not T1 to T30"),
        (
            lambda words: words._replace(promises=(words.promises[0]._replace(tests=()), *words.promises[1:])),
            "P1 has no",
        ),
        (
            lambda words: words._replace(
                promises=(words.promises[0]._replace(tests=("tests/unit/test_plan.py::test_x",)), *words.promises[1:])
            ),
            "P1: there is no test tests/unit/test_plan.py::test_x",
        ),
    ],
)
def test_what_is_wrong_is_told(spoilt: Any, said: str) -> None:
    (problem,) = promises.problems(spoilt(WORDS), TESTS, [])
    assert said in problem


def test_a_figure_of_no_promise_is_told() -> None:
    (problem,) = promises.problems(WORDS, TESTS, [figure(promises=("P99",))])
    assert problem == "the figure kill-writer names P99"

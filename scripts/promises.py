"""Writes docs/promises.md: what is promised, which tests prove it, and the last figures.

The words and the names of tests stand in tests/promises.toml; figures are the files that `make faults` leaves in
bench/results/proofs (tests/support/figures.py). Every named test must exist. With --check nothing is written, and it
ends with 1 when the page is stale. Figures that are newer than the page do not make it so: their lines stand between
markers.
"""

import argparse
import ast
import hashlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from promises_figures import Bar, Figure, Standing, read_figures, standing_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/promises.md")
WORDS = Path("tests/promises.toml")
RESULTS = Path("bench/results")
PROMISES = [f"P{number}" for number in range(1, 33)]
INPUTS = [f"T{number}" for number in range(1, 31)]
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
FIGURES = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
DIGEST = re.compile(r"<!-- written from figures ([0-9a-f]{16}) -->")


class Entry(NamedTuple):
    """A promise (P1..P32) or a bad input (T1..T30), as a user reads of it."""

    id: str
    title: str
    said: str  # what is promised; of an input: what is right
    broken_by: str  # what would break it; of an input: ""
    tests: tuple[str, ...]  # file::test, from the checkout's root
    not_tried: str  # "" where nothing is left open


class Words(NamedTuple):
    introduction: str
    promises: tuple[Entry, ...]
    inputs: tuple[Entry, ...]
    bars: tuple[Bar, ...]


def read_words(path: Path) -> Words:
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    return Words(
        read["introduction"].strip(),
        tuple(map(_entry, read["promise"])),
        tuple(map(_entry, read["input"])),
        tuple(Bar.from_table(bar) for bar in read["bar"]),
    )


def problems(words: Words, tests: Mapping[str, frozenset[str]], figures: Sequence[Figure]) -> list[str]:
    """What is wrong with the words, one line each. `tests` are the test functions by file."""
    found = [f"{WORDS}: the promises are not {PROMISES[0]} to {PROMISES[-1]}, in order"] * (
        [entry.id for entry in words.promises] != PROMISES
    )
    found += [f"{WORDS}: the inputs are not {INPUTS[0]} to {INPUTS[-1]}, in order"] * (
        [entry.id for entry in words.inputs] != INPUTS
    )
    for entry in (*words.promises, *words.inputs):
        if not entry.tests:
            found.append(f"{entry.id} has no test")
        for named in entry.tests:
            file, _, test = named.partition("::")
            if test not in tests.get(file, frozenset()):
                found.append(f"{entry.id}: there is no test {named}")
    known = {*PROMISES, *INPUTS}
    found += [f"the figure {figure.name} names {one}" for figure in figures for one in {*figure.promises} - known]
    return found


def tests_below(root: Path) -> dict[str, frozenset[str]]:
    """The names of the test functions of every test file; nothing is imported."""
    return {
        path.relative_to(root).as_posix(): frozenset(_tests_in(path)) for path in (root / "tests").rglob("test_*.py")
    }


def page(words: Words, figures: Sequence[Figure]) -> str:
    return "\n".join(_lines(words, figures)) + "\n"


def is_stale(written: str, words: Words, figures: Sequence[Figure]) -> bool:
    """Whether more than the figures has changed since the page was written; with the same figures, whether anything."""
    made_now = page(words, figures)
    digest = DIGEST.search(written)
    if digest is not None and digest[1] == _digest(figures):
        return written != made_now
    return FIGURES.sub("", written) != FIGURES.sub("", made_now)


def _lines(words: Words, figures: Sequence[Figure]) -> Iterator[str]:
    yield "# Promises\n"
    standings = [standing_of(bar, figures) for bar in words.bars]
    yield from _marked([f"<!-- written from figures {_digest(figures)} -->", *_headlines(standings)])
    yield f"\n{words.introduction}\n"
    yield "## Figures of a release\n"
    rows = [f"| {one.bar.name} | {one.bar.asked} | {_plain(one.told)} |" for one in standings]
    yield from _marked(["", "| what | asked for | last run |", "| --- | --- | --- |", *rows, ""])
    yield "\n## The promises"
    for entry in words.promises:
        yield from _promise(entry, [figure for figure in figures if entry.id in figure.promises])
    yield "\n## Bad input, and what is right\n"
    yield "| # | what comes in | what is right | proved by |"
    yield "| --- | --- | --- | --- |"
    for entry in words.inputs:
        right = entry.said + (f" Not tried: {entry.not_tried}" if entry.not_tried else "")
        yield f"| {entry.id} | {_cell(entry.title)} | {_cell(right)} | {'<br>'.join(_tests(entry.tests))} |"
    yield ""
    fuzzed = [figure for figure in figures if {*figure.promises} & {*INPUTS}]
    yield from _marked(["", *(_figure(figure) for figure in fuzzed)] if fuzzed else ["No figures yet.", ""])


def _headlines(standings: Sequence[Standing]) -> Iterator[str]:
    """What falls short stands first."""
    for state, opening in (("not reached", "Not reached"), ("not run", "Not run")):
        names = [f"{one.bar.name} ({_plain(one.told)})" if state == "not reached" else one.bar.name for one in standings
                 if one.state == state]  # fmt: skip
        if names:
            yield f"**{opening}:** {'; '.join(names)}.\n"
    if all(one.state == "reached" for one in standings):
        yield "Every figure that is asked of a release was reached in the last run.\n"


def _promise(entry: Entry, figures: Sequence[Figure]) -> Iterator[str]:
    yield f"\n### {entry.id}: {entry.title}\n"
    yield f"{entry.said}\n"
    yield f"*What would break it:* {entry.broken_by}\n"
    yield "*Proved by:*\n"
    yield from (f"- {line}" for line in _tests(entry.tests))
    yield ""
    if entry.not_tried:
        yield f"*Not tried:* {entry.not_tried}\n"
    told = ["*Last figures:*", "", *map(_figure, figures), ""] if figures else ["*Last figures:* no figures yet.", ""]
    yield from _marked(told)


def _marked(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    yield BEGIN
    yield from lines
    yield END


def _figure(figure: Figure) -> str:
    among = f" of {figure.of:,}" if figure.of else ""
    wanted = f" ({figure.asked:,} asked for)" if figure.asked > figure.tried else ""
    detail = f"; {_plain(figure.detail)}" if figure.detail else ""
    return f"- {figure.what}: {figure.tried:,}{among} tried{wanted}, {figure.bad:,} bad{detail} ({figure.day})"


def _tests(named: Sequence[str]) -> Iterator[str]:
    """A line for each file: a link to it, and its tests."""
    by_file: dict[str, list[str]] = {}
    for one in named:
        file, _, test = one.partition("::")
        by_file.setdefault(file, []).append(f"`{test}`")
    for file, tests in by_file.items():
        yield f"[{file.removeprefix('tests/')}](../{file}): {', '.join(tests)}"


def _digest(figures: Sequence[Figure]) -> str:
    return hashlib.sha256(repr(figures).encode()).hexdigest()[:16]


def _entry(table: Mapping[str, Any]) -> Entry:
    return Entry(
        table["id"],
        table["title"],
        " ".join(table["said"].split()),
        " ".join(table.get("broken_by", "").split()),
        tuple(table["tests"]),
        " ".join(table.get("not_tried", "").split()),
    )


def _tests_in(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def _plain(text: str) -> str:
    """Words of a figure, which may quote any input, as text that Markdown takes for nothing else."""
    return re.sub(r"([\\`*_<>\[\]|]|(?<=\])\()", r"\\\1", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when something is stale or missing")
    only_look = parser.parse_args().check
    words, figures = read_words(ROOT / WORDS), read_figures(ROOT / RESULTS)
    found = problems(words, tests_below(ROOT), figures)
    if not found and not only_look:
        (ROOT / PAGE).write_text(page(words, figures), encoding="utf-8")
    elif not found and is_stale((ROOT / PAGE).read_text(encoding="utf-8"), words, figures):
        found.append(f"{PAGE} is stale: run `make promises`")
    sys.stderr.writelines(f"{problem}\n" for problem in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""docs/performance.md is what the report writes from the kept figures, so that no number in it is anybody's memory."""

import re
from pathlib import Path

from bench.figures import MISSED, SHORT_OF_AIM, Figure
from bench.report_kept import KEPT, Kept, Measured, read
from bench.report_pages import BLOCK, BLOCKS, TEMPLATE, performance_page, report_page
from bench.report_parts import BY_NAME, PARTS, chosen_parts
from bench.report_tables import short, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
RUNS = re.compile(r"--(runs|rounds) \d+")  # fewer on a busy machine
MACHINE = {
    "cores": 2, "processor": "one", "memory_gib": 8, "kernel": "Linux 6", "python": "3.11", "sqlite": "3.53",
    "packages": {"arq": "0.28"},
}  # fmt: skip


def measured(*figures: Figure, failed: str = "") -> Measured:
    told = ("python -m bench.one", "docs-2k", "2026-01-02", [1.0, 1.0], [9.5, 4.0], 3.0)
    return Measured(*told, failed=failed, figures=list(figures))


def figure(name: str, value: float, must: float | None = 3.0, aim: float | None = 2.0) -> Figure:
    return Figure(name, value, "s", must, aim)


def test_the_page_is_written_from_the_kept_figures() -> None:
    assert PAGE.read_text(encoding="utf-8") == performance_page(read(KEPT)), (
        "docs/performance.md is not what `python -m bench.report --from-results` writes"
    )
    assert KEPT.with_name("report.md").read_text(encoding="utf-8") == report_page(read(KEPT))


def test_the_plots_are_there() -> None:
    for name in re.findall(r"\]\((images/[^)]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / name).read_bytes().startswith(b"\x89PNG"), name


def test_the_template_takes_every_block_there_is() -> None:
    assert {found[1] for found in BLOCK.finditer(TEMPLATE.read_text(encoding="utf-8"))} == BLOCKS.keys()


def test_every_kept_figure_belongs_to_a_part_of_today() -> None:
    kept = read(KEPT)
    assert kept.parts.keys() <= {*BY_NAME, "recovery"}
    for name, part in kept.parts.items():
        ours = "" if name not in BY_NAME else RUNS.sub("", BY_NAME[name].shown())
        assert not ours or RUNS.sub("", part.command) == ours, f"{name} was measured with another command"
        assert not (part.failed and part.figures)


def test_what_was_kept_names_no_path_of_a_machine() -> None:
    text = KEPT.read_text(encoding="utf-8")
    assert not re.findall(r"(?<![\w.>}-])/(?:" + "|".join(("tmp", "work", "root", "home", "opt")) + r")/\w+", text)


def test_what_falls_short_stands_first() -> None:
    figures = [figure("well", 1.0), figure("almost", 2.5), figure("no bar", 9.0, None, None), figure("badly", 3.5)]
    assert [one.verdict for one in figures] == ["aim", SHORT_OF_AIM, "", MISSED]
    text = table(Kept(MACHINE, {"index-2k": measured(*figures)}), "index")
    assert [text.index(f"| {name} |") for name in ("badly", "almost", "well", "no bar")] == sorted(
        text.index(f"| {name} |") for name in ("badly", "almost", "well", "no bar")
    )
    told = short(Kept(MACHINE, {"index-2k": measured(*figures)}))
    assert told.startswith("3 figures have a bar: 1 miss it, 1 reach it but not the aim, 1 reach both.")
    assert "| badly |" in told and "| almost |" in told and "| well |" not in told


def test_a_bar_that_is_better_high_is_judged_so() -> None:
    rate = Figure("rate", 39.0, "MB/s", 40.0, None, is_more_better=True)
    assert rate.verdict == MISSED
    assert Figure("rate", 41.0, "MB/s", 40.0, 80.0, is_more_better=True).verdict == SHORT_OF_AIM
    assert Figure("rate", 80.0, "MB/s", 40.0, 80.0, is_more_better=True).verdict == "aim"


def test_what_was_not_run_never_reads_as_a_result() -> None:
    nothing = Kept(MACHINE)
    page = performance_page(nothing)
    for part in PARTS:
        assert f"`{part.name}`" in page, f"{part.name} was not run, and the page does not say so"
    assert "0 figures have a bar" in short(nothing)


def test_a_part_that_failed_says_why_and_shows_no_figure() -> None:
    kept = Kept(MACHINE, {"match": measured(failed="exit status 1: no such index")})
    assert "**Failed**, no figures: `match`: exit status 1: no such index" in table(kept, "answers")


def test_figures_of_a_quieter_hour_stay_beside_those_of_a_busier_one() -> None:
    quiet = Measured(
        "python -m bench.one", "docs-2k", "2026-01-01", [1.0, 1.0], [1.5, 1.0], 3.0, figures=[figure("it", 1.0)]
    )
    kept = Kept(MACHINE, {"match": quiet}).with_part("match", measured(figure("it", 9.0)))
    assert kept.parts["match"].figures[0].value == 9.0
    assert kept.earlier == {"match": quiet}
    assert kept.with_part("match", quiet).earlier == {"match": quiet}
    page = performance_page(kept)
    assert (
        page.index("| it | docs-2k | 9 s |") < page.index("### In quieter hours") < page.index("| it | docs-2k | 1 s |")
    )


def test_parts_are_chosen_by_the_beginnings_of_their_names() -> None:
    assert chosen_parts("index,recovery") == ["index-40k", "index-2k", "recovery"]
    assert set(chosen_parts("")) == {*BY_NAME, "recovery"}

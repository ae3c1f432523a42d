"""What the numbers of a soak come to: slopes of memory, latencies, and what falls short of the bar (P25)."""

import math
import random
from pathlib import Path

import msgspec
import pytest

from bench.soak_corpus import Churn, make_corpus, queries
from bench.soak_figures import (
    minutes_of,
    p99_growth,
    process_figures,
    quarters,
    shortfalls,
    slope_of,
    warm_life,
)
from bench.soak_plan import Asked, Check, Command, Incident, Pass, Plan, ProcessSample, Sample, Soaked
from bench.soak_readers import read_log
from bench.soak_report import write_report

HOUR = Plan(3600.0)
EVERY_S = 30.0


def sample(at_s: float, mb: float, *, pid: int = 7, descriptors: int = 20, log_mb: float = 3.0) -> Sample:
    one = ProcessSample(pid, mb, mb, mb, descriptors, 4)
    return Sample(at_s, {"writer": one}, log_mb, 0.5, 20.0, 1.0, 900.0, 2.0, math.nan, 0.1, 0.5)


def soaked(plan: Plan = HOUR, /, **changes: object) -> Soaked:
    """An hour in which everything is as it should be, but for the changes."""
    times = [EVERY_S * number for number in range(int(plan.seconds / EVERY_S) + 1)]
    fields: dict[str, object] = {
        "samples": [sample(at_s, 100.0) for at_s in times],
        "asked": [Asked(at_s / 2, 10.0 + at_s % 7, 200, "hybrid") for at_s in range(int(plan.seconds) * 2)],
        "commands": [Command(5.0, "stats", 0, 400.0)],
        "idle": {"calls_of_agents": 3, "calls_of_agents_that_failed": 0},
        "incidents": [Incident("embeddings away", 2160.0, 2280.0, {"a run has ended well": 4.0})],
        "checks": [Check(600.0, 3000, (), 0, 0, 12.0)],
        "passes": [Pass(10.0, 12.0, "done", "")],
        "changes": {"edited": 3},
        "runs": {"done": 1},
        "differing": 0,
        "deaths": 0,
        "machine": {"processors": "2"},
    }
    return Soaked(plan=plan, **(fields | changes))  # type: ignore[arg-type]


def test_a_slope_is_in_mb_an_hour_and_says_how_sure_it_is() -> None:
    times = [EVERY_S * number for number in range(91)]
    steady = slope_of(times, [100 + 2.5 * at_s / 3600 for at_s in times])
    assert steady.mb_per_h == pytest.approx(2.5)
    assert steady.spread == pytest.approx(0, abs=1e-6)
    dice = random.Random(1)
    noisy = slope_of(times, [100 + dice.gauss(0, 1) for _ in times])
    assert abs(noisy.mb_per_h) < noisy.spread < 2
    steps = slope_of(times, [100.0 + (number >= 45) for number in range(91)])
    apart = slope_of(times, [100.0 + number % 2 for number in range(91)])
    assert steps.spread > 2 * apart.spread, "neighbours that are alike say less than as many that are not"


def test_a_slope_of_too_little_is_none() -> None:
    assert math.isnan(slope_of([0.0, 5.0], [1.0, 2.0]).mb_per_h)


def test_of_a_process_that_was_started_anew_the_longest_life_counts_without_its_beginning() -> None:
    samples = [sample(at_s, 100, pid=1 if at_s < 1500 else 2) for at_s in range(0, 3700, 30)]
    life = warm_life(samples, "writer", HOUR)
    assert {one.processes["writer"].pid for one in life} == {2}
    assert (life[0].at_s, life[-1].at_s) == (1860, 3600), "six minutes after its start, and not beyond the end"
    assert warm_life(samples, "nobody", HOUR) == []


def test_what_is_done_to_the_service_is_left_out_of_the_quarters() -> None:
    asked = [Asked(float(at_s), 5000.0 if 2160 <= at_s <= 2284 else 10.0, 200, "hybrid") for at_s in range(3600)]
    assert [one.p99_ms for one in quarters(soaked(asked=asked))] == [10.0] * 4
    assert [one.searches for one in quarters(soaked(asked=asked))] == [900, 900, 775, 900]
    assert max(one.p99_ms for one in minutes_of(asked, 3600.0)) == 5000, "but not of the plots"


def test_nothing_falls_short_of_an_hour_that_is_as_it_should_be() -> None:
    assert shortfalls(soaked()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"samples": [sample(at, 100 + at / 1800) for at in range(0, 3630, 30)]}, "memory of writer grows by 2.0"),
        ({"samples": [sample(at, 100, descriptors=20 + at // 300) for at in range(0, 3630, 30)]}, "descriptors of"),
        ({"samples": [sample(at, 100, log_mb=64.1 if at == 300 else 1) for at in range(0, 3630, 30)]}, "reached 64"),
        ({"asked": [Asked(float(at), 10.0 + at / 100, 200, "hybrid") for at in range(3600)]}, "p99 of searches grew"),
        ({"asked": [Asked(float(at), 10.0, 503 if at == 9 else 200, "other") for at in range(3600)]}, "1 searches"),
        ({"commands": [Command(5.0, "stats", 1, 4.0)]}, "1 commands of readers"),
        ({"idle": {"calls_of_agents_that_failed": 2}}, "2 calls of idle readers"),
        ({"checks": [Check(600.0, 3000, ("chunk 3: of no document",), 0, 0, 12.0)]}, "1 problems"),
        ({"passes": [Pass(10.0, 12.0, "failed", "")]}, "1 runs did not end well"),
        ({"differing": 4}, "4 documents"),
        ({"deaths": 1}, "1 roles ended"),
        ({"incidents": [Incident("queue restarted", 9.0, 9.0, {"a run has ended well": math.inf})]}, "1 times"),
    ],
)
def test_each_thing_that_falls_short_is_named(changes: dict[str, object], words: str) -> None:
    found = shortfalls(soaked(**changes))
    assert len(found) == 1 and words in found[0], found


def test_a_soak_of_minutes_is_not_judged_by_megabytes_an_hour() -> None:
    short = Plan(180.0)
    grows = [sample(float(at), 100 + at) for at in range(0, 181, 3)]
    slower = [Asked(at / 10, 10.0 + at, 200, "hybrid") for at in range(1800)]
    assert p99_growth(soaked(short, samples=grows, asked=slower)) > 3
    assert process_figures(soaked(short, samples=grows), "writer").rss.mb_per_h > 1000
    assert shortfalls(soaked(short, samples=grows, asked=slower, incidents=[])) == []


def test_the_report_says_first_what_falls_short_and_has_its_pictures(tmp_path: Path) -> None:
    assert write_report(soaked(differing=4, asked=[]), tmp_path)
    first, *_ = report = (tmp_path / "report.md").read_text("utf-8").splitlines()
    assert first.startswith("**Falls short:**") and "4 documents are not as their files are" in first
    pictures = [line.partition("](")[2].rstrip(")") for line in report if line.startswith("![")]
    assert len(pictures) == 5
    for name in pictures:
        content = (tmp_path / name).read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) < 100_000
    told = msgspec.json.decode((tmp_path / "soak.json").read_bytes())
    assert told["falls_short"] and told["samples"]["queue_jobs"][0] is None, "no number is null"
    assert len(told["samples"]["at_s"]) == len(told["samples"]["writer: rss_mb"]) <= 240


def test_churn_keeps_the_number_of_files_about_the_same_and_knows_where_they_are(tmp_path: Path) -> None:
    make_corpus(tmp_path, 60, random.Random(1))
    churn = Churn(tmp_path, random.Random(2))
    for _ in range(10):
        churn.batch(20)
    assert set(churn.files) == set(tmp_path.rglob("*.md"))
    assert sum(churn.done.values()) == 200 and set(churn.done) == {"edited", "created", "deleted", "renamed"}
    assert len(churn.files) == 60 + churn.done["created"] - churn.done["deleted"]
    assert len({path.read_text("utf-8") for path in churn.files}) == len(churn.files), "no two are the same"
    assert len(set(queries(random.Random(3), 50))) > 40


def test_what_the_readers_wrote_down_is_read_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('S\t1.5\t12.25\t200\thybrid\nC\t2.0\tmatch\t0\t310.0\nI\t{"events": 3}\n', "ascii")
    assert read_log(log) == ([Asked(1.5, 12.25, 200, "hybrid")], [Command(2.0, "match", 0, 310.0)], {"events": 3})


def test_churn_of_a_few_files_never_runs_out_of_them(tmp_path: Path) -> None:
    make_corpus(tmp_path, 2, random.Random(1))
    churn = Churn(tmp_path, random.Random(2))
    for _ in range(300):
        churn.batch(2)
        assert churn.files
    assert churn.done["deleted"] > 10 and sum(churn.done.values()) == 600

"""Schedules in a configuration (C-08): what is refused, what they become, how they are shown."""

from pathlib import Path

import pytest

from app.config import Loaded, load_with_sources, locate
from app.config_report import effective_values
from domain.errors import ConfigurationError
from domain.settings import ScheduleSettings

NIGHTLY = "name: nightly, cron: '0 3 * * *'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("docs", "notes", "more/notes"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def loaded(folder: Path, schedules: str, paths: str = "[{path: docs, name: handbook}, notes]") -> Loaded:
    path = folder / "knowledge.yaml"
    path.write_text(f"knowledge:\n  paths: {paths}\n  schedules: {schedules}\n", "utf-8")
    return load_with_sources(locate(folder, config=path, environ={}), {}, cwd=folder)


def test_every_key_reaches_the_settings(folder: Path) -> None:
    found = loaded(
        folder,
        f"[{{{NIGHTLY}, timezone: Europe/Malta, kind: reindex, window: '22:00-05:00', jitter: 5m,"
        " roots: [handbook, ./notes], requests_per_minute: 60, workers: 2, heartbeat_url_env: NIGHTLY_URL}]",
    )
    assert found.settings.schedules == (
        ScheduleSettings(
            name="nightly",
            cron="0 3 * * *",
            timezone="Europe/Malta",
            kind="reindex",
            window="22:00-05:00",
            jitter_s=300.0,
            requests_per_minute=60,
            workers=2,
            heartbeat_url_env="NIGHTLY_URL",
            roots=(str(folder / "docs"), str(folder / "notes")),
        ),
    )
    assert found.later_features == ()
    assert found.notes == ("schedules[0].heartbeat_url_env: the variable NIGHTLY_URL is not set",)


def test_the_least_that_is_said(folder: Path) -> None:
    assert loaded(folder, f"[{{{NIGHTLY}}}]").settings.schedules == (ScheduleSettings("nightly", "0 3 * * *"),)


@pytest.mark.parametrize(
    ("entry", "key", "words"),
    [
        ("name: '', cron: '0 3 * * *'", "name", "not empty"),
        ("name: ' ', cron: '0 3 * * *'", "name", "must be a short name"),
        ('name: "a\\eb", cron: "0 3 * * *"', "name", "must be a short name"),
        (f"name: {'x' * 101}, cron: '0 3 * * *'", "name", "up to 100 characters"),
        ("name: a, cron: '@daily'", "cron", "here 0 0 * * *"),
        ("name: a, cron: '61 3 * * *'", "cron", "cannot be read: bad minute"),
        ("name: a, cron: '0 3 30 2 *'", "cron", "bad day-of-month"),
        ("name: a, cron: 3", "cron", "must be text"),
        (f"{NIGHTLY}, timezone: Malta/Europe", "timezone", "IANA name"),
        (f"{NIGHTLY}, timezone: europe/malta", "timezone", "as it is written there"),
        (f"{NIGHTLY}, timezone: ../../etc/passwd", "timezone", "IANA name"),
        (f"{NIGHTLY}, kind: backup", "kind", "must be one of index, reindex, verify, compact"),
        (f"{NIGHTLY}, window: 1-5", "window", "two times"),
        (f"{NIGHTLY}, window: '05:00-05:00'", "window", "two different times"),
        (f"{NIGHTLY}, jitter: 25h", "jitter", "at most 24 h"),
        (f"{NIGHTLY}, jitter: -1s", "jitter", "negative"),
        (f"{NIGHTLY}, requests_per_minute: -1", "requests_per_minute", "at least 0"),
        (f"{NIGHTLY}, workers: 257", "workers", "at most 256"),
        (
            f"{NIGHTLY}, heartbeat_url_env: 'https://hc.example/x'",
            "heartbeat_url_env",
            "NAME of an environment variable",
        ),
        (
            f"{NIGHTLY}, roots: [docs2]",
            "roots[0]",
            "docs2 is no root of this configuration; there are: handbook, notes",
        ),
        (f"{NIGHTLY}, roots: [docs/sub]", "roots[0]", "is no root of this configuration"),
        (f"{NIGHTLY}, roots: ['']", "roots[0]", "the name or the path of a root"),
        (f"{NIGHTLY}, kind: verify, roots: [notes]", "roots", "means nothing to verify"),
        (f"{NIGHTLY}, kind: compact, workers: 2", "workers", "means nothing to compact"),
        (f"{NIGHTLY}, colour: red", "colour", "unknown"),
    ],
)
def test_a_wrong_value_is_told_with_its_key(folder: Path, entry: str, key: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(folder, f"[{{{entry}}}]")
    assert f"knowledge.schedules[0].{key}: " in caught.value.message
    assert words in caught.value.message
    assert "hc.example" not in caught.value.message


def test_a_folder_s_name_that_two_roots_have_is_not_guessed_at(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="the folder's name of 2 roots"):
        loaded(folder, f"[{{{NIGHTLY}, roots: [more/notes, notes]}}]", "[more/notes, other/notes]")


def test_a_path_says_which_of_two_roots_is_meant(folder: Path) -> None:
    found = loaded(folder, f"[{{{NIGHTLY}, roots: [more/notes, notes, notes]}}]", "[notes, more/notes]")
    assert found.settings.schedules[0].roots == (str(folder / "more/notes"), str(folder / "notes"))


def test_without_configured_roots_a_name_is_one_of_the_index(folder: Path) -> None:
    assert loaded(folder, f"[{{{NIGHTLY}, roots: [docs]}}]", "[]").settings.schedules[0].roots == ("docs",)


def test_what_differs_from_the_defaults_is_shown(folder: Path) -> None:
    found = loaded(folder, f"[{{{NIGHTLY}, window: '01:00-05:00', heartbeat_url_env: HB, workers: 2}}]")
    rows = {row.key: row.value for row in effective_values(found, {"HB": "https://hc.example/secret"})}
    assert rows["schedules"] == [
        "nightly: index at 0 3 * * * (UTC), window 01:00-05:00, workers 2, heartbeat_url_env HB (set)"
    ]


def test_a_found_file_that_reads_a_variable_needs_trust(folder: Path) -> None:
    loaded(folder, f"[{{{NIGHTLY}, heartbeat_url_env: HB}}]")
    from app.config import read

    found = read(locate(folder, config=None, environ={}), {}, cwd=folder)
    assert found.needs_trust == ("reads the variable HB (schedules[0].heartbeat_url_env)",)

"""The pages in a real browser, over a real service: Chromium, driven with playwright-core by browser.mjs."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import write_files
from tests.support.hostile_texts import MARK, hostile_texts
from tests.support.scratch import scratch_directory
from tests.support.service import Service, many_files, service

DRIVER = Path(__file__).with_name("browser.mjs")
PACKAGE = os.environ.get("KNOWLEDGE_PLAYWRIGHT_CORE", "")
NODE = shutil.which("node")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LACKING = [
    words
    for words, is_there in (
        ("node", NODE is not None),
        ("chromium", CHROMIUM is not None),
        (
            "KNOWLEDGE_PLAYWRIGHT_CORE, the folder of the npm package playwright-core",
            Path(PACKAGE).is_dir() and PACKAGE,
        ),
    )
    if not is_there
]
pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(bool(LACKING), reason=f"the browser test needs {', '.join(LACKING)}"),
    pytest.mark.timeout(240),
]
EVERY_PAGE = (
    "/", "/?q=title", "/?q=nowhere-at-all", "/match?q=title", "/operations", "/operations/failures",
    "/operations/checks", "/operations/coverage", "/operations/runs/1", "/document?path=docs/guide.md&chunk=1",
    "/document?path=docs/none.md",
)  # fmt: skip
GUIDE = "# Guide\n\nHow to begin.\n\n## The second part\n\nA zebra crosses.\n\n## The third part\n\nAnother zebra.\n"


@pytest.fixture(scope="module")
def it() -> Iterator[Service]:
    texts = {f"hostile/{text.path.removeprefix('docs/')}": text.document for text in hostile_texts()}
    files = many_files(50, words=20) | {"guide.md": GUIDE, "other.md": "# Other\n\nOne more zebra.\n"} | texts
    with pytest.MonkeyPatch.context() as patch, scratch_directory() as place, service(place, files=files) as started:
        patch.delenv("KNOWLEDGE_PLAYWRIGHT_CORE")  # the program knows no such variable, and says so
        started.start_all()
        started.ended(started.first_run())
        server = started.start("serve", with_health=True)
        started.wait_until(lambda: '"listens"' in server.said())
        yield started


def drive(it: Service, scenario: str, *arguments: str) -> str:
    """What the scenario printed."""
    (server,) = it.of("serve")
    assert NODE is not None and CHROMIUM is not None
    environ = os.environ | {"KNOWLEDGE_PLAYWRIGHT_CORE": PACKAGE, "KNOWLEDGE_CHROMIUM": CHROMIUM}
    command = [NODE, str(DRIVER), scenario, f"http://127.0.0.1:{server.health_port}", *arguments]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_search_by_keyboard(it: Service) -> None:
    drive(it, "search", "zebra")


def test_search_without_javascript(it: Service) -> None:
    drive(it, "withoutScript", "zebra")


def test_every_page_fits_a_telephone(it: Service) -> None:
    drive(it, "narrow", *EVERY_PAGE, f"/?q={MARK}&hits=20")


def test_a_run_is_begun_paused_resumed_and_followed_to_its_end(it: Service) -> None:
    write_files(it.folder / "docs", {f"more/{name}": text for name, text in many_files(3000).items()})
    run = int(drive(it, "steer"))
    assert it.run(run).state == "done"
    assert it.run(run).trigger == "api"
    assert it.run(run).counts["added"] == 3000


def test_a_run_is_ended_on_its_page(it: Service) -> None:
    write_files(it.folder / "docs", {f"yet/{name}": text for name, text in many_files(2000).items()})
    drive(it, "end")


def test_hostile_documents_do_nothing(it: Service) -> None:
    """P20, T2, T10 to T12: no script, no dialog, no request elsewhere, nothing wider than the page."""
    drive(it, "hostile", "herd05", "herd09", "herd15", "herd16", "herd18")


def test_axe_finds_no_serious_fault(it: Service) -> None:
    if drive(it, "axe", *EVERY_PAGE, "/?q=herd16") == "no axe-core":
        pytest.skip("axe-core is not beside playwright-core")

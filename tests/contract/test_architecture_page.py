"""docs/architecture.md against the code that it is drawn from."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "architecture.py"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURES = re.findall(r"\]\((images/architecture-\w+\.svg)\)", PAGE)


def run(code: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the graph takes the packages from where Python finds them."""
    beside = {**os.environ, "PYTHONPATH": str(SCRIPT.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", f"import architecture\n{code}"]
    return subprocess.run(command, cwd=ROOT, env=beside, capture_output=True, text=True, check=False)


def test_the_page_and_its_pictures_are_current() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_module_stands_on_the_page_once_in_a_group() -> None:
    done = run("print(*architecture.read_code(architecture.ROOT).modules, sep='\\n')")
    assert done.returncode == 0, done.stderr
    modules = done.stdout.split()
    assert len(modules) > 400
    listed = re.findall(r"^- `([\w.]+)`: ", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(modules)


@pytest.mark.parametrize("picture", PICTURES)
def test_pictures_are_whole_and_say_what_they_show(picture: str) -> None:
    drawn = ElementTree.fromstring((ROOT / "docs" / picture).read_text(encoding="utf-8"))
    assert drawn.findtext("{http://www.w3.org/2000/svg}title")


def test_there_are_two_pictures() -> None:
    assert sorted(PICTURES) == ["images/architecture-packages.svg", "images/architecture-way.svg"]


@pytest.mark.parametrize(
    ("written", "made_now", "is_stale"),
    [
        ("| `app` 290, `store` 11 |", "| `app` 300, `store` 12 |", False),
        ("| `app` 290, `store` 11 |", "| `app` 400, `store` 11 |", True),
        ("| `app` 290 |", "| `app` 290, `store` 1 |", True),
        ("- `app.present`: R37.", "- `app.present`: R38.", True),
        ("", "| `app` 290 |", True),
    ],
)
def test_counts_may_be_a_tenth_off_and_nothing_else(written: str, made_now: str, is_stale: bool) -> None:
    done = run(f"print(architecture.is_stale({written!r}, {made_now!r}))")
    assert done.stdout.strip() == str(is_stale), done.stderr


def test_a_page_without_its_markers_is_told() -> None:
    done = run("architecture.replaced('no markers', 'way', 'text')")
    assert "lacks the markers <!-- made: way --> and <!-- /made -->" in done.stderr


def test_a_module_that_is_new_is_drawn_into_its_group_and_one_that_is_gone_is_told() -> None:
    code = """
code = architecture.read_code(architecture.ROOT)
packages, stops = architecture.read_words(architecture.ROOT / "scripts" / "architecture.toml")
more = code._replace(modules={**code.modules, "app.present_new": "Something new."})
print([name for name, modules in architecture._grouped(more, packages[2]) if "app.present_new" in modules])
less = code._replace(modules={name: said for name, said in code.modules.items() if name != "scheduler.walk"})
architecture._agree(less, packages, stops)
"""
    done = run(code)
    assert done.stdout.strip() == "['Words']", done.stderr
    assert "names modules that are not there: scheduler.walk" in done.stderr

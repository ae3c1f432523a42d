"""Says whether requirements.lock still holds what pyproject.toml asks for: pinned, hashed, from no address.

Beside it lie two parts of it, with the same versions and hashes: what the program needs when it runs, for the image,
and what builds its wheel. Reads these files and nothing else. With 1 it ends when a lock is stale; `make lock` makes
them again.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHOLE = "requirements.lock"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)(?: ; (.+?))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")
NAME = re.compile(r"^[A-Za-z0-9._-]+")
CLAUSE = re.compile(r"(>=|<|==|>|<=)\s*([0-9.]+)")


def problems(pyproject: str, lock: str) -> list[str]:
    """What is wrong with the lock, one line each."""
    pins, found = _pins(lock)
    project = tomllib.loads(pyproject)["project"]
    extras = project.get("optional-dependencies", {}).values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    for requirement in wanted:
        found += _unmet(requirement, pins)
    return found


def part_problems(part: str, wanted: list[str], lock: str, name: str) -> list[str]:
    """What is wrong with the lock `name`, a part of the whole one that holds `wanted`, one line each."""
    pins, found = _pins(part, name)
    for requirement in wanted:
        found += _unmet(requirement, pins, name)
    whole = set(_blocks(lock))
    found += [
        f"{name}: {block.split()[0]} is pinned otherwise than in {WHOLE}"
        for block in _blocks(part)
        if block not in whole
    ]
    return found


def parts(pyproject: str) -> dict[str, list[str]]:
    """The parts of the lock by file name, and the requirements that each holds with all that they need."""
    read = tomllib.loads(pyproject)
    project = read["project"]
    return {
        "requirements-runtime.lock": [*project["dependencies"], *project["optional-dependencies"]["local"]],
        "requirements-build.lock": read["build-system"]["requires"],
    }


def _blocks(lock: str) -> list[str]:
    """Each pin with its hashes; what a pin's marker says may differ between a part and the whole."""
    blocks = re.split(r"\n(?=\S)", lock.strip())
    return [re.sub(r" ; .+? (?=\\\n)", " ", block) for block in blocks if block]


def _pins(lock: str, name: str = WHOLE) -> tuple[dict[str, str], list[str]]:
    """Pinned versions by normalised name, and the lines that are neither a pin nor a hash of one."""
    pins: dict[str, str] = {}
    found: list[str] = []
    hashed = True
    for number, line in enumerate(lock.splitlines(), start=1):
        if HASH.match(line):
            hashed = True
        elif (pin := PIN.match(line)) is not None:
            if not hashed:
                found.append(f"{name}:{number - 1}: no hash")
            pins[_normal(pin[1])] = pin[2]
            hashed = False
        else:
            found.append(f"{name}:{number}: neither a pin nor a hash: {line[:60]!r}")
    return pins, found


def _unmet(requirement: str, pins: dict[str, str], name: str = WHOLE) -> list[str]:
    specification = requirement.split(";")[0]
    match = NAME.match(specification)
    if match is None:
        return [f"cannot read the requirement {requirement!r}"]
    pinned = pins.get(_normal(match[0]))
    if pinned is None:
        return [f"{match[0]} is not in {name}"]
    clauses = CLAUSE.findall(specification)
    return [
        f"{match[0]} {pinned} is not {sign}{bound}"
        for sign, bound in clauses
        if not _holds(_numbers(pinned), sign, _numbers(bound))
    ]


def _holds(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    width = max(len(version), len(bound))
    left, right = (numbers + (0,) * (width - len(numbers)) for numbers in (version, bound))
    return {
        ">=": left >= right,
        "<=": left <= right,
        "==": left == right,
        ">": left > right,
        "<": left < right,
    }[sign]


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers, without post, local and pre-release parts."""
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(int(part) for part in release[0].split(".")) if release else ()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    pyproject, lock = (ROOT / "pyproject.toml").read_text(), (ROOT / WHOLE).read_text()
    found = problems(pyproject, lock)
    for name, wanted in parts(pyproject).items():
        part = (ROOT / name).read_text() if (ROOT / name).is_file() else ""
        found += part_problems(part, wanted, lock, name)
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    if found:
        sys.stderr.write("a lock is stale: run `make lock`\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""A look at the whole index while a soak goes on: a backup, restored elsewhere and audited by means of the tests'.

`python -m bench.soak_checks DATABASE` prints how many documents there are and what the audit finds, as JSON: it keeps
every row in memory, which the process of the soak should not do.
"""

import json
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from bench.soak_plan import Check
from store import driver
from tests.support.audit import audit
from tests.support.chaos import vector_bytes

PROGRAM = (sys.executable, "-P", "-m", "cli.main")


def check_all(configuration: Path, scratch: Path, began_s: float) -> Check:
    """The folder `scratch` is made and removed."""
    began = time.monotonic()
    scratch.mkdir()
    kept = scratch / "backup.tar"
    problems: list[str] = []
    documents = 0
    backed_up = _run("backup", str(kept), "--config", str(configuration), cwd=scratch)
    if backed_up.returncode == 0:
        elsewhere = scratch / "knowledge.yaml"  # of its own, so that no other one above is found
        elsewhere.write_text("knowledge: {directory: restored}\n", encoding="utf-8")
        restored = _run("restore", str(kept), "--config", str(elsewhere), cwd=scratch)
        if restored.returncode == 0:
            documents, problems = _audited(scratch / "restored" / "knowledge.db")
        else:
            problems = [f"restore: {restored.stdout}{restored.stderr}"]
    else:
        problems = [f"backup: {backed_up.stdout}{backed_up.stderr}"]
    verified = _run("verify", "--config", str(configuration), cwd=scratch)
    if verified.returncode != 0:
        problems.append(f"verify: {verified.stdout}{verified.stderr}")
    shutil.rmtree(scratch)
    at_s, took_s = began - began_s, time.monotonic() - began
    return Check(
        round(at_s, 1), documents, tuple(problems), backed_up.returncode, verified.returncode, round(took_s, 1)
    )


def _run(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [*PROGRAM, *arguments]
    return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _audited(database: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak_checks", str(database)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return 0, [f"the audit itself failed: {done.stderr[-2000:]}"]
    documents, problems = json.loads(done.stdout)
    return int(documents), [str(problem) for problem in problems]


def main() -> None:
    database = Path(sys.argv[1])
    problems = audit(database, vector_of=vector_bytes)
    with closing(driver.connect(str(database), uri=False, timeout_s=5)) as connection:
        (documents,) = connection.execute("SELECT count(*) FROM documents").fetchone()
    print(json.dumps([documents, problems[:100]]))


if __name__ == "__main__":
    main()

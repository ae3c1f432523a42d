"""A process that reads an index without end, one snapshot after the other, until it is killed: what a search does, as
somebody else sees it. `python -m tests.support.reading_on DATABASE` writes a line for each document that it saw half.
"""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from store.connection import open_reader

PAUSE_S = 0.02  # the others need the machine too
PROJECT = Path(__file__).parents[2]
_HALF = (
    "SELECT documents.key FROM documents LEFT JOIN chunks ON chunks.document = documents.id"
    " GROUP BY documents.id HAVING count(chunks.id) != documents.chunk_count"
    " OR max(chunks.ordinal) != documents.chunk_count - 1"
)
_FOUND = "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH 'matter' AND rowid NOT IN (SELECT id FROM chunks)"


class LiveReader:
    """The process; what it has seen half is in its file."""

    def __init__(self, database: Path, told: Path) -> None:
        self._told = told
        command = [sys.executable, "-m", "tests.support.reading_on", str(database)]
        with told.open("ab") as out:
            self._process = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    @property
    def is_reading(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        return self._told.read_text("utf-8")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def main(database: Path) -> None:
    with closing(open_reader(database)) as reader:
        while True:
            reader.execute("BEGIN")
            for statement in (_HALF, _FOUND):
                for (what,) in reader.execute(statement).fetchall():
                    sys.stdout.write(f"half: {what}\n")
                    sys.stdout.flush()
            reader.execute("COMMIT")
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The floors: what one plain loop over the same libraries and our schema needs. `python -m bench.floors NAME ...`.

insert  ROOT  read, SHA-256, our chunker, set-wise inserts into our schema in one transaction
walk    ROOT  scandir and stat in key order
"""

import json
import os
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

EXTENSIONS = (".md", ".markdown", ".txt", ".text")
BATCH_FILES = 64


def walk(root: str) -> list[tuple[str, os.stat_result]]:
    """Files in key order with what stat says; dot directories left out."""
    found: list[tuple[str, os.stat_result]] = []

    def enter(path: str, prefix: str) -> None:
        with os.scandir(path) as listing:
            entries = sorted((e.name + "/" if e.is_dir(follow_symlinks=False) else e.name, e) for e in listing)
        for name, entry in entries:
            if name[-1] == "/":
                if name[0] != ".":
                    enter(entry.path, prefix + name)
            elif name.endswith(EXTENSIONS):
                found.append((prefix + name, entry.stat(follow_symlinks=False)))

    enter(root, "")
    return found


def insert(root: str, database: Path) -> dict[str, float]:
    """One process, one loop, one transaction."""
    from store import driver, format_gate
    from store.connection import open_writer
    from workers.checking import chunk_rows
    from workers.chunker import cut

    connection: driver.Connection = open_writer(database, synchronous="NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    format_gate.create_schema(connection, base_id="floor", substring_index="auto")
    document_id = chunk_id = text_bytes = 0
    for path, status in walk(root):
        with open(f"{root}/{path}", "rb") as file:  # noqa: PTH123
            raw = file.read()
        if len(raw) > 512 * 1024:
            continue
        digest = sha256(raw).digest()
        document = cut(raw.decode(), f"c/{path}", markdown=True)
        document_id += 1
        text_bytes += len(raw)
        connection.execute(
            "INSERT INTO documents VALUES (?,?,'c',NULL,?,?,?,?,?,0,0,1,1,?,?,?,'none',?,'[]',0,?)",
            (
                document_id, f"c/{path}", status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino,
                status.st_dev, len(document.chunks), digest, digest, document.title,
                document.tail,
            ),
        )  # fmt: skip
        rows = chunk_rows(document, "auto")
        first = chunk_id
        connection.executemany(
            "INSERT INTO chunks VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            [(first + number, document_id, *row) for number, row in enumerate(rows, 1)],
        )
        chunk_id += len(rows)
    columns = "body, heading_path, names"
    for table, source in (
        ("chunks_fts", "chunks"),
        ("chunks_fts_exact", "chunks"),
        ("chunks_fts_tri", "chunks_tri_source"),
    ):
        connection.execute(f"INSERT INTO {table}(rowid, {columns}) SELECT id, {columns} FROM {source}")  # noqa: S608
    connection.execute("COMMIT")
    connection.close()
    return {"documents": document_id, "chunks": chunk_id, "text_bytes": text_bytes}


def main() -> None:
    name, root = sys.argv[1:3]
    if name == "insert":
        with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as directory:
            print(json.dumps(insert(root, Path(directory) / "floor.db")))
    elif name == "walk":
        began, cpu_began = time.perf_counter(), time.process_time()
        files = len(walk(root))
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        print(json.dumps({"files": files, "seconds": seconds, "cpu_seconds": cpu_seconds}))
    else:
        raise SystemExit(f"no floor named {name}")


if __name__ == "__main__":
    main()

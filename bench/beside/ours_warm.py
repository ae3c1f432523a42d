"""Queries of a JSON file asked of an index in one process: `python -m bench.beside.ours_warm HOME QUERIES`.

Prints milliseconds as JSON, a median of each; what a round has learnt of the vocabulary helps the next one, as in a
service.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from domain.layout import BaseLayout
from retrieval.answer import SearchRequest
from retrieval.search import search
from store.sqlite import SqliteStore

ROUNDS = 3
TOP = 10


def main() -> None:
    home, queries = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    store = SqliteStore(BaseLayout(home).database, base_id=None)
    times: list[list[float]] = [[] for _ in queries]
    for _ in range(ROUNDS + 1):  # the first round warms the pages
        for number, query in enumerate(queries):
            began = time.perf_counter()
            with store.snapshot() as snapshot:
                search(snapshot, SearchRequest(query=query, top_k=TOP))
            times[number].append((time.perf_counter() - began) * 1000)
    store.close()
    print(json.dumps([statistics.median(after[1:]) for after in times]))


if __name__ == "__main__":
    main()

"""A folder of text in a tantivy index, as small a program as will do it; runs in the environment of build/beside.

    update ROOT INDEX      every file that is new or changed since the last time, whole, by size and time; the first
                           time all of them
    ask    INDEX WORDS     the ten best documents with a snippet each
    warm   INDEX QUERIES   the same for each query of a JSON file, in one process: milliseconds as JSON, medians

Documents have two fields: the path (raw) and the text (English stemmer), both stored.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

import tantivy  # type: ignore[import-not-found, unused-ignore]

EXTENSIONS = (".md", ".markdown", ".txt", ".text")
MAX_BYTES = 512 * 1024
HEAP_BYTES = 128_000_000
TOP = 10
ROUNDS = 3


def opened(place: Path) -> "tantivy.Index":
    place.mkdir(parents=True, exist_ok=True)
    fields = tantivy.SchemaBuilder()
    fields.add_text_field("path", stored=True, tokenizer_name="raw")
    fields.add_text_field("text", stored=True, tokenizer_name="en_stem")
    return tantivy.Index(fields.build(), path=str(place))


def update(root: Path, place: Path) -> None:
    index, known_file = opened(place), place / "known.json"
    known = json.loads(known_file.read_text(encoding="utf-8")) if known_file.exists() else {}
    seen = {}
    for folder, _, names in os.walk(root):
        for name in names:
            file = os.path.join(folder, name)  # noqa: PTH118 - a Path for each file is most of the walk
            status = os.stat(file)  # noqa: PTH116
            if name.endswith(EXTENSIONS) and status.st_size <= MAX_BYTES:
                seen[file] = [status.st_mtime_ns, status.st_size]
    changed = [path for path, stamp in seen.items() if known.get(path) != stamp]
    gone = known.keys() - seen.keys()
    if changed or gone:
        writer = index.writer(HEAP_BYTES)
        for path in (*gone, *(path for path in changed if path in known)):
            writer.delete_documents("path", path)
        for path in changed:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            writer.add_document(tantivy.Document(path=path, text=text))
        writer.commit()
        writer.wait_merging_threads()
        known_file.write_text(json.dumps(seen), encoding="utf-8")
    print(f"{len(changed)} of {len(seen)} files, {len(gone)} gone")


def found(index: "tantivy.Index", words: str) -> list[tuple[float, str, str]]:
    searcher = index.searcher()
    query = index.parse_query(words, ["text"])
    snippets = tantivy.SnippetGenerator.create(searcher, query, index.schema, "text")
    hits = []
    for score, address in searcher.search(query, TOP).hits:
        document = searcher.doc(address)
        hits.append((score, document["path"][0], snippets.snippet_from_doc(document).fragment()))
    return hits


def warm(place: Path, queries: list[str]) -> list[float]:
    index = opened(place)
    times: list[list[float]] = [[] for _ in queries]
    for _ in range(ROUNDS + 1):
        for number, words in enumerate(queries):
            began = time.perf_counter()
            found(index, words)
            times[number].append((time.perf_counter() - began) * 1000)
    return [statistics.median(after[1:]) for after in times]


def main() -> None:
    match sys.argv[1:]:
        case ["update", root, place]:
            update(Path(root), Path(place))
        case ["ask", place, words]:
            print(
                *(f"{score:.3f} {path}\n  {text!r}" for score, path, text in found(opened(Path(place)), words)),
                sep="\n",
            )
        case ["warm", place, queries]:
            print(json.dumps(warm(Path(place), json.loads(Path(queries).read_text(encoding="utf-8")))))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()

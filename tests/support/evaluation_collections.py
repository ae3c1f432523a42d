"""A small test collection, and what is wrong with it where a test wants it so."""

import json
from pathlib import Path

DOCUMENTS = (
    {"id": "bread", "title": "Baking bread", "text": "Knead the dough and bake the loaf in a hot oven."},
    {"id": "../stove", "title": "Repairs", "text": "The stove is repaired with a new burner."},
    {"id": "a/b\\c\u0000", "title": "", "text": "---\ntitle: Pretended\n---\nA kettle boils water.\n"},
    {"id": 7, "title": "Long", "text": "Filler about nothing. \n\n" * 120 + "The lighthouse stands on a cliff."},
    {"id": "empty", "title": "", "text": " "},
)
QUERIES = "q1\thow is bread baked\nq2\tburner of a stove\n\nq3\tlighthouse cliff\nq4\tunanswered\nq5\tno judgement\n"
JUDGEMENTS = (
    "q1\tbread\t3\nq1\t../stove\t0\nq2\t../stove\t1\nq2\tgone\t1\nq3\t7\t1\nq3\tbread\t1\nq4\tbread\t0\nqx\tbread\t1\n"
)


def write_collection(
    folder: Path, documents: str | None = None, queries: str = QUERIES, judgements: str = JUDGEMENTS
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{json.dumps(document)}\n" for document in DOCUMENTS) if documents is None else documents
    (folder / "documents.jsonl").write_text(lines, encoding="utf-8")
    (folder / "queries.tsv").write_text(queries, encoding="utf-8")
    (folder / "qrels.tsv").write_text(judgements, encoding="utf-8")
    return folder

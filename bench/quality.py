"""`python -m bench.quality --collection DIR`: our rankings beside BM25 as `bm25s` computes it on the same texts.

BM25 is that of Lucene with k1 1.2 and b 0.75, over whole documents stemmed by Snowball's English stemmer: without its
English stop words taken out (the bar: not below it) and with them (the aim). With --local, meaning is measured too,
with the model that needs no server: hybrid against words alone.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import bm25s
import Stemmer

from app.evaluation import Evaluation, evaluate
from app.evaluation_collection import Question, questions_of, read_documents, read_judged
from app.evaluation_vectors import local_embeddings
from app.progress import RunProgress
from bench.figures import Bar, Sheet
from domain.settings import Settings
from retrieval.metrics import RECALL_DEPTH, ndcg, recall, reciprocal_rank

K1, B = 1.2, 0.75
HYBRID_MUST, HYBRID_AIM = 1.0, 1.03
BARS = {
    "lexical / BM25, no stop words": Bar(1.0, is_more_better=True),
    "lexical / BM25, stop words": Bar(aim=1.0, is_more_better=True),
    "hybrid / lexical": Bar(HYBRID_MUST, HYBRID_AIM, is_more_better=True),
}


class Scores(NamedTuple):
    ndcg_10: float
    recall_50: float
    mrr: float


class Ratio(NamedTuple):
    """nDCG@10 of one ranking over that of another; `verdict` where something was promised of it."""

    name: str
    value: float
    verdict: str = ""


def bm25_scores(names: Sequence[str], texts: Sequence[str], questions: Sequence[Question], *, stop: bool) -> Scores:
    """BM25 over whole documents; `stop`: without bm25s's English stop words."""
    stemmer = Stemmer.Stemmer("english")

    def tokens(of: Sequence[str]) -> object:
        return bm25s.tokenize(list(of), stopwords="en" if stop else None, stemmer=stemmer, show_progress=False)

    ranking = bm25s.BM25(method="lucene", k1=K1, b=B)
    ranking.index(tokens(texts), show_progress=False)
    asked = tokens([question.text for question in questions])
    depth = min(RECALL_DEPTH, len(names))
    found, _ = ranking.retrieve(asked, k=depth, show_progress=False)
    ranked = [[names[number] for number in row] for row in found]
    pairs = list(zip(ranked, questions, strict=True))
    return Scores(
        fmean(ndcg(row, question.gains) for row, question in pairs),
        fmean(recall(row, question.gains) for row, question in pairs),
        fmean(reciprocal_rank(row, question.gains) for row, question in pairs),
    )


def ratios(ours: Evaluation, plain: Scores, stopped: Scores) -> list[Ratio]:
    by_mode = {scores.mode: scores.ndcg_10 for scores in ours.modes}
    lexical = by_mode["lexical"]
    found = [
        Ratio("lexical / BM25, no stop words", lexical / plain.ndcg_10, _verdict(lexical / plain.ndcg_10, must=1.0)),
        Ratio("lexical / BM25, stop words", lexical / stopped.ndcg_10, _verdict(lexical / stopped.ndcg_10, aim=1.0)),
    ]
    for mode, ndcg_10 in by_mode.items():
        if mode != "lexical":
            value = ndcg_10 / lexical
            verdict = _verdict(value, must=HYBRID_MUST, aim=HYBRID_AIM) if mode == "hybrid" else ""
            found.append(Ratio(f"{mode} / lexical", value, verdict))
    return found


def _verdict(value: float, *, must: float | None = None, aim: float | None = None) -> str:
    if aim is not None and value >= aim:
        return "aim"
    if must is None:
        return "below the aim"
    return "must" if value >= must else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--collection", type=Path, required=True, help="documents.jsonl, queries.tsv and qrels.tsv")
    parser.add_argument("--local", action="store_true", help="measure meaning too, with the local model")
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    arguments = parser.parse_args()
    collection: Path = arguments.collection.absolute()
    documents = list(read_documents(collection))
    names = [str(document.id) for document in documents]
    texts = [f"{document.title}\n\n{document.text}" for document in documents]
    questions = questions_of(read_judged(collection), frozenset(names)).asked
    plain, stopped = (bm25_scores(names, texts, questions, stop=stop) for stop in (False, True))
    settings = Settings(identity="bench", home=Path("unused"), config_path=None, configured=False)
    embeddings = local_embeddings() if arguments.local else None
    ours = evaluate(settings, collection, embeddings=embeddings, progress=RunProgress())
    rows = {"BM25, no stop words": plain, "BM25, stop words": stopped}
    rows |= {mode.mode: Scores(mode.ndcg_10, mode.recall_50, mode.mrr) for mode in ours.modes}
    print(f"{'ranking':<24} {'nDCG@10':>9} {'recall@50':>9} {'MRR':>9}")
    for name, scores in rows.items():
        print(f"{name:<24} {scores.ndcg_10:>9.4f} {scores.recall_50:>9.4f} {scores.mrr:>9.4f}")
    figures = ratios(ours, plain, stopped)
    for figure in figures:
        print(f"{figure.name:<34} {figure.value:.4f}  {figure.verdict}")
    if arguments.json is not None:
        write_figures(arguments.json, rows, figures)


def write_figures(path: Path, rankings: dict[str, Scores], found: Sequence[Ratio]) -> None:
    sheet = Sheet()
    for name, scores in rankings.items():
        detail = f"recall@50 {scores.recall_50:.4f}, MRR {scores.mrr:.4f}"
        sheet.add(f"nDCG@10: {name}", scores.ndcg_10, "", detail=detail)
    for ratio in found:
        sheet.add(f"nDCG@10: {ratio.name}", ratio.value, "x", BARS.get(ratio.name, Bar()))
    sheet.write(path)


if __name__ == "__main__":
    main()

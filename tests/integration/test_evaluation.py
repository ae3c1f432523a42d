"""`knowledge eval run` over small collections and, where it is there, a real one."""

import json
import tempfile
from math import log2
from pathlib import Path

import pytest

from app.evaluation import Evaluation, ModeScores, evaluate
from app.evaluation_collection import read_documents
from app.evaluation_scratch import ROOT, write_documents
from app.evaluation_vectors import local_embeddings
from app.present_evaluation import evaluation_json, evaluation_text
from app.progress import RunProgress
from bench.quality import bm25_scores, ratios
from cli.main import run
from domain.errors import InterruptedRunError, UsageError
from domain.settings import EmbeddingsSettings, Settings
from tests.support.corpora import cranfield
from tests.support.evaluation_collections import write_collection


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where scratch bases are made: a short path of its own, for sockets."""
    made = Path(tempfile.mkdtemp(prefix="knowledge-test-"))
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest, temporary: Path) -> None:
    def look() -> None:
        left = list(temporary.iterdir())
        temporary.rmdir() if not left else None
        assert left == []

    request.addfinalizer(look)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(identity="default", home=tmp_path / "home", config_path=None, configured=False)


def evaluated(settings: Settings, collection: Path, embeddings: EmbeddingsSettings | None = None) -> Evaluation:
    return evaluate(settings, collection, embeddings=embeddings, progress=RunProgress())


def test_a_collection_is_measured(settings: Settings, tmp_path: Path) -> None:
    found = evaluated(settings, write_collection(tmp_path / "c"))
    (scores,) = found.modes
    assert (scores.mode, [query.id for query in scores.queries]) == ("lexical", ["q1", "q2", "q3"])
    first, second, third = scores.queries
    assert (first.ndcg_10, first.recall_50, first.reciprocal_rank, first.found[0]) == (1.0, 1.0, 1.0, "bread")
    assert (second.ndcg_10, second.found[0]) == (1.0, "../stove")
    assert third.found == ("7",)
    assert third.ndcg_10 == pytest.approx(1 / (1 + 1 / log2(3)))
    assert (third.recall_50, third.reciprocal_rank) == (0.5, 1.0)
    assert scores.mrr == 1.0
    assert scores.recall_50 == pytest.approx((1 + 1 + 0.5) / 3)
    assert (found.documents, found.documents_indexed) == (5, 4)
    assert found.chunks > 4
    assert (found.queries_without_relevant, found.judgements_of_unknown) == (2, 2)
    assert not settings.home.exists()


def test_it_is_told_in_a_table_and_in_json(settings: Settings, tmp_path: Path) -> None:
    found = evaluated(settings, write_collection(tmp_path / "c"))
    text = evaluation_text(found)
    assert "mode     queries  nDCG@10  recall@50     MRR  p50 ms" in text
    assert "lexical        3   0.8710     0.8333  1.0000" in text
    assert "not indexed, so never found: 1 document" in text
    assert "left out: 2 queries without a relevant document" in text
    assert "left out: 2 judgements" in text
    value = json.loads(json.dumps(evaluation_json(found)))
    assert value["modes"][0]["per_query"][2]["found"] == ["7"]
    assert value["modes"][0]["ndcg_10"] == pytest.approx(0.8710, abs=1e-4)


def test_a_document_is_ranked_by_its_best_chunk_and_stands_once(settings: Settings, tmp_path: Path) -> None:
    documents = [
        {"id": "long", "text": "\n\n".join([f"zebra crossing number {n} " + "words " * 200 for n in range(90)])},
        {"id": "short", "text": "A zebra."},
    ]
    collection = write_collection(
        tmp_path / "c", "".join(f"{json.dumps(one)}\n" for one in documents), "q\tzebra\n", "q\tlong\t1\n"
    )
    ((query,),) = [mode.queries for mode in evaluated(settings, collection).modes]
    assert query.found == ("short", "long")
    assert (query.recall_50, query.reciprocal_rank) == (1.0, 0.5)


def test_no_id_is_a_path(tmp_path: Path) -> None:
    """Documents are files by number, inside the folder, and none of their texts is read as frontmatter."""
    keys = write_documents(tmp_path / ROOT, read_documents(write_collection(tmp_path / "c")))
    written = sorted(path.relative_to(tmp_path / ROOT).as_posix() for path in (tmp_path / ROOT).rglob("*.md"))
    assert written == [f"c000000/d{number:09}.md" for number in range(5)]
    assert list(keys) == [f"{ROOT}/{name}" for name in written]
    assert list(keys.values()) == ["bread", "../stove", "a/b\\c\x00", "7", "empty"]
    assert (tmp_path / ROOT / written[0]).read_text(encoding="utf-8").startswith("# Baking bread\n\nKnead")
    assert (tmp_path / ROOT / written[2]).read_text(encoding="utf-8").startswith("\n---\n")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"documents": '{"id": "a", "text": "x"}\n{"id": 1}\n'}, "documents.jsonl, line 2: Object missing required"),
        ({"documents": '{"id": "a", "text": "x"}\n\n[1]\n'}, "documents.jsonl, line 3: Expected `object`"),
        ({"documents": "not json\n"}, "documents.jsonl, line 1: "),
        ({"documents": '{"id": "", "text": "x"}\n'}, "documents.jsonl, line 1: the id is empty"),
        ({"documents": '{"id": "a", "text": "\\ud800"}\n'}, "documents.jsonl, line 1: "),
        ({"documents": '{"id": "1", "text": "x"}\n{"id": 1, "text": "y"}\n'}, "two documents have the id '1'"),
        ({"documents": "\n"}, "documents.jsonl holds no document"),
        ({"queries": "q1\tfine\nq2 no tab\n"}, "queries.tsv, line 2: a query is its id, a tab and its text"),
        ({"queries": "q1\tfine\nq1\tagain\n"}, "queries.tsv, line 2: the id 'q1' stands in an earlier line"),
        ({"queries": "q1\t \n"}, "queries.tsv, line 1: "),
        ({"queries": "\n"}, "queries.tsv holds no query"),
        ({"judgements": "q1\tbread\t1\nq1 0 bread 1\n"}, "qrels.tsv, line 2: a judgement is"),
        ({"judgements": "q1\tbread\tyes\n"}, "qrels.tsv, line 1: a judgement is"),
        ({"judgements": "q1\t\t1\n"}, "qrels.tsv, line 1: a judgement is"),
        ({"judgements": "q1\tbread\t0\n"}, "no query has a relevant document"),
        ({"judgements": ""}, "no query has a relevant document"),
    ],
)
def test_a_bad_collection_is_refused_with_file_and_line(
    settings: Settings, tmp_path: Path, changed: dict[str, str], told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        evaluated(settings, write_collection(tmp_path / "c", **changed))
    assert told in caught.value.message
    assert caught.value.hint


def test_what_is_no_collection_is_refused(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        evaluated(settings, tmp_path / "nowhere")
    (tmp_path / "c").mkdir()
    with pytest.raises(UsageError, match=r"no documents.jsonl and no queries.tsv and no qrels.tsv"):
        evaluated(settings, tmp_path / "c")
    write_collection(tmp_path / "c")
    (tmp_path / "c" / "queries.tsv").write_bytes(b"q1\tfine\nq2\t\xff\n")
    with pytest.raises(UsageError, match=r"queries.tsv, line 2: this is not UTF-8"):
        evaluated(settings, tmp_path / "c")


def test_interrupted_it_leaves_nothing(settings: Settings, tmp_path: Path) -> None:
    def interrupt(mode: str, queries: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match="nothing is left"):
        evaluate(
            settings, write_collection(tmp_path / "c"), embeddings=None, progress=RunProgress(), announce=interrupt
        )


def test_meaning_is_measured_with_the_local_model(settings: Settings, tmp_path: Path) -> None:
    found = evaluated(settings, write_collection(tmp_path / "c"), local_embeddings())
    assert [scores.mode for scores in found.modes] == ["lexical", "vector", "hybrid"]
    by_mode: dict[str, ModeScores] = {scores.mode: scores for scores in found.modes}
    assert by_mode["vector"].queries[0].found[0] == "bread"
    assert len(by_mode["vector"].queries[2].found) == 4  # every document has a place by meaning
    assert by_mode["hybrid"].ndcg_10 >= 0.8


def test_the_command_prints_a_table_or_writes_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_collection(tmp_path / "c")
    assert run(["eval", "run", "--collection", "c", "--json", "out.json"]) == 0
    said = capsys.readouterr()
    assert "lexical        3" in said.out
    assert "asking 3 queries, lexical" in said.err
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["modes"][0]["mode"] == "lexical"
    assert run(["eval", "run", "--collection", "c", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 5
    assert run(["eval", "run", "--collection", "nowhere"]) == 2
    assert run(["eval", "run", "--collection", "c", "--json", "nowhere/out.json"]) == 2
    assert run(["eval", "run"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "out.json"]


def test_on_a_real_collection_words_rank_no_worse_than_bm25(settings: Settings) -> None:
    """Issue 3: lexical not below BM25 as bm25s computes it on the same texts in the same run."""
    collection = cranfield()
    found = evaluated(settings, collection)
    documents = list(read_documents(collection))
    names = [str(document.id) for document in documents]
    texts = [f"{document.title}\n\n{document.text}" for document in documents]
    from app.evaluation_collection import questions_of, read_judged

    questions = questions_of(read_judged(collection), frozenset(names)).asked
    plain = bm25_scores(names, texts, questions, stop=False)
    stopped = bm25_scores(names, texts, questions, stop=True)
    assert len(found.modes[0].queries) == 225
    assert 0.3 < plain.ndcg_10 < 0.5
    assert [ratio.verdict for ratio in ratios(found, plain, stopped)] == ["must", "aim"]

"""Which prefixes a model expects, by the names that servers give it (S1-28)."""

import pytest

from embedding.known_models import LOCAL_MODEL, NO_PREFIXES, Prefixes, expected_prefixes

E5 = Prefixes("query: ", "passage: ")
NOMIC = Prefixes("search_query: ", "search_document: ")
SEARCHING = Prefixes("Represent this sentence for searching relevant passages: ", "")
GEMMA = Prefixes("task: search result | query: ", "title: {title} | text: ")


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [
        ("intfloat/multilingual-e5-small", E5),
        ("intfloat/e5-large-v2", E5),
        ("text-embedding-multilingual-e5-base", E5),
        ("nomic-ai/nomic-embed-text-v1.5", NOMIC),
        ("nomic-embed-text:latest", NOMIC),
        ("text-embedding-nomic-embed-text-v1.5@q8_0", NOMIC),
        ("nomic_embed_text", NOMIC),
        ("text-embedding-embeddinggemma-300m", GEMMA),
        ("google/EmbeddingGemma-300M", GEMMA),
        ("BAAI/bge-small-en-v1.5", SEARCHING),
        ("BAAI/bge-m3", NO_PREFIXES),
        ("mxbai-embed-large", SEARCHING),
        ("mixedbread-ai/mxbai-embed-large-v1", SEARCHING),
        ("snowflake-arctic-embed:335m", SEARCHING),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", SEARCHING),
        ("snowflake-arctic-embed2", Prefixes("query: ", "")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", Prefixes("query: ", "")),
        ("thenlper/gte-large", NO_PREFIXES),
        ("Alibaba-NLP/gte-multilingual-base", NO_PREFIXES),
        ("sentence-transformers/all-MiniLM-L6-v2", NO_PREFIXES),
        ("text-embedding-3-small", NO_PREFIXES),
        (LOCAL_MODEL, NO_PREFIXES),
    ],
)
def test_known_models(model: str, prefixes: Prefixes) -> None:
    assert expected_prefixes(model) == prefixes


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen3-Embedding-0.6B",
        "qwen3-embedding:0.6b",
        "Alibaba-NLP/gte-Qwen2-1.5B-instruct",
        "intfloat/e5-mistral-7b-instruct",
        "intfloat/multilingual-e5-large-instruct",
    ],
)
def test_models_that_take_an_instruction_before_the_query_only(model: str) -> None:
    prefixes = expected_prefixes(model)
    assert prefixes is not None
    assert prefixes.query.startswith("Instruct: ")
    assert "\nQuery:" in prefixes.query
    assert prefixes.document == ""


@pytest.mark.parametrize("model", ["", "my-own-model", "text-embedding-4", "the5-small", "gte", "x" * 100_000])
def test_of_other_models_nothing_is_said(model: str) -> None:
    assert expected_prefixes(model) is None


def test_prefixes_stand_in_front_of_a_text_as_they_are() -> None:
    """No prefix of the table loses its last space, or holds a placeholder that is not known."""
    for model in ("e5-small", "nomic-embed-text", "embeddinggemma", "bge-base-en", "snowflake-arctic-embed2"):
        prefixes = expected_prefixes(model)
        assert prefixes is not None
        assert all(prefix == "" or prefix.endswith(" ") for prefix in prefixes)
        assert all("{" not in prefix.replace("{title}", "") for prefix in prefixes)

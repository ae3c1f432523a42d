"""What is known of the models that people use: which prefixes they were trained with.

A hint for the doctor, never applied by itself: a prefix is part of what a vector is made from. Sources are the
models' own cards. Names are those of the models, in the spellings of the servers (`nomic-embed-text:v1.5`,
`text-embedding-nomic-embed-text-v1.5@q8_0`, `nomic-ai/nomic-embed-text-v1.5`).
"""

import re
from typing import NamedTuple

LOCAL_MODEL = "wordllama-l2-supercat-256"


class Prefixes(NamedTuple):
    """What a model expects before a text; "" where it expects nothing."""

    query: str
    document: str


NO_PREFIXES = Prefixes("", "")
_SEARCHING = Prefixes("Represent this sentence for searching relevant passages: ", "")
_E5 = Prefixes("query: ", "passage: ")
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# the first pattern that is found in the name decides: special cases stand before their family
_TABLE = (
    (r"e5-mistral|e5-[a-z]+-instruct", Prefixes(f"{_INSTRUCT} ", "")),
    (r"e5-(small|base|large)", _E5),
    (r"bge-m3", NO_PREFIXES),
    (r"bge-(small|base|large)-en", _SEARCHING),
    (r"bge-(small|base|large)-zh", Prefixes("为这个句子生成表示以用于检索相关文章\uff1a", "")),
    (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"embeddinggemma|embedding-gemma", Prefixes("task: search result | query: ", "title: {title} | text: ")),
    (r"gte-qwen2?-?[0-9.]*b?-?[0-9.]*b?-instruct", Prefixes(f"{_INSTRUCT} ", "")),
    (r"gte-(small|base|large|multilingual|modernbert)", NO_PREFIXES),
    (r"snowflake-arctic-embed(2|-[a-z]+-v2)", Prefixes("query: ", "")),
    (r"snowflake-arctic-embed", _SEARCHING),
    (r"mxbai-embed-large", _SEARCHING),
    (r"qwen3-embedding", Prefixes(_INSTRUCT, "")),
    (r"all-minilm|all-mpnet|paraphrase-multilingual|multi-qa-(minilm|mpnet)", NO_PREFIXES),
    (r"text-embedding-(3-(small|large)|ada-002)", NO_PREFIXES),
    (r"jina-embeddings-v2", NO_PREFIXES),
    (r"granite-embedding", NO_PREFIXES),
    (r"wordllama|potion-|static-retrieval-mrl", NO_PREFIXES),
)
_MAX_NAME_CHARS = 200


def expected_prefixes(model: str) -> Prefixes | None:
    """What the model's own card says; None: not known."""
    name = re.sub(r"[_\s]+", "-", model[:_MAX_NAME_CHARS].lower())
    found = (prefixes for pattern, prefixes in _TABLE if re.search(rf"(?<![a-z0-9])(?:{pattern})", name))
    return next(found, None)

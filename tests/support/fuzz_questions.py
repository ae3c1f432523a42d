"""What is asked of an index: queries, enumerations, patterns, globs and citations, near the languages they are in."""

from random import Random

from retrieval.answer import SearchRequest
from retrieval.match_answer import MatchRequest
from retrieval.vocabulary import WordsRequest
from tests.support.fuzz_texts import ODD_INTEGERS, ODD_NUMBERS, WORDS
from tests.support.fuzz_trying import some
from tests.support.hostile_texts import hostile_texts

_SIGNS = (
    '"', "''", "(", ")", "*", "^", ":", "-", "--", "+", "NEAR(", "AND", "OR", "NOT", "NEAR/3", "{", "}", ",", ";",
    "<", "\x00", "\ud800",
    "\udcff", "\u201c", "\u201d", "body:", "heading:", "heading_path:", "names:", "BODY:", "-body:", "--body:",
    "rank:", "rowid:", "~", "|",
    "\\", "/", "%", "_", "=", "?", "!", "#0", "\n", "\t", "\r", "\u00a0", "\u3000", " ", "  ", '""', '"""', 'a"b',
    "-\"", ":\"", "*\"",
)  # fmt: skip
_HOSTILE = tuple(one.text for one in list(hostile_texts())[::7])
_GLOB_SIGNS = (
    "*", "**", "?", "[", "]", "[!", "[^", "[a-z]", "[z-a]", "[!]", "[]]", "[]", "[-]", "[a-", "-", "--", "/", "//",
    "./", "../", "{a,b}",
    "\\", "\n", "\x00", "(", ")", "|", "+", ".", "&&", "||", "~~", "^", "$", "[[", "[[:alpha:]]", "\\d", "d",
    "a.md", "*.md", "é", "\ud800",
    "[\n-\t]", "[+--]", "[\\-a]", "[#--]", "!", " ",
)  # fmt: skip
_PATTERN_SIGNS = (
    "(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "^", "$", ".", "\\", "(?", "(?i)", "(?a)", "(?u)", "(?L)",
    "(?x)", "(?s)", "(?-i:", "(?:",
    "(?P<a>", "(?P=a)", "(?<=", "(?<!", "(?=", "(?!", "(?>", "(?#", "(?(1)a|b)", "(?(2)", "\\1", "\\g<1>", "\\Z",
    "\\b", "\\d", "\\p{L}", "\\N{DIGIT ONE}",
    "\\x", "\\u12", "\\U00110000", "\\0", "\\777", "[a-z]", "[z-a]", "[[:alpha:]]", "[^", "[]", "[--a]", "[a&&b]",
    "[\x00-\uffff]", "[^\x00-\U0010ffff]",
    "{1,9}", "{999999999}", "{4294967295}", "{4294967296}", "{9999999999999}", "{,3}", "{3,1}", "*+", "++", "?+",
    "*?", "(a+)+$", "(a|a)*$", "(.*)*x",
    "(a*)*b", "((((((((", "))))", "a", "e", "qu", "1", "é", "ß", "\u0130", "\ud800", "\x00", "\n", "#", " ", "_",
)  # fmt: skip
_KEYS = (
    "docs/a.md", "docs/plain.md", "d/a.md", "d/b.md", "d/wheels.md", "d/oven.md", "d/d.md", "e/a.md", "d", "d/", "",
    "d//a.md", "d/./a.md", "d/../d/a.md", "D/A.MD",
)  # fmt: skip
_ELSEWHERE = (
    "../../etc/passwd", "/etc/passwd", "/proc/self/environ", "~", "~root", "~nobody/x", "%2e%2e/%2e%2e", "d/%61.md",
    "C:\\a", "\\\\host\\share",
    "file:///etc/passwd", "d/a.md\x00", "d/a.md/", "knowledge.db", "./d/a.md", "d/a.md#0#0", "a" * 9_000,
    "/" * 5_000, "../" * 3_000, "\ud800",
    "\udcff", "<U+0041>", "<U+110000>", "<U+D800>", "d/<U+0061>.md", "<U+0000>", "\u202ea.md", "$HOME", "-", "--",
    "*", "?", ".", "..",
)  # fmt: skip
_ORDINALS = (
    "0", "1", "-1", "+0", "00", "99", "2147483647", "2147483648", "9" * 20, "9" * 5_000, "", " 0", "0 ", "0x0",
    "1e0", "٣", "²", "0\n", "#", "0#0",
)  # fmt: skip
MODES = ("auto", "lexical", "vector", "hybrid")


def query(random: Random) -> str:
    """Words, operators of other languages, quotes that do not close; sometimes far too much of it."""
    kind = random.random()
    if kind < 0.08:
        return random.choice(_HOSTILE)
    if kind < 0.12:
        return random.choice((*WORDS, *_SIGNS, "a ")) * random.choice((50, 3_000, 20_000))
    parts = [random.choice(random.choice((WORDS, WORDS, _SIGNS))) for _ in range(random.choice((0, 1, 2, 3, 5, 8, 60)))]
    return random.choice((" ", "", " ")).join(parts)


def glob(random: Random) -> str:
    kind = random.random()
    if kind < 0.6:
        return ""
    if kind < 0.63:
        return "".join(some(random, _GLOB_SIGNS, 3)) * random.choice((40, 400))
    return "".join(some(random, _GLOB_SIGNS, 6))


def search_request(random: Random) -> SearchRequest:
    return SearchRequest(
        query(random),
        top_k=random.choice((None, *ODD_INTEGERS)),
        configured_top_k=random.choice((5, *ODD_INTEGERS)),
        root=random.choice(("", "", "", "d", "e", "\x00", "d/", "%")),
        path_glob=glob(random),
        all_chunks=random.random() < 0.2,
        full=random.random() < 0.3,
        mode=random.choice(MODES),  # type: ignore[arg-type]
        min_similarity=random.choice((-1.0, 0.0, 0.5, 1.0, float("nan"), float("inf"), -5.0)),
    )


def match_query(random: Random) -> str:
    """From the grammar of enumerations, then with something of another in it."""
    if random.random() < 0.1:
        return query(random)
    terms = []
    for _ in range(random.choice((0, 1, 1, 2, 2, 3, 5, 45))):
        words = random.choice(WORDS)
        quoted = random.random() < 0.35
        text = f'"{words} {random.choice(WORDS)}"' if quoted else words
        field = random.choice(("", "", "", "heading:", "body:", "Heading:", "names:", ":", "body: "))
        terms.append(f"{random.choice(('', '', '', '-', '--', '+'))}{field}{text}")
    written = random.choice((" ", "  ", "\t", "\n", "")).join(terms)
    if random.random() < 0.4:
        at = random.randint(0, len(written))
        written = written[:at] + random.choice(_SIGNS) + written[at + random.randint(0, 2) :]
    return written


def match_request(random: Random) -> MatchRequest:
    return MatchRequest(
        match_query(random),
        limit=random.choice((None, 0, 1, 20, 10**6)),
        sort=random.choice(("matches", "path")),
        min_matches=random.choice((1, 1, 1, 2, 10**9)),
        root=random.choice(("", "", "", "d", "e", "\x00")),
        path_glob=glob(random),
        offset=random.choice((0, 0, 1, 10**9)),
    )


def pattern(random: Random) -> str:
    if random.random() < 0.05:
        return random.choice(_PATTERN_SIGNS) * random.choice((30, 150, 1_001))
    return "".join(some(random, _PATTERN_SIGNS, 8))


def words_request(random: Random) -> WordsRequest:
    return WordsRequest(
        pattern(random),
        limit=random.choice((1_000, 1, 5, *ODD_INTEGERS)),
        min_chunks=random.choice((0, 0, 0, 1, *ODD_INTEGERS)),
        max_chunks=random.choice((None, None, None, 1, *ODD_INTEGERS)),
        field=random.choice((None, None, "body", "heading", "names")),
        sort=random.choice(("count", "word")),
        with_stems=random.random() < 0.5,
    )


def citation(random: Random) -> str:
    """Near one that there is, or at something that no index holds."""
    kind = random.random()
    if kind < 0.05:
        return random.choice(_HOSTILE)
    key = random.choice(_KEYS if kind < 0.6 else _ELSEWHERE)
    if random.random() < 0.1:
        at = random.randint(0, len(key))
        key = key[:at] + random.choice((*_GLOB_SIGNS, *WORDS)) + key[at:]
    return key if random.random() < 0.25 else f"{key}#{random.choice(('0', '0', '0', '1', random.choice(_ORDINALS)))}"


def lines(random: Random) -> str:
    if random.random() < 0.8:
        return ""
    return random.choice(("", "-", "-", "--", ",", " ")).join(some(random, ("1", "2", *ODD_NUMBERS), 3))

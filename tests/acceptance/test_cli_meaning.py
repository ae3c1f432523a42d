"""The installed command with a vector tier: a model inside the program, and a server of its own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files
from tests.support.embedding_server import embedding_server

TEXTS: dict[str, str | bytes] = {
    "docs/garden.md": "# Growing food\n\nSow beans in May, and water the beds in the evening.\n",
    "docs/kitchen.md": "# Cooker\n\nWhen the oven stays cold, replace its heating element.\n",
    "docs/rules.md": "# Holidays\n\nEmployees request leave two weeks ahead.\n",
}
HYBRID = "tier: hybrid (FTS5 + vectors, RRF) - model=wordllama-l2-supercat-256 dim=256"
LEXICAL = "tier: lexical (FTS5) - no embeddings configured"


def configure(folder: Path, embeddings: dict[str, object] | None) -> None:
    block: dict[str, object] = {"paths": ["docs"]}
    if embeddings is not None:
        block["embeddings"] = embeddings
    (folder / "knowledge.yaml").write_text(json.dumps({"knowledge": block}), encoding="utf-8")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    folder = tmp_path_factory.mktemp("local")
    write_files(folder, TEXTS)
    configure(folder, {"provider": "local"})
    command = CommandLine(folder)
    ended = command("index")
    assert ended.status == 0, ended.err
    assert "embedding: about 3 texts of 3 files" in ended.err and "this machine (local model)" in ended.err
    assert ended.out.startswith(f"{HYBRID}\nindexed: 3 added\nvectors: 3 texts embedded, 0 reused\n")
    yield command


def test_what_shares_no_word_is_found_by_its_meaning(local: CommandLine) -> None:
    """S1-11; and the answer says that it is by meaning only."""
    ended = local("search", "planting vegetables", "--json")
    answer = ended.value
    assert (answer["tier"], answer["mode"], answer["results"][0]["path"]) == (HYBRID, "hybrid", "docs/garden.md")
    assert answer["results"][0]["lanes"]["vector"] == 1
    assert answer["results"][0]["lanes"]["words"] is None
    assert answer["results"][0]["similarity"] > 0
    assert "meaning" in answer["note"]
    assert answer["index"]["pending_vectors"] == 0


def test_words_alone_are_searched_where_they_are_asked_for(local: CommandLine) -> None:
    """R5; aliases are accepted."""
    for mode in ("lexical", "keyword", "bm25"):
        ended = local("search", "--mode", mode, "planting vegetables")
        assert ended.out.splitlines()[0] == "tier: lexical (FTS5) - asked for by mode"
        assert "nothing found" in ended.out
    vector = local("search", "--mode", "semantic", "planting vegetables", "--json").value
    assert (vector["mode"], vector["results"][0]["path"]) == ("vector", "docs/garden.md")


def test_the_tier_is_the_same_on_every_surface(local: CommandLine) -> None:
    """S1-16."""
    for arguments in (
        ["status"], ["stats"], ["sources"], ["verify"], ["rebuild"], ["doctor"], ["index"], ["index", "--dry-run"],
        ["show", "docs/rules.md#0"], ["search", "leave"],
    ):  # fmt: skip
        ended = local(*arguments)
        assert ended.out.splitlines()[0] == HYBRID, arguments
    for arguments in (["status"], ["stats"], ["sources"], ["doctor"], ["index"], ["verify"], ["show", "docs/rules.md"]):
        assert local(*arguments, "--json").value["tier"] == HYBRID, arguments


def test_stats_tell_the_vectors(local: CommandLine) -> None:
    stats = local("stats", "--json").value
    assert (stats["vectors"], stats["embedding_dimension"], stats["vector_search"]) == (3, 256, "exact")
    assert "vectors          3 (256 dimensions" in local("stats").out


def test_a_dry_run_estimates_the_calls(local: CommandLine) -> None:
    """S1-39."""
    assert "to embed: up to 3 texts in about 1 call" in local("index", "--dry-run", "--reindex").out
    assert local("index", "--dry-run", "--reindex", "--json").value["estimated_embedding_calls"] == 1


FIELDS = (
    ["search", "beans"], ["index"], ["index", "--dry-run"], ["status"], ["stats"], ["sources", "--all"], ["verify"],
    ["doctor"], ["rebuild"], ["show", "docs/rules.md"], ["show", "docs/rules.md#0"], ["eval", "recall"],
)  # fmt: skip
OF_THE_BASE = {"extensions", "metadata"}  # their keys are those of the files


@pytest.mark.parametrize("arguments", FIELDS, ids=" ".join)
def test_every_field_is_documented(local: CommandLine, arguments: list[str]) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference-json.md").read_text(encoding="utf-8")
    as_json = ["--json", "-"] if arguments[0] == "eval" else ["--json"]
    assert not [
        name for name in names_in(local(*arguments, *as_json).value) if f"`{name}`" not in page.replace('"', "`")
    ]


def names_in(value: object) -> set[str]:
    if isinstance(value, dict):
        below = (names_in(inner) for name, inner in value.items() if name not in OF_THE_BASE)
        return set(value).union(*below)
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def test_a_server_that_is_away_degrades_a_search_and_fails_a_run(tmp_path: Path) -> None:
    """R6, S1-18, S1-19: exit 0 by words with the cause in the tier line, exit 15 of `vector` and of a run."""
    write_files(tmp_path, TEXTS)
    command = CommandLine(tmp_path)
    with embedding_server(dimension=16) as server:
        configure(tmp_path, {"base_url": server.url, "model": "m", "timeout": "5s"})
        assert command("index").status == 0
        server.take_down()
        found = command("search", "beans")
        assert found.status == 0
        assert found.out.startswith("tier: hybrid -> DEGRADED to lexical (embeddings unreachable: ")
        assert "docs/garden.md#0" in found.out
        asked = command("search", "--mode", "vector", "beans")
        assert (asked.status, asked.out) == (15, "")
        assert "could not be embedded" in asked.err and "--mode lexical" in asked.err
        write_files(tmp_path, {"docs/new.md": "# New\n\nnever seen before\n"})
        run = command("index", "--json")
        assert run.status == 15
        assert "does not answer" in run.value["error"]["message"]
        assert command("doctor").status == 0  # words are searched all the same
    configure(tmp_path, None)
    assert command("search", "beans").out.splitlines()[0] == LEXICAL
    assert command("search", "--mode", "hybrid", "beans").status == 2


def test_a_key_that_is_not_set_degrades_a_search_and_refuses_a_run(tmp_path: Path) -> None:
    """S1-26, R6: the variable is named, its value nowhere."""
    write_files(tmp_path, TEXTS)
    command = CommandLine(tmp_path)
    with embedding_server(dimension=16, key="canary-8c1") as server:
        configure(tmp_path, {"base_url": server.url, "model": "m", "api_key_env": "MY_TEST_KEY"})
        arguments = ["--config", str(tmp_path / "knowledge.yaml")]
        indexed = command("index", *arguments, MY_TEST_KEY="canary-8c1")
        assert indexed.status == 0, indexed.err
        found = command("search", "beans", *arguments)
        assert found.status == 0
        assert "DEGRADED to lexical (embeddings unreachable: " in found.out and "MY_TEST_KEY is not set" in found.out
        refused = command("index", *arguments)
        assert (refused.status, "MY_TEST_KEY" in refused.err) == (2, True)
        wrong = command("doctor", *arguments, MY_TEST_KEY="canary-8c2")
        assert "401" in wrong.out
        for ended in (indexed, found, refused, wrong):
            assert "canary-8c" not in ended.out + ended.err


def test_another_model_is_refused_and_made_with_reindex(tmp_path: Path) -> None:
    """S1-15, P18."""
    write_files(tmp_path, TEXTS)
    command = CommandLine(tmp_path)
    with embedding_server(dimension=16) as server:
        configure(tmp_path, {"base_url": server.url, "model": "m"})
        command("index")
        configure(tmp_path, {"base_url": server.url, "model": "n"})
        before = len(server.requests)
        for arguments in (["search", "beans"], ["index"]):
            refused = command(*arguments)
            assert refused.status == 15, arguments
            assert "--reindex" in refused.err and "'n'" in refused.err
            assert "the embeddings have changed: model is 'n'" in refused.err
        tier = command("status").out.splitlines()[0]
        assert tier.startswith("tier: hybrid -> DEGRADED to lexical (embeddings changed: model is 'n', ")
        assert len(server.requests) == before
        assert command("search", "--mode", "lexical", "beans").status == 0
        anew = command("index", "--reindex")
        assert anew.status == 0 and "are complete and answer from now on" in anew.out
        assert "model=n dim=16" in command("search", "beans").out


def test_words_first_says_what_is_pending(tmp_path: Path) -> None:
    """R31."""
    write_files(tmp_path, TEXTS)
    command = CommandLine(tmp_path)
    with embedding_server(dimension=16, down_after=1, down_for_s=600) as server:
        configure(tmp_path, {"base_url": server.url, "model": "m", "commit": "words_first", "outage_limit": "1s"})
        assert command("index").status == 15
        found = command("search", "beans", "--json").value
        assert found["index"]["pending_vectors"] == 3
        assert found["results"][0]["path"] == "docs/garden.md"
        assert "pending for 3 documents (3 chunks)" in command("status").out
        server.bring_up()
        server.behaviour.down_after = None
        done = command("index")
        assert done.status == 0 and "vectors: 3 texts embedded, 0 reused" in done.out
        assert command("search", "beans", "--json").value["index"]["pending_vectors"] == 0


def test_status_says_that_a_run_waits_and_for_what(tmp_path: Path) -> None:
    """P26, S1-20: from another terminal, while the server is away."""
    write_files(tmp_path, TEXTS)
    command = CommandLine(tmp_path)
    with embedding_server(dimension=16, down_after=1, down_for_s=600) as server:
        configure(tmp_path, {"base_url": server.url, "model": "m", "outage_limit": "60s"})
        run = command.start("index")
        try:
            now = wait_for_state(command, "waiting")
            assert server.host in now["cause"]
            assert f"; it waits: the embedding server at {server.host}: " in command("status").out
            server.bring_up()
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
            run.wait()
    assert run.returncode == 0, err
    assert b"3 texts embedded" in out
    assert command("status", "--json").value["index"]["run_in_progress"] is None


def wait_for_state(command: CommandLine, state: str) -> dict[str, str]:
    for _ in range(100):
        status = command("status", "--json").value
        running = status["index"] and status["index"]["run_in_progress"]
        if running and running["state"] == state:
            return dict(running)
    raise AssertionError(f"never seen: {state}")


def test_a_half_made_set_is_told_with_what_ends_it(tmp_path: Path) -> None:
    """R19: `--reindex` goes on with it, or drops it when the configuration has gone back."""
    write_files(tmp_path, TEXTS)
    command = CommandLine(tmp_path)
    with embedding_server(dimension=16) as server:
        old: dict[str, object] = {"base_url": server.url, "model": "m", "outage_limit": "1s"}
        configure(tmp_path, old)
        command("index")
        server.behaviour.down_after, server.behaviour.down_for_s = len(server.requests) + 1, 600
        configure(tmp_path, {**old, "model": "n"})
        assert command("index", "--reindex").status == 15
        server.behaviour.down_after = None
        server.bring_up()
        assert "vectors: a set of n is half made; `knowledge index --reindex` makes the rest" in command("status").out
        assert "this run would be refused" in command("index", "--dry-run").out
        assert "this run would be refused" not in command("index", "--dry-run", "--reindex").out
        configure(tmp_path, old)
        assert "half made, and not what the configuration asks for" in command("status").out
        assert "a new set is half made" in command("stats").out
        assert "are being made" not in command("search", "beans").out
        assert command("index", "--reindex").status == 0
        assert "half made" not in command("status").out + command("stats").out


def test_a_key_that_is_not_taken_is_told_as_such(tmp_path: Path) -> None:
    write_files(tmp_path, TEXTS)
    command = CommandLine(tmp_path)
    with embedding_server(dimension=16, key="canary-8c1") as server:
        configure(tmp_path, {"base_url": server.url, "model": "m"})
        keyless = command("index")
        assert (keyless.status, "embeddings.api_key_env" in keyless.err) == (15, True)
        configure(tmp_path, {"base_url": server.url, "model": "m", "api_key_env": "MY_TEST_KEY"})
        wrong = command("index", "--config", str(tmp_path / "knowledge.yaml"), MY_TEST_KEY="canary-8c2")
        assert (wrong.status, "MY_TEST_KEY" in wrong.err, "start it" in wrong.err) == (15, True, False)

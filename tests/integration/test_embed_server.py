"""`knowledge embed-server`: a real process, asked over a real socket by the real client and by others."""

import http.client
import json
import signal
import socket
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest

from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS
from embedding.build import make_embedder
from embedding.known_models import LOCAL_MODEL
from embedding.local import DIMENSION, LocalEmbedder
from tests.support.command_line import CommandLine

WITHIN_S = 30
TEXTS = [f"Text {number}: how do I move an index to another disk?" for number in range(150)]


class Running(NamedTuple):
    """A server that listens."""

    process: "subprocess.Popen[bytes]"
    url: str

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        """The status and the JSON of an answer; a body is JSON unless a header says otherwise."""
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=WITHIN_S)) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def embed(self, **asked: Any) -> tuple[int, Any]:
        return self.ask("POST", "/v1/embeddings", json.dumps(asked).encode())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """The exit status, and what it has written since it began to listen."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=WITHIN_S)
        return self.process.returncode, out.decode(), err.decode()


Start = Callable[..., Running]


def started(command: CommandLine, *options: str, ignores_sigint: bool = False) -> Running:
    process = command.start("embed-server", "--port", "0", *options, ignores_sigint=ignores_sigint)
    assert process.stdout is not None
    said = process.stdout.readline().decode()
    assert said.startswith("listening on http://"), (said, process.communicate(timeout=WITHIN_S))
    return Running(process, said.removeprefix("listening on ").strip())


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all tests that only ask."""
    running = started(CommandLine(tmp_path_factory.mktemp("server")))
    yield running
    status, _, err = running.end()
    assert (status, err) == (0, ""), "nothing that it was asked made it write a word"


@pytest.fixture
def start(command: CommandLine) -> Iterator[Start]:
    """Starts servers; those that still run are ended."""
    processes = []

    def starting(*options: str) -> Running:
        running = started(command, *options)
        processes.append(running.process)
        return running

    yield starting
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


async def test_its_vectors_are_those_of_the_local_model(server: Running) -> None:
    """Over the client and the embedder of this program, more texts than one request takes."""
    embedder = make_embedder(EmbeddingsSettings(base_url=server.url, model=LOCAL_MODEL), None)
    local = LocalEmbedder()
    probe = await embedder.probe(CANARY_TEXTS)
    assert probe[:3] == (LOCAL_MODEL, DIMENSION, True)
    there, here = await embedder.embed_documents(TEXTS), await local.embed_documents(TEXTS)
    for remote, own in zip(there, here, strict=True):
        assert np.allclose(np.frombuffer(remote.vector, "<f4"), np.frombuffer(own.vector, "<f4"), rtol=0, atol=1e-6)
    query = await embedder.embed_query(TEXTS[0])
    assert np.allclose(np.frombuffer(query, "<f4"), np.frombuffer(here[0].vector, "<f4"), rtol=0, atol=1e-6)
    await embedder.aclose()


async def test_many_clients_at_a_time_are_all_answered(server: Running) -> None:
    embedder = make_embedder(EmbeddingsSettings(base_url=server.url, model=LOCAL_MODEL, concurrency=16, batch=4), None)
    embedded = await embedder.embed_documents(TEXTS)
    assert all(len(each.vector) == 4 * DIMENSION for each in embedded)
    await embedder.aclose()


def test_answers_have_the_shape_of_openai(server: Running) -> None:
    """S1-25: a string or several, floats or base64."""
    status, one = server.embed(input="hello", model=LOCAL_MODEL)
    assert status == 200
    assert (one["object"], one["model"]) == ("list", LOCAL_MODEL)
    assert one["usage"]["prompt_tokens"] == one["usage"]["total_tokens"] > 0
    (entry,) = one["data"]
    assert (entry["object"], entry["index"], len(entry["embedding"])) == ("embedding", 0, DIMENSION)
    status, two = server.embed(input=["other", "hello"], encoding_format="base64", dimensions=DIMENSION, user="me")
    assert status == 200
    assert [entry["index"] for entry in two["data"]] == [0, 1]
    same = np.frombuffer(b64decode(two["data"][1]["embedding"]), "<f4")
    assert np.array_equal(same, np.array(entry["embedding"], dtype=np.float32))


def test_it_says_what_it_is(server: Running) -> None:
    status, models = server.ask("GET", "/v1/models")
    assert (status, [model["id"] for model in models["data"]]) == (200, [LOCAL_MODEL])
    status, health = server.ask("GET", "/healthz")
    assert (status, health["status"], health["dimension"]) == (200, "ok", DIMENSION)


REFUSED: dict[str, tuple[int, bytes]] = {
    "no JSON": (400, b"{"),
    "no UTF-8": (400, b'{"input": "\xff"}'),
    "deep JSON": (400, b'{"input":' + b"[" * 100_000),
    "no object": (400, b"[]"),
    "no input": (400, b"{}"),
    "no texts": (400, b'{"input": []}'),
    "null": (400, b'{"input": null}'),
    "tokens": (400, b'{"input": [1, 2, 3]}'),
    "a number among texts": (400, b'{"input": ["a", 2]}'),
    "a blank text": (400, b'{"input": ["a", " \\n"]}'),
    "a lone surrogate": (400, b'{"input": ["\\ud800"]}'),
    "an encoding": (400, b'{"input": "a", "encoding_format": "int8"}'),
    "dimensions": (400, b'{"input": "a", "dimensions": 64}'),
    "another model": (404, b'{"input": "a", "model": "text-embedding-3-small"}'),
    "a model of another type": (404, b'{"input": "a", "model": ["x"]}'),
    "many texts": (413, json.dumps({"input": ["a"] * 2049}).encode()),
    "a long text": (413, json.dumps({"input": ["a" * (128 * 1024 + 1)]}).encode()),
    "a large body": (413, b'{"input": "' + b"a" * (9 << 20) + b'"}'),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_it_cannot_do_is_refused_with_the_reason(server: Running, what: str) -> None:
    """In the shape of OpenAI's errors, without a word of what was sent."""
    expected, body = REFUSED[what]
    try:
        status, answer = server.ask("POST", "/v1/embeddings", body)
    except (BrokenPipeError, ConnectionResetError):
        assert what == "a large body", "it need not be read to its end"
        return
    assert status == expected
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["message"]
    assert "text-embedding-3-small" not in json.dumps(answer)


def test_what_is_not_there_is_told_as_json(server: Running) -> None:
    assert server.ask("GET", "/v1/embeddings")[0] == 405
    status, answer = server.ask("GET", "/docs")
    assert status == 404
    assert "/v1/embeddings" in answer["error"]["message"]


def test_a_web_page_cannot_make_it_work(server: Running) -> None:
    """What a browser sends for a page of another site without asking first is not taken."""
    status, _ = server.ask("POST", "/v1/embeddings", b'{"input": "a"}', Content_Type="text/plain")
    assert status == 415


def test_a_body_without_an_end_is_cut_off(server: Running) -> None:
    """In pieces, of no told length: no more than the cap is ever held."""
    port = urlsplit(server.url).port
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with closing(socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S)) as connection:
        head = b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(64):
                connection.sendall(piece)
            answer = connection.recv(100)
        except (BrokenPipeError, ConnectionResetError):
            answer = b"HTTP/1.1 413"
    assert answer.startswith(b"HTTP/1.1 413")
    assert server.ask("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_cleanly(start: Start, number: int, status: int) -> None:
    """No traceback; what a client keeps open does not hold it up."""
    running = start()
    assert running.embed(input="a word of a document")[0] == 200
    with closing(http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=WITHIN_S)) as kept:
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        assert running.end(number) == (status, "", "")


def test_in_the_background_of_a_script_it_outlives_its_ctrl_c(command: CommandLine) -> None:
    running = started(command, ignores_sigint=True)
    running.process.send_signal(signal.SIGINT)
    assert running.ask("GET", "/healthz")[0] == 200
    assert running.end(signal.SIGTERM) == (0, "", "")


def test_what_is_being_worked_on_is_answered_before_the_end(start: Start) -> None:
    """A request whose body the server has begun to wait for when it is told to end."""
    running = start()
    body = json.dumps({"input": ["word " * 2_000] * 8}).encode()
    head = (
        f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    with closing(socket.create_connection(("127.0.0.1", urlsplit(running.url).port), timeout=WITHIN_S)) as connection:
        connection.sendall(head.encode() + b"Expect: 100-continue\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        running.process.send_signal(signal.SIGTERM)
        connection.sendall(body)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b'"index":') == 8
    assert running.process.wait(timeout=WITHIN_S) == 0


def test_the_name_of_the_model_can_be_chosen(start: Start) -> None:
    running = start("--model-name", "house-model")
    assert running.embed(input="a", model="house-model")[1]["model"] == "house-model"
    assert running.embed(input="a", model=LOCAL_MODEL)[0] == 404


def test_a_port_that_is_taken_is_one_clear_error(command: CommandLine) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        ended = command("embed-server", "--port", str(port))
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"error: port {port} of 127.0.0.1 is taken")
    assert "--port" in ended.err
    assert ended.err.count("\n") <= 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "models.example"])
def test_other_machines_are_not_let_in_unasked(command: CommandLine, host: str) -> None:
    ended = command("embed-server", "--port", "0", "--host", host)
    assert (ended.status, ended.out) == (2, "")
    assert "there is no password" in ended.err
    assert "--allow-network" in ended.err


def test_they_are_where_one_says_so(start: Start) -> None:
    running = start("--host", "0.0.0.0", "--allow-network")
    port = urlsplit(running.url).port
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)) as connection:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200


@pytest.mark.parametrize(
    "options", [["--host", "192.0.2.1", "--allow-network"], ["--port", "70000"], ["--model-name", ""]]
)
def test_what_cannot_be_obeyed_is_told(command: CommandLine, options: list[str]) -> None:
    ended = command("embed-server", *options)
    assert (ended.status, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    assert ended.err

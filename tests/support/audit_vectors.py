"""The vector part of the second opinion (see tests.support.audit): every row in memory, compared one by one."""

import hashlib
import math
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

VectorOf = Callable[[str, int], bytes | None]
"""What a text's vector must be, of so many dimensions, as little-endian float32; None: not known."""


class Known(NamedTuple):
    id: int
    state: str
    dimension: int
    prefix: str


def audit_vectors(connection: Any, vector_of: VectorOf | None) -> list[str]:
    """What is wrong with the vector tables, in words; [] where there are none."""
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if "embeddings" not in names:
        return []
    identities = [
        Known(*row) for row in connection.execute("SELECT id, state, dimension, document_prefix FROM vector_identities")
    ]
    tally = Counter(known.state for known in identities)
    problems = [f"identities: {tally[state]} are {state}" for state in ("active", "building") if tally[state] > 1]
    stored = {
        row[0]: row for row in connection.execute("SELECT id, identity, sent_hash, parts, vector FROM embeddings")
    }
    problems += [
        f"embedding {n}: of no identity" for n, row in stored.items() if row[1] not in {i.id for i in identities}
    ]
    chunks = connection.execute(
        "SELECT id, document, CAST(heading_path AS BLOB), CAST(body AS BLOB), CAST(lead AS BLOB) FROM chunks"
    ).fetchall()
    links = {
        (row[0], row[1]): row[2] for row in connection.execute("SELECT chunk, identity, embedding FROM vector_links")
    }
    problems += _links_to_nothing(links, {row[0] for row in chunks}, stored)
    for known in identities:
        if known.state != "retired":
            problems += _vectors(known, stored)
            problems += _texts(known, chunks, links, stored, vector_of)
            problems += _blocks(connection, known, stored)
    return problems + _states(connection, identities, chunks, links)


def _links_to_nothing(links: dict[Any, int], chunks: set[int], stored: dict[int, Any]) -> list[str]:
    problems = []
    for (chunk, identity), embedding in links.items():
        if chunk not in chunks:
            problems.append(f"link of chunk {chunk}: no such chunk")
        if embedding not in stored or stored[embedding][1] != identity:
            problems.append(f"link of chunk {chunk}: no such vector under {identity}")
    return problems


def _floats(raw: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def _vectors(known: Known, stored: dict[int, Any]) -> list[str]:
    problems = []
    for number, identity, _, _, vector in stored.values():
        if identity != known.id:
            continue
        if len(vector) != 4 * known.dimension:
            problems.append(f"embedding {number}: {len(vector)} bytes")
        elif not abs(math.sqrt(sum(value * value for value in _floats(vector))) - 1) < 0.002:
            problems.append(f"embedding {number}: not of unit length")
    return problems


def _sent(known: Known, heading: bytes, body: bytes, lead: bytes) -> str:
    """What is sent for a chunk, by our own reading of the rule (S0-25)."""
    crumb, text = heading.decode("utf-8", "replace"), body.decode("utf-8", "replace")
    content = f"{crumb}\n\n{text}" if crumb and text else crumb or text or lead.decode("utf-8", "replace").strip()
    return known.prefix.replace("{title}", crumb or "none") + content


def _texts(
    known: Known, chunks: list[Any], links: dict[Any, int], stored: dict[int, Any], vector_of: VectorOf | None
) -> list[str]:
    problems = []
    for chunk, _, heading, body, lead in chunks:
        embedding = stored.get(links.get((chunk, known.id), -1))
        if embedding is None:
            continue
        text = _sent(known, heading, body, lead)
        if hashlib.blake2b(text.encode(), digest_size=16).digest() != embedding[2]:
            problems.append(f"chunk {chunk}: has the vector of another text")
        due = vector_of(text, known.dimension) if vector_of is not None else None
        if due is not None and not _are_close(due, embedding[4]):
            problems.append(f"chunk {chunk}: its vector is not that of its text")
    return problems


def _are_close(one: bytes, other: bytes) -> bool:
    if len(one) != len(other):
        return False
    return all(abs(a - b) < 1e-5 for a, b in zip(_floats(one), _floats(other), strict=True))


def _blocks(connection: Any, known: Known, stored: dict[int, Any]) -> list[str]:
    """Signs by a loop over the numbers; every vector in one block and no more."""
    problems = []
    seen: Counter[int] = Counter()
    width = (known.dimension + 63) // 64 * 8
    blocks = connection.execute(
        "SELECT id, count, embedding_ids, bits FROM vector_blocks WHERE identity = ? ORDER BY id", (known.id,)
    ).fetchall()
    order: list[int] = []
    for block, count, ids, bits in blocks:
        if len(ids) != 8 * count or len(bits) != width * count:
            problems.append(f"block {block}: of another size than it says")
            continue
        for place, (number,) in enumerate(struct.iter_unpack("<q", ids)):
            seen[number] += 1
            order.append(number)
            row = stored.get(number)
            if row is not None and bits[place * width : (place + 1) * width] != _signs(row[4], width):
                problems.append(f"embedding {number}: has other signs in block {block}")
    own = {number for number, row in stored.items() if row[1] == known.id}
    problems += [f"embedding {number}: in {seen[number]} blocks" for number in sorted(own) if seen[number] != 1]
    problems += ["blocks: ids do not ascend"] * (order != sorted(order))
    return problems


def _signs(vector: bytes, width: int) -> bytes:
    packed = bytearray(width)
    for place, value in enumerate(_floats(vector)[: width * 8]):
        if value > 0:
            packed[place // 8] |= 1 << (place % 8)
    return bytes(packed)


def _states(connection: Any, identities: list[Known], chunks: list[Any], links: dict[Any, int]) -> list[str]:
    problems = []
    active = next((known for known in identities if known.state == "active"), None)
    building = next((known for known in identities if known.state == "building"), None)
    own: dict[int, list[int]] = {}
    for chunk in chunks:
        own.setdefault(chunk[1], []).append(chunk[0])
    for number, key, state in connection.execute("SELECT id, key, vector_state FROM documents"):
        for known in (active, building):
            linked = sum((chunk, known.id) in links for chunk in own.get(number, [])) if known else 0
            if known and linked not in (0, len(own.get(number, []))):
                problems.append(f"{key}: {linked} of {len(own[number])} chunks have a vector under {known.id}")
        shown = active or building
        is_whole = shown is not None and all((chunk, shown.id) in links for chunk in own.get(number, []))
        due = "ready" if is_whole else "pending" if active else "none"
        if state != due:
            problems.append(f"{key}: is {state}, should be {due}")
    return problems

"""The address of a document's page, and of a passage in it."""

from server.pages.layout import Visit


def document_link(visit: Visit, key: str, ordinal: int | None = None, query: str = "") -> str:
    """A key may hold anything, `..` and line breaks among it: so it is a parameter, never a part of the path."""
    if ordinal is None:
        return visit.link("/document", path=key)
    place = f"#c{ordinal}" if ordinal else ""  # the first one stands below the title, which is to be seen
    return f"{visit.link('/document', path=key, chunk=ordinal, q=query)}{place}"

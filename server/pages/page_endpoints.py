"""The pages for people, at / and below."""

from server.http.parts import Endpoint
from server.pages.assets import FOLDER, file
from server.pages.checks_page import checks_page, coverage_page
from server.pages.document_page import document_page
from server.pages.failures_page import failures_page
from server.pages.match_page import match_page
from server.pages.operations_page import operations_page
from server.pages.run_page import run_page
from server.pages.search_page import search_page

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/", search_page, "searchPage", "Search in a browser.", is_page=True),
    Endpoint("GET", "/match", match_page, "matchPage", "The complete set in a browser.", is_page=True),
    Endpoint("GET", "/document", document_page, "documentPage", "A document in a browser.", is_page=True),
    Endpoint("GET", "/operations", operations_page, "operationsPage", "What goes on, in a browser.", is_page=True),
    Endpoint("GET", "/operations/runs/{run:int}", run_page, "runPage", "One run in a browser.", is_page=True),
    Endpoint("GET", "/operations/failures", failures_page, "failuresPage", "What failed, in a browser.", is_page=True),
    Endpoint(
        "GET",
        "/operations/checks",
        checks_page,
        "checksPage",
        "The doctor in a browser.",
        scope="operate",
        is_page=True,
    ),
    Endpoint("GET", "/operations/coverage", coverage_page, "coveragePage", "Coverage.", scope="operate", is_page=True),
    Endpoint("GET", f"/{FOLDER}/{{name}}", file, "pageFile", "What pages are shown with.", is_page=True),
)

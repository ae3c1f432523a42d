"""The table of all endpoints."""

from server.http import read_endpoints, run_endpoints
from server.http.parts import Endpoint
from server.pages import page_endpoints

ENDPOINTS: tuple[Endpoint, ...] = (
    *read_endpoints.ENDPOINTS,
    *run_endpoints.ENDPOINTS,
    *page_endpoints.ENDPOINTS,
)

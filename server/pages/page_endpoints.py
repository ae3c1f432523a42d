"""The pages for people, at / and below."""

from server.http.parts import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = ()

"""Runs, failures and schedules over HTTP: read, and with an operator's scope, control."""

from server.http.parts import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = ()

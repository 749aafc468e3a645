"""Ports for servers that bind them later."""

import socket
from pathlib import Path

import pytest

import processes

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""Where Linux has the range of the ports that it gives to connections."""


@pytest.mark.skipif(not EPHEMERAL.exists(), reason="not Linux")
def test_no_connection_gets_the_port_of_a_server_that_has_not_bound_it() -> None:
    first, last = map(int, EPHEMERAL.read_text().split())
    assert not set(processes.PORTS) & set(range(first, last + 1))
    assert processes.free_port() in processes.PORTS


def test_port_in_use_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        monkeypatch.setattr(processes, "PORTS", [port])
        with pytest.raises(processes.ServerError, match=f"all ports from {port} to {port} are in use"):
            processes.free_port()
    assert processes.free_port() == port

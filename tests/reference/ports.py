"""A port for a server that a test starts."""

import random
import socket


def free_port() -> int:
    """A free port below those that systems hand to outgoing connections, one of which could take it meanwhile."""
    while True:
        with socket.socket() as trial:
            port = random.randint(20_000, 30_000)
            if trial.connect_ex(("localhost", port)) != 0:
                return port

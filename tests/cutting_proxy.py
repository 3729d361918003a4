"""A TCP proxy that cuts connections after so many bytes: a network that fails, for tests.

Not here: what is carried; with TLS inside, a cut may fall anywhere.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress


class CuttingProxy:
    """Listens on the loopback address and forwards to another port of it.

    Args:
        port: Where to.
        budgets: Bytes, both ways together, that the first, second … connection may carry before it is cut; further
            connections carry everything.
    """

    def __init__(self, port: int, budgets: Sequence[int]) -> None:
        self._target = port
        self._budgets = list(budgets)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                left = [self._budgets.pop(0)] if self._budgets else None
                threading.Thread(target=self._connect, args=(client, left), daemon=True).start()

    def _connect(self, client: socket.socket, left: list[int] | None) -> None:
        with client, suppress(OSError), socket.create_connection(("localhost", self._target)) as server:
            back = threading.Thread(target=self._carry, args=(server, client, left), daemon=True)
            back.start()
            self._carry(client, server, left)
            back.join()

    def _carry(self, source: socket.socket, sink: socket.socket, left: list[int] | None) -> None:
        with suppress(OSError):
            while data := source.recv(512):
                if left is not None:
                    left[0] -= len(data)
                    if left[0] < 0:
                        self.cut += 1
                        break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

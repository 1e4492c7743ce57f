"""A real server that speaks the protocol of S3, at the loopback address, for tests."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests-secret", "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}  # fmt: skip


_numbers = count(1)  # all servers of this process have the same buckets


class Bucket:
    """One bucket. ``place``: as a configuration names it; ``client``: of botocore."""

    def __init__(self, server: Any) -> None:
        from pmagent.events.s3 import _made, parse_place

        self._server = server
        _, port = server.get_host_and_port()
        self.name = f"blobs-{next(_numbers)}"
        self.place = f"s3://{self.name}/some/prefix?endpoint=http://127.0.0.1:{port}&region=us-east-1"
        self.client = _made(parse_place(self.place))
        self.client.create_bucket(Bucket=self.name)

    def key(self, name: str) -> str:
        """The key of a blob."""
        return f"some/prefix/{name[:2]}/{name}"

    def spoil(self, name: str) -> None:
        """Change the first byte of a blob."""
        found = self.client.get_object(Bucket=self.name, Key=self.key(name))["Body"].read()
        self.client.put_object(Bucket=self.name, Key=self.key(name), Body=bytes([found[0] ^ 1]) + found[1:])

    def stop(self) -> None:
        """Let nobody reach it any more. Idempotent."""
        if self._server is not None:
            self._server.stop()
            self._server = None


@contextmanager
def one_bucket() -> Iterator[Bucket]:
    """A server with one bucket; this process has the credentials."""
    from moto.server import ThreadedMotoServer

    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ.update(CREDENTIALS)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    made = Bucket(server)
    try:
        yield made
    finally:
        made.stop()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

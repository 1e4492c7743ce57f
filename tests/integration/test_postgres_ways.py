"""The ways to a server that a log in PostgreSQL accepts: its socket, TLS to the right host, a pooler that pools by
session. Everything else is refused before a byte is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pmagent.events.postgres.address import Address
from pmagent.events.postgres.session import DatabaseRefused, Unreachable, sessions
from pmagent.events.postgres.store import PostgresLog
from tests.integration.test_postgres_log import fill
from tests.support.certificates import Authority
from tests.support.postgres import SECONDS, WRITER, Server, one_server, until

BOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


HERE = "127.{}.{}.{}".format(*os.urandom(3))
"""An address of the loopback network that no other test's server has: a network, as far as pmagent can tell."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that certifies the server."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[Server]:
    """A server that also listens at ``HERE``, by TLS."""
    with one_server() as made:
        for host in ("localhost", "elsewhere"):
            authority.certify(f"DNS:{host}", made.folder, owner="postgres")
        listen(made, "localhost")
        yield made


def listen(server: Server, host: str) -> None:
    """Start it with the certificate of ``host``."""
    server.stop()
    server.configure(
        listen_addresses=HERE, ssl="on",
        ssl_cert_file=str(server.folder / f"{host}.crt"), ssl_key_file=str(server.folder / f"{host}.key"),
    )
    server.start()


def by_network(server: Server, root: Path, **more: str) -> PostgresLog:
    """A new log of it, by TLS."""
    given = {"hostaddr": HERE, "sslmode": "verify-full", "sslrootcert": str(root), **more}
    words = "&".join(f"{name}={value}" for name, value in given.items())
    address = Address(f"postgresql://{WRITER}@localhost/postgres?{words}", server.new_log().log)
    return PostgresLog(address, server.folder, replicated=False)


@pytest.mark.usefixtures("server")
def test_the_server_gives_up_the_session_of_a_host_that_is_gone(authority: Authority) -> None:
    words = f"hostaddr={HERE}&sslmode=verify-full&sslrootcert={authority.root}"
    (session,) = sessions(Address(f"postgresql://{WRITER}@localhost/postgres?{words}", ""))
    with closing(session):
        names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")
        found = [int(session.ask(b"SELECT current_setting($1)", name)[0][0]) for name in names]
    assert 60 <= found[0] + found[1] * found[2] <= 120, "not before a holder that is cut off gives up by itself"
    assert found[3] == 75_000


@pytest.mark.usefixtures("server")
def test_a_name_is_looked_up_for_a_limited_time_and_its_addresses_are_tried_in_turn(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"sslmode=verify-full&sslrootcert={authority.root}"
    address = Address(f"postgresql://{WRITER}@localhost/postgres?{words}", "")
    answered = threading.Event()

    def look(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        if host == "silent":
            answered.wait(SECONDS)
        return [(0, 0, 0, "", (one, 0)) for one in ("127.0.0.9", HERE)]

    monkeypatch.setattr("pmagent.events.postgres.session.socket.getaddrinfo", look)
    (session,) = sessions(address)
    with closing(session):
        assert session.ask(b"SELECT 1") == [(1,)]
        assert session.host == "localhost"
    silent = Address(address.dsn.replace("localhost", "silent"), "")
    with pytest.raises(Unreachable, match="name was not found within"):
        next(sessions(silent, 0.1))
    answered.set()
    monkeypatch.undo()
    with pytest.raises(Unreachable, match="name is not known"):
        next(sessions(Address(address.dsn.replace("localhost", "nowhere.invalid"), "")))


def test_a_server_is_known_by_its_certificate(server: Server, authority: Authority, tmp_path: Path) -> None:
    assert fill(by_network(server, authority.root), (1, 2))
    with pytest.raises(Unreachable, match="certificate verify failed"):
        fill(by_network(server, Authority(tmp_path).root), (1,))
    for mode in ("require", "verify-ca", "prefer", "disable"):
        with pytest.raises(DatabaseRefused, match="verify-full"):
            fill(by_network(server, authority.root, sslmode=mode), (1,))
    listen(server, "elsewhere")
    with pytest.raises(Unreachable, match="does not match host name"):
        fill(by_network(server, authority.root), (1,))
    listen(server, "localhost")


@contextmanager
def pooled(server: Server, mode: str, turns: int = 0) -> Iterator[PostgresLog]:
    """A new log of it, behind PgBouncer; ``turns``: whether it takes the backend that has been idle longest."""
    if BOUNCER is None:
        pytest.skip("PgBouncer is not installed (apt-get install pgbouncer)")
    folder = server.folder / f"by-{mode}-{turns}"
    folder.mkdir()
    (folder / "users").write_text(f'"{WRITER}" ""\n')
    (folder / "settings").write_text(
        f"[databases]\n* = host={server.folder}\n"
        f"[pgbouncer]\nlisten_port = 6432\nunix_socket_dir = {folder}\nauth_type = trust\nauth_file = {folder}/users\n"
        f"pool_mode = {mode}\nserver_round_robin = {turns}\nlogfile = {folder}/log\n"
    )
    if os.getuid() == 0:
        for one in (folder, *folder.iterdir()):
            shutil.chown(one, "postgres")
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    process = subprocess.Popen([*user, BOUNCER, "-q", str(folder / "settings")])
    try:
        until((folder / ".s.PGSQL.6432").exists, "PgBouncer listens")
        address = Address(f"postgresql:///postgres?host={folder}&port=6432&user={WRITER}", server.new_log().log)
        yield PostgresLog(address, server.folder, replicated=False)
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_pooler_that_pools_by_session_serves_a_log(server: Server, turns: int) -> None:
    with pooled(server, "session", turns) as log:
        assert fill(log, (1, 2))
        assert log.verify().ok


@pytest.mark.parametrize(("mode", "turns"), [("transaction", 0), ("transaction", 1), ("statement", 0)])
def test_a_pooler_that_hands_a_session_to_several_backends_is_refused(server: Server, mode: str, turns: int) -> None:
    with pooled(server, mode, turns) as log:
        for _ in range(3):  # the first one finds the pool empty
            with pytest.raises(DatabaseRefused, match="pooler"):
                fill(log, (1,))
        assert server.sql(f"SELECT count(*) FROM pm.log WHERE name = '{log.place.partition('#')[2]}'") == "0"

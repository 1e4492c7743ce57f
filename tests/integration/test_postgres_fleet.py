"""The list of all logs of a database: each stands as its holder wrote down, and none is waited for."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pmagent.events.postgres.requests import PostgresRequests
from pmagent.events.postgres.session import DatabaseRefused
from pmagent.events.postgres.store import PostgresLog
from pmagent.workspace.trust import accept
from tests.integration.test_postgres_log import fill
from tests.support.machines import Machine, says
from tests.support.pages import page, pages
from tests.support.postgres import READER, WRITER, Server, one_server, until

USAGE, NO = 2, 1


@pytest.fixture
def server() -> Iterator[Server]:
    """One server."""
    with one_server() as made:
        yield made


def test_logs_are_listed_with_the_words_of_their_holders_also_of_one_that_hangs(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    names = [server.new_log() for _ in range(3)]
    fill(PostgresLog(names[2], tmp_path, replicated=False), (2,))
    machines = [Machine(tmp_path / one.log, workspace, str(one)) for one in names[:2]]
    reader = Machine(tmp_path / "reader", workspace, str(server.address(names[0].log, READER)))

    def listed() -> dict[str, dict[str, Any]]:
        ran = reader.run("log", "list", "--format", "json")
        assert ran.code == 0, ran.errors
        return {one["name"]: one for one in ran.document["logs"]}

    with machines[0].up() as hanging, machines[1].up() as working:
        for one in (hanging, working):
            says(one, "ready;")
        until(lambda: all(listed()[one.log]["said"] for one in names[:2]), "both holders have said how it stands")
        hanging.send_signal(signal.SIGSTOP)
        assert machines[1].run("pause").code == 0
        until(lambda: listed()[names[1].log]["said"]["paused"], "the other one says that it is paused")
        found = listed()
        assert [found[one.log]["live"] for one in names] == [True, True, False]
        assert found[names[0].log]["said"]["paused"] is False
        assert found[names[2].log]["said"] is None
        assert found[names[2].log]["position"] == 3
        shown = reader.run("log", "list", server.address().dsn)
        assert all(one.log in shown.text for one in names)
        assert "nobody holds it" in shown.text
        (workspace / ".pmagent").mkdir()
        with (workspace / ".pmagent/config.toml").open("a") as file:
            file.write(f'\n[storage]\nlog = "{names[2]}"\nreplicated = false\n')
        accept(workspace)
        with pages(workspace) as client:
            text = page(client, "/workspaces")
        assert all(one.log in text for one in names)
        hanging.send_signal(signal.SIGCONT)


def test_more_logs_are_listed_than_one_statement_takes(server: Server, workspace: Path, tmp_path: Path) -> None:
    one = Machine(tmp_path / "a", workspace, str(server.new_log()))
    server.sql(
        "INSERT INTO pm.log (name, writer, replicated) "
        f"SELECT 'many-' || n, '{WRITER}', false FROM generate_series(1, 2000) n"
    )
    listed = one.run("log", "list", "--format", "json").document["logs"]
    assert len({log["name"] for log in listed}) == 2000


def test_a_list_of_no_database_says_so(server: Server, workspace: Path, tmp_path: Path) -> None:
    none = Machine(tmp_path / "a", workspace, str(server.new_log()))
    asked = none.run("log", "list", "mysql://db1/pmagent")
    assert (asked.code, "postgresql://" in asked.errors) == (USAGE, True), asked.errors
    (none.workspace / ".pmagent/config.toml").write_text("")
    assert none.run("log", "list").code == NO


def test_nobody_but_the_holder_says_how_a_log_stands(server: Server, tmp_path: Path) -> None:
    address = server.new_log()
    fill(PostgresLog(address, tmp_path, replicated=False), (1,))
    number = int(server.sql(f"SELECT log_no FROM pm.log WHERE name = '{address.log}'"))
    reader = PostgresRequests(server.address(address.log, READER), replicated=False)
    with pytest.raises(DatabaseRefused, match="permission denied"):
        reader.say(number, 1, "{}")
    reader.close()
    later = PostgresRequests(address, replicated=False)
    later.say(number, 7, "{}")
    later.close()
    assert server.sql("SELECT count(*) FROM pm.said") == "0", "an epoch that is not the log's says nothing"

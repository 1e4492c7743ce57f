"""Requests to the holder of a log from another machine: under the asker's own role, and in nobody else's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from pmagent.edges import OPERATIONS
from pmagent.events.postgres.requests import PostgresRequests
from pmagent.events.postgres.schema import prepare
from pmagent.events.postgres.session import DatabaseRefused, Session
from pmagent.events.storage import Asked
from pmagent.service.client import FAR_BYTES_MAX, FAR_PARTS_MAX, NotFromHere, asked_here_first
from pmagent.service.far import NotTheirs, permitted
from pmagent.service.wire import BadMessage
from pmagent.workspace.layout import Layout
from tests.support.machines import Machine, says
from tests.support.postgres import READER, WRITER, Server, one_server, until
from tests.support.sandboxes import needs_sandbox

NO, UNREACHABLE, SECURITY = 1, 5, 7


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server; the role that only reads is the operator ada's, and others read, too."""
    with one_server() as made:
        made.sql("CREATE ROLE stranger LOGIN; CREATE ROLE bob LOGIN")
        assert not prepare(made.address(role="postgres"), [], ["stranger", "bob"], {READER: "ada", "bob": "bob"})
        yield made


@pytest.fixture
def two(server: Server, workspace: Path, tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """The holder's machine, and another one, from which ada reads."""
    address = server.new_log()
    (workspace / "orchestra.config.yaml").write_text('version: "1.0"\nwhitelist_tools: [echo, sleep]\n')
    first = Machine(tmp_path / "a", workspace, str(address))
    with first.up() as holder:
        says(holder, "ready;")
        yield first, Machine(tmp_path / "b", workspace, str(server.address(address.log, READER)))


def test_commands_on_another_machine_reach_the_holder_as_the_operator_of_their_role(
    two: tuple[Machine, Machine], server: Server
) -> None:
    first, second = two
    paused = second.run("pause", "--reason", "look", "--operator", "ada")
    assert paused.code == 0, paused.errors
    assert [one["data"]["operator_id"] for one in first.facts("control.paused")] == ["ada"]
    assert first.status()["paused"]["operator_id"] == "ada"
    assert second.run("resume", "--operator", "ada").code == 0
    taken = second.run("oa", "snapshot", "--format", "json")
    assert taken.code == 0, taken.errors
    for command in (("pause", "--operator", "eve"), ("resume", "--operator", "bob")):
        refused = second.run(*command)
        assert (refused.code, "as ada" in refused.errors) == (SECURITY, True), refused.errors
    assert len(first.facts("control.pause_requested")) == 1
    assert server.sql("SELECT count(*) FROM pm.request WHERE arguments <> ''") == "0", "what was asked is not kept"
    assert first.run("log", "verify").code == 0
    assert first.run("replay").code == 0


def test_what_stops_something_reaches_the_daemon_here_while_the_database_lets_nobody_in(
    two: tuple[Machine, Machine], server: Server
) -> None:
    first, second = two
    server.sql(f"ALTER ROLE {WRITER} CONNECTION LIMIT 0; ALTER ROLE {READER} CONNECTION LIMIT 0")
    try:
        for command in (("pause", "--operator", "ada"), ("pla", "disarm", "--operator", "ada")):
            done = first.run(*command)
            assert done.code == 0, done.errors
        looked = first.run("status", "--format", "json")
        assert "too many connections" in looked.errors
        found = looked.document
        assert (found["daemon"], found["lease"], found["paused"]["operator_id"]) == ("running", None, "ada")
        assert second.run("pause", "--operator", "ada").code == UNREACHABLE, "the holder is elsewhere"
    finally:
        server.sql(f"ALTER ROLE {WRITER} CONNECTION LIMIT -1; ALTER ROLE {READER} CONNECTION LIMIT -1")
    assert first.run("resume", "--operator", "ada").code == 0


def test_a_stop_does_not_ask_the_database_who_holds_the_log(two: tuple[Machine, Machine]) -> None:
    layout = Layout(two[0].workspace)
    assert asked_here_first(layout, "pla.disarm", {})
    assert not asked_here_first(layout, "control.resume", {})
    assert not asked_here_first(Layout(two[1].workspace), "pla.disarm", {}), "no daemon listens there"


def test_what_stops_something_goes_past_a_standby_here_to_the_holder(
    two: tuple[Machine, Machine], server: Server, workspace: Path, tmp_path: Path
) -> None:
    first, _ = two
    name = server.sql("SELECT name FROM pm.log ORDER BY log_no DESC LIMIT 1")
    assert not prepare(server.address(role="postgres"), [], [], {WRITER: "ada"})
    third = Machine(tmp_path / "c", workspace, str(server.address(name)))
    with third.up("--standby") as standby:
        says(standby, "standing by")
        paused = third.run("pause", "--operator", "ada")
        assert paused.code == 0, paused.errors
    assert len(first.facts("control.paused")) == 1
    assert first.run("resume", "--operator", "ada").code == 0


@needs_sandbox
def test_a_run_is_asked_for_and_followed_from_another_machine_and_taken_back_there(
    two: tuple[Machine, Machine],
) -> None:
    first, second = two
    plan = second.workspace / "plan.yaml"
    plan.write_text("- {task_id: t, intent: say, tools: [echo], inputs: {args: [hello]}}")
    done = second.run("run", "Say", "--plan", "plan.yaml")
    assert done.code == 0, done.errors
    plan.write_text('- {task_id: t, intent: wait, tools: [sleep], inputs: {args: ["6000"]}}')
    asked = second.run("run", "Wait", "--plan", "plan.yaml", "--detach")
    assert asked.code == 0, asked.errors
    cancelled = second.run("cancel", asked.text.strip())
    assert cancelled.code == 0, cancelled.errors
    for kind in ("run.requested", "run.cancel_requested"):
        assert {one["data"]["operator_id"] for one in first.facts(kind)} == {"ada"}


def test_an_operator_is_given_to_a_role_that_exists_and_taken_away_only_where_that_is_said(
    two: tuple[Machine, Machine], server: Server
) -> None:
    first, _ = two
    database = server.address(role="postgres").dsn
    before = server.sql("TABLE pm.operator")
    for option, word in ((READER, "ROLE=NAME"), ("=ada", "ROLE=NAME"), ("nosuch=ada", "no role nosuch")):
        refused = first.run("log", "prepare", database, "--operator", option)
        assert (refused.code, word in refused.errors) == (2, True), refused.errors
    refused = first.run("log", "prepare", database, "--writer", "nosuch")
    assert (refused.code, "no role nosuch" in refused.errors) == (2, True), refused.errors
    assert server.sql("TABLE pm.operator") == before
    assert first.run("log", "prepare", database, "--operator", "gone=").code == 0


def test_what_is_not_listed_is_not_asked_from_elsewhere(two: tuple[Machine, Machine]) -> None:
    _, second = two
    refused = second.run("pla", "arm", "--operator", "ada")
    assert (refused.code, "cannot be asked from here" in refused.errors) == (UNREACHABLE, True), refused.errors
    looked = second.run("status", "--format", "json")
    assert looked.document["daemon"] == "elsewhere"


def test_a_role_that_is_nobodys_asks_nothing_and_nobody_sees_or_takes_anothers_request(
    two: tuple[Machine, Machine], server: Server
) -> None:
    log = two[0].status()["log"] and server.sql("SELECT name FROM pm.log ORDER BY log_no DESC LIMIT 1")
    sides = {
        role: PostgresRequests(server.address(log, role), replicated=False) for role in (READER, "stranger", "bob")
    }
    with pytest.raises(DatabaseRefused, match="no operator"):
        sides["stranger"].ask("x-1", "control.pause", "{}", 5)
    assert sides[READER].ask("x-1", "nothing.known", '{"request": "x-1"}', 30) == "ada"
    with pytest.raises(DatabaseRefused, match="another request"):
        sides["bob"].ask("x-1", "nothing.known", "{}", 5)
    assert sides["bob"].reply("x-1", 0) == (False, None)
    assert not sides["bob"].withdraw("x-1")
    until(lambda: sides[READER].reply("x-1", 1)[1] is not None, "the holder refuses it")
    _, reply = sides[READER].reply("x-1", 0)
    assert reply is not None
    assert "NotFromHere" in reply
    for text in (
        "SELECT * FROM pm.request", "INSERT INTO pm.operator VALUES ('viewer', 'eve')",
        "SELECT pm.take_requests(1, 9)", "SELECT pm.answer(1, 9, 'x-1', '')", "DELETE FROM pm.request",
    ):
        with pytest.raises(AssertionError, match="permission denied"):
            server.sql(f"SET ROLE {READER}; {text}")
    for side in sides.values():
        side.close()


def test_a_request_that_nobody_takes_is_taken_back_and_one_that_was_taken_is_not(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    address = server.new_log()
    machine = Machine(tmp_path / "a", workspace, str(address))
    assert machine.run("oa", "snapshot").code == 0
    side = PostgresRequests(server.address(address.log, READER), replicated=False)
    side.ask("x-2", "control.pause", "{}", 30)
    assert side.reply("x-2", 0) == (False, None)
    other = PostgresRequests(server.address(address.log, "bob"), replicated=False)
    assert not other.withdraw("x-2"), "it is another role's"
    other.close()
    assert side.withdraw("x-2")
    assert not side.withdraw("x-2")
    side.ask("x-3", "control.pause", "{}", 30)
    number = int(server.sql(f"SELECT log_no FROM pm.log WHERE name = '{address.log}'"))
    holder = PostgresRequests(address, replicated=False)
    assert holder.take(number, 99, 0) == [], "it does not hold the log under that epoch"
    assert [one.id for one in holder.take(number, 1, 0)] == ["x-3"]
    assert holder.take(number, 1, 0) == []
    assert not side.withdraw("x-3")
    assert side.reply("x-3", 0) == (True, None)
    holder.answer(number, 1, "x-3", '{"exit_code": 0}')
    assert side.reply("x-3", 0) == (True, '{"exit_code": 0}')
    side.close()
    holder.close()


def test_a_request_is_not_carried_out_whose_role_was_taken_from_its_operator(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    address = server.new_log()
    machine = Machine(tmp_path / "a", workspace, str(address))
    assert machine.run("oa", "snapshot").code == 0
    number = int(server.sql(f"SELECT log_no FROM pm.log WHERE name = '{address.log}'"))
    server.sql("CREATE ROLE left_us LOGIN IN ROLE pm_reader; INSERT INTO pm.operator VALUES ('left_us', 'eve')")
    side = PostgresRequests(server.address(address.log, "left_us"), replicated=False)
    holder = PostgresRequests(address, replicated=False)
    for id in ("x-1", "x-2"):
        side.ask(id, "control.pause", "{}", 3000)
    server.sql("UPDATE pm.operator SET operator = 'dan' WHERE role = 'left_us'")
    assert holder.take(number, 1, 0) == [], "it was eve's"
    with pytest.raises(DatabaseRefused, match="another request"):
        side.ask("x-1", "control.pause", "{}", 3000)
    assert side.ask("x-3", "control.pause", "{}", 3000) == "dan"
    server.sql("DELETE FROM pm.operator WHERE role = 'left_us'")
    assert holder.take(number, 1, 0) == [], "it is nobody's"
    server.sql("INSERT INTO pm.operator VALUES ('left_us', 'eve')")
    assert sorted(one.id for one in holder.take(number, 1, 0)) == ["x-1", "x-2"]
    holder.answer(number, 1, "x-1", "{}")
    side.close()
    holder.close()


def test_an_id_that_is_used_for_something_else_is_the_holders_to_judge_and_no_role_asks_without_end(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    address = server.new_log()
    machine = Machine(tmp_path / "a", workspace, str(address))
    assert machine.run("oa", "snapshot").code == 0
    number = int(server.sql(f"SELECT log_no FROM pm.log WHERE name = '{address.log}'"))
    side = PostgresRequests(server.address(address.log, READER), replicated=False)
    holder = PostgresRequests(address, replicated=False)
    side.ask("x-1", "control.pause", "{}", 30)
    assert len(holder.take(number, 1, 0)) == 1
    holder.answer(number, 1, "x-1", "done")
    side.ask("x-1", "control.pause", "{}", 30)
    assert side.reply("x-1", 0) == (True, "done"), "the same once more"
    side.ask("x-1", "control.pause", '{"reason": "another"}', 30)
    assert side.reply("x-1", 0) == (False, None)
    assert [one.arguments for one in holder.take(number, 1, 0)] == ['{"reason": "another"}']
    long = "x" * FAR_BYTES_MAX
    for id, content in (("x" * 201, "{}"), ("x-2", f"{long}x")):
        with pytest.raises(DatabaseRefused, match="too long"):
            side.ask(id, "control.pause", content, 30)
    for turn in range(5):
        side.ask(f"x-{turn + 2}", "control.pause", long, 30)
    with pytest.raises(DatabaseRefused, match="too many requests"):
        side.ask("x-9", "control.pause", long, 30)
    other = PostgresRequests(server.address(address.log, "bob"), replicated=False)
    assert other.ask("y-1", "control.pause", "{}", 30) == "bob"
    for one in (side, holder, other):
        one.close()


def test_a_connection_that_breaks_as_it_is_made_is_made_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = server.new_log()
    cut = list[Session]()

    def script(session: Session, sql: str, seconds: float = 30.0) -> None:
        if sql.startswith(("SET", "LISTEN")) and len(cut) < 1:
            cut.append(session)
            session.cut()
        plain(session, sql, seconds)

    plain = Session.script
    side = PostgresRequests(server.address(address.log, READER), replicated=False)
    monkeypatch.setattr(Session, "script", script)
    assert side.reply("x-1", 0) == (False, None)
    side.close()
    cut.clear()
    holder = PostgresRequests(address, replicated=False)
    assert holder.take(0, 1, 0) == []
    holder.close()
    assert len(cut) == 1


def test_only_listed_operations_in_the_askers_own_name_are_permitted() -> None:
    def asked(operation: str, arguments: str) -> Asked:
        return Asked("r-1", "viewer", "ada", operation, arguments)

    for operation in [*OPERATIONS, "no.such"]:
        if operation not in OPERATIONS or not OPERATIONS[operation].far:
            with pytest.raises(NotFromHere):
                permitted(asked(operation, '{"request": "r-1"}'))
    for operation, own in ((name, own) for name, one in OPERATIONS.items() if one.far for own in one.own):
        with pytest.raises(NotFromHere):
            permitted(asked(operation, f'{{"request": "r-1", "{own}": "/x"}}'))
    for name in ("operator", "operator_id", "holder"):
        with pytest.raises(NotTheirs):
            permitted(asked("pla.decide", f'{{"request": "r-1", "{name}": "eve"}}'))
    for arguments in ("[]", "x", "{}", '{"request": "r-2"}', '{"request": "r-1", "secret": "s"}'):
        with pytest.raises(BadMessage):
            permitted(asked("pla.decide", arguments))
    for more in (0, 1):
        many = ",".join(["[]"] * (FAR_PARTS_MAX - 2 + more))
        with pytest.raises(BadMessage, match="brackets") if more else nullcontext():
            permitted(asked("oa.permits", f'{{"request": "r-1", "more": [{many}]}}'))
    assert permitted(asked("orchestra.cancel", '{"request": "r-1"}'))["operator"] == "ada"

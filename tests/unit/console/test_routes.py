"""Every route of the console: what it answers to whom. Each is in the table below; a new one has to be entered.

Each is asked by nobody, by who may only look, without the form's token, from another site, about what there is not; and
once as it is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pytest
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from pmagent.console.auth import guard
from pmagent.console.auth.passwords import new_secret
from pmagent.console.pages.reading.checking import Kind
from pmagent.console.pages.views.integrity import checks_of
from pmagent.contracts.orchestra import Artifact
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.approving import APPROVING, ASKING, LOOKING, configure, proposed
from tests.support.cases import each
from tests.support.commands import SECONDS
from tests.support.consoles import ORIGIN, Console, LiveHost, console, live_host
from tests.support.furnished import picture
from tests.support.logged import note, write_log
from tests.support.orchestra import RUN, exited
from tests.support.pages import RunHarness, pages, recorded, written

CONTENT: Final = b"what was made"
SHA256: Final = sha256(CONTENT).hexdigest()
AUDIT: Final = "00000000-0000-4000-8000-000000000001"
REASON: Final = "enough of it"


class World(NamedTuple):
    """Where there is something behind every route. ``live`` has a daemon; ``runs``, ``audits`` and ``log`` are logs
    that nobody writes, read without the guard."""

    live: LiveHost
    bob: Console
    eve: Console
    runs: TestClient
    audits: TestClient
    log: TestClient
    session: str
    frame: int
    in_blob: int

    def proposal(self) -> str:
        """A fresh open one, of which its asker is not ``bob``."""
        return str(proposed(self.live)["proposal_id"])

    def filled(self, word: str) -> tuple[str, dict[str, str]]:
        """The form by which a fresh proposal is decided, filled in, and where it goes."""
        address = f"/approvals/{self.proposal()}"
        shown = self.bob.get(f"{address}?decide={word}", follow_redirects=True).text
        form = shown[shown.index(f'action="{address}/{word}"') :]
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")]))
        del fields["csrf"]
        unescaped = {name: value.replace("&#34;", '"').replace("&amp;", "&") for name, value in fields.items()}
        return f"{address}/{word}", unescaped | {"read": "yes", "first": fields["digest"][:6], "reason": REASON}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All of it, made once."""
    folder = tmp_path_factory.mktemp("routes")
    (folder / "frames").mkdir()
    picture(folder / "frames" / "screen.png")
    harness = RunHarness()
    harness.tool = lambda event: exited(event, artifacts=[
        Artifact(path=f"{event.data.task_id}/out", size_bytes=len(CONTENT), checksum=SHA256)
    ])  # fmt: skip
    harness.request({"a": []})
    harness.run()
    runs = written(folder / "runs", harness.history, [CONTENT])
    (folder / "log").mkdir()
    digest = BlobStore(RealDisk(), str(Layout(folder / "log").blobs)).put(CONTENT)
    kept = {"sha256": digest, "size": len(CONTENT), "media_type": "application/json"}
    (in_blob,) = write_log(folder / "log", [note(1, {"blob": kept})])
    workspace = configure(fresh_example(folder / "workspace"), f'frames = "{folder / "frames"}"')
    with (
        live_host(workspace) as live, console(workspace, APPROVING) as bob, console(workspace, LOOKING, "view") as eve,
        pages(runs) as of_runs, pages(recorded(folder / "audits", "audits")) as of_audits,
        pages(folder / "log") as of_log,
    ):  # fmt: skip
        for mode in ("OBSERVE", "SUGGEST"):
            assert live.perform("pla.mode", operator=ASKING, channel="cli", mode=mode).exit_code == 0
        seen = live.perform("pla.observe", operator=ASKING, channel="cli").document
        shown = live.perform("pla.propose", operator=ASKING, channel="cli", goal="type: ls").document
        made = World(live, bob, eve, of_runs, of_audits, of_log, shown["session_id"], seen["frame"], in_blob.position)
        yield made


class Row(NamedTuple):
    """A route's answer as it is meant: ``ask`` asks it so, ``status`` is the answer, ``leads`` where it leads to.
    ``none``: what it answers to an id that there is not; 0: it has none. ``open``: needs no session. ``looking``: may
    be posted by who may only look."""

    ask: Callable[[World], Any]
    status: int = 200
    none: int = 0
    leads: str = ""
    open: bool = False
    looking: bool = False


def _get(address: str) -> Callable[[World], Any]:
    return lambda world: world.bob.get(address)


def _post(address: str, **fields: str) -> Callable[[World], Any]:
    return lambda world: world.bob.post(address, **fields)


def _live(address: str) -> Callable[[World], Any]:
    """The head of a stream; what it tells is shown by ``test_live.py``."""
    return lambda world: world.bob.client.head(address)


def _decided(word: str) -> Callable[[World], Any]:
    def ask(world: World) -> Any:
        address, fields = world.filled(word)
        return world.bob.post(address, **fields)

    return ask


def _again(word: str) -> Callable[[World], Any]:
    """A page that answers a POST, looked at again."""
    return lambda world: world.bob.get(f"/approvals/{world.proposal()}/{word}")


def _document(name: str) -> Callable[[World], Any]:
    return lambda world: world.runs.get(f"/runs/{RUN}/{name}")


def _entered(world: World) -> Any:
    return Console(world.live.workspace).enter(APPROVING).get("/enter?token=x")


def _checked(kind: Kind, address: str) -> Callable[[World], Any]:
    def ask(world: World) -> Any:
        answer = world.bob.post(address)
        assert checks_of(world.bob.context).wait(SECONDS)
        assert checks_of(world.bob.context).latest(kind) is not None
        return answer

    return ask


def _signed_out(world: World) -> Any:
    with console(world.live.workspace, LOOKING, "view") as leaving:
        return leaving.post("/sign-out")


_RUN: Final = f"/runs/{RUN}"

TABLE: Final[dict[tuple[str, str], Row]] = {
    ("GET", "/"): Row(_get("/")),
    ("GET", "/live"): Row(_live("/live?after=0")),
    ("GET", "/live/log"): Row(_live("/live/log?after=0")),
    ("GET", "/help"): Row(_get("/help")),
    ("POST", "/theme"): Row(_post("/theme", theme="dark", back="/log"), 303, leads="/log", looking=True),
    ("GET", "/enter"): Row(_entered, 403, open=True),
    ("GET", "/sign-in"): Row(_get("/sign-in?next=/log"), 303, leads="/log", open=True),
    ("POST", "/sign-in"): Row(_post("/sign-in", name="nobody", secret=new_secret()), 403, open=True, looking=True),
    ("GET", "/sign-in/passkey"): Row(_get("/sign-in/passkey"), 303, leads="/", open=True),
    ("POST", "/sign-in/passkey"): Row(_post("/sign-in/passkey", answer="{}"), 403, open=True, looking=True),
    ("GET", "/passkeys"): Row(_get("/passkeys")),
    **{("GET", f"/passkeys/{word}"): Row(_get(f"/passkeys/{word}")) for word in ("add", "confirm")},
    ("POST", "/passkeys/add"): Row(_post("/passkeys/add", name="a key", answer="{}"), 409),
    ("POST", "/passkeys/confirm"): Row(_post("/passkeys/confirm", answer="{}"), 409),
    ("POST", "/sign-out"): Row(_signed_out, 303, leads="/sign-in", open=True, looking=True),
    ("GET", "/approvals"): Row(_get("/approvals")),
    ("GET", "/approvals/propose"): Row(_get("/approvals/propose")),
    ("POST", "/approvals/propose"): Row(_post("/approvals/propose", kind="keys", action="ctrl+nothing"), 422),
    ("GET", "/approvals/observe"): Row(_get("/approvals/observe")),
    ("POST", "/approvals/observe"): Row(_post("/approvals/observe"), 303, leads="/sessions/"),
    ("GET", "/approvals/{proposal_id}"): Row(lambda world: world.bob.get(f"/approvals/{world.proposal()}"), none=404),
    ("POST", "/approvals/{proposal_id}/approve"): Row(_decided("approve"), 303, 404, "/approvals/"),
    ("POST", "/approvals/{proposal_id}/reject"): Row(_decided("reject"), 303, 404, "/approvals/"),
    ("POST", "/approvals/{proposal_id}/reveal"): Row(
        lambda world: world.bob.post(f"/approvals/{world.proposal()}/reveal"), none=404
    ),
    **{
        ("GET", f"/approvals/{{proposal_id}}/{word}"): Row(_again(word), none=404)
        for word in ("approve", "reject", "reveal")
    },
    ("POST", "/control/pause"): Row(_post("/control/pause", reason=REASON), 303, leads="/", looking=True),
    ("POST", "/control/resume"): Row(_post("/control/resume"), 303, leads="/"),
    ("GET", "/alerts"): Row(_get("/alerts")),
    ("GET", "/alerts/acknowledge"): Row(_get("/alerts/acknowledge")),
    ("GET", "/alerts/handover"): Row(_get("/alerts/handover")),
    ("POST", "/alerts/handover"): Row(
        _post("/alerts/handover", text="nothing waits", id=f"alerts.handover-{AUDIT}"), 303, leads="/"
    ),
    ("POST", "/alerts/acknowledge"): Row(_post("/alerts/acknowledge", **{"alert-1": "on", "note": "seen"}), 409),
    ("POST", "/control/mode"): Row(_post("/control/mode", mode="SUGGEST"), 303, leads="/"),
    ("POST", "/control/arm"): Row(_post("/control/arm"), 409),
    ("POST", "/control/disarm"): Row(_post("/control/disarm"), 303, leads="/", looking=True),
    ("POST", "/control/end"): Row(lambda world: world.bob.post("/control/end", session=world.session), 303, leads="/"),
    **{("GET", f"/control/{word}"): Row(_get(f"/control/{word}")) for word in (
        "pause", "resume", "mode", "arm", "disarm", "end",
    )},
    ("GET", "/agents"): Row(_get("/agents")),
    ("GET", "/agents/{session}"): Row(_get("/agents/nobody"), 404, 404),
    ("GET", "/agents/calls/{number}"): Row(_get("/agents/calls/4711"), 404, 404),
    **{("GET", f"/agents/calls/{{number}}/{word}"): Row(_get(f"/agents/calls/4711/{word}"), 404, 404) for word in (
        "approve", "reject",
    )},
    **{("POST", f"/agents/calls/{{number}}/{word}"): Row(_post(f"/agents/calls/4711/{word}"), 404, 404) for word in (
        "approve", "reject",
    )},
    ("GET", "/policy"): Row(_get("/policy")),
    **{("GET", f"/policy/{word}"): Row(_get(f"/policy/{word}")) for word in ("edit", "try", "accept")},
    ("POST", "/policy/try"): Row(_post("/policy/try", layer="project", text="version: 1\n")),
    ("POST", "/policy/accept"): Row(_post("/policy/accept", layer="project", digest="0" * 64), 422),
    ("GET", "/runs"): Row(lambda world: world.runs.get("/runs?state=done")),
    ("GET", "/runs/{run_id}"): Row(lambda world: world.runs.get(_RUN), none=404),
    ("GET", "/runs/{run_id}/tasks/{task_id}"): Row(lambda world: world.runs.get(_task(world)), none=404),
    ("GET", "/runs/{run_id}/artifacts/{sha256}/{name}"): Row(
        lambda world: world.runs.get(f"{_RUN}/artifacts/{SHA256}/out"), none=404
    ),
    **{
        ("GET", f"/runs/{{run_id}}/{name}"): Row(_document(name), none=404)
        for name in ("report.md", "plan.json", "metrics.json")
    },
    ("GET", "/runs/{run_id}/artifacts.zip"): Row(lambda world: world.runs.get(f"{_RUN}/artifacts.zip"), none=404),
    ("GET", "/runs/{run_id}/view/{sha256}/{name}"): Row(
        lambda world: world.runs.get(f"{_RUN}/view/{SHA256}/out"), none=404
    ),
    ("GET", "/runs/{run_id}/picture/{sha256}/{name}"): Row(
        lambda world: world.runs.get(f"{_RUN}/picture/{SHA256}/out"), 404, 404
    ),
    ("GET", "/runs/compare"): Row(lambda world: world.runs.get(f"/runs/compare?a={RUN}&b={RUN}")),
    ("GET", "/audits/compare"): Row(lambda world: world.audits.get(f"/audits/compare?a={AUDIT}&b={AUDIT}")),
    ("POST", "/runs/{run_id}/rerun"): Row(_post("/runs/5b0c/rerun", run=AUDIT), 404, 404),
    ("POST", "/runs/{run_id}/cancel"): Row(_post("/runs/5b0c/cancel", reason=REASON), 404, 404),
    ("GET", "/audits"): Row(lambda world: world.audits.get("/audits")),
    ("GET", "/audits/{audit_id}"): Row(lambda world: world.audits.get(f"/audits/{AUDIT}"), none=404),
    ("GET", "/audits/{audit_id}/report.{ending}"): Row(
        lambda world: world.audits.get(f"/audits/{AUDIT}/report.md"), none=404
    ),
    ("POST", "/audits/{audit_id}/cancel"): Row(_post("/audits/5b0c/cancel", reason=REASON), 404, 404),
    ("GET", "/sessions"): Row(_get("/sessions?kind=oa")),
    ("GET", "/sessions/{session_id}"): Row(lambda world: world.bob.get(f"/sessions/{world.session}"), none=404),
    ("GET", "/sessions/{session_id}/log"): Row(
        lambda world: world.bob.get(f"/sessions/{world.session}/log"), none=404
    ),
    ("GET", "/sessions/{session_id}/frames/{position}"): Row(
        lambda world: world.bob.get(f"/sessions/{world.session}/frames/{world.frame}"), none=404
    ),
    ("GET", "/settings"): Row(_get("/settings")),
    ("GET", "/workspaces"): Row(_get("/workspaces")),
    ("GET", "/search"): Row(_get("/search?q=pla")),
    ("GET", "/log"): Row(_get("/log?type=pla.*&n=5")),
    ("POST", "/saved-filters"): Row(
        _post("/saved-filters", name="x", query="type=oa.*"), 303, leads="/log?type=oa.%2A"
    ),
    ("GET", "/log/find"): Row(_get("/log/find?id=3"), 303, leads="/log/3"),
    ("GET", "/log/{position}"): Row(_get("/log/2"), none=404),
    ("GET", "/log/{position}/raw"): Row(_get("/log/2/raw"), none=404),
    ("GET", "/log/{position}/blob"): Row(lambda world: world.log.get(f"/log/{world.in_blob}/blob"), none=404),
    ("GET", "/integrity"): Row(_get("/integrity")),
    ("POST", "/integrity/verify"): Row(_checked("log", "/integrity/verify"), 303, leads="/integrity#log"),
    ("POST", "/integrity/documents"): Row(
        _checked("documents", "/integrity/documents"), 303, leads="/integrity#documents"
    ),
    ("POST", "/integrity/replay"): Row(_checked("replay", "/integrity/replay"), 303, leads="/integrity#replay"),
}  # fmt: skip
"""Every route, by method and path. A route that cannot be shown here as it is meant (a job that is cancelled, a call
of an agent, a policy's new text) is shown by ``test_runs_live.py``, ``test_audits_page.py``, ``test_agents_pages.py``
and ``test_console_agents.py``."""

ROUTES: Final = list(TABLE)
POSTS: Final = [path for method, path in TABLE if method == "POST"]


def _task(world: World) -> str:
    found = re.search(rf'href="({_RUN}/tasks/[^"?#]+)', world.runs.get(_RUN).text)
    assert found is not None
    return found[1]


def _unknown(path: str) -> str:
    """An address of the route at which there is nothing."""
    return re.sub(r"\{\w+\}", "999999999", path.replace("{session_id}", "pla-" + "0" * 32))


def _named(case: tuple[str, str]) -> str:
    return " ".join(case)


def test_the_table_names_every_route(world: World) -> None:
    inner: Any = world.bob.app
    while not hasattr(inner, "routes"):
        inner = inner._app
    found = set()
    for route in inner.routes:
        if isinstance(route, Mount):
            assert route.path == "/static"
            continue
        assert isinstance(route, Route)
        assert route.methods is not None
        found |= {(method, route.path) for method in route.methods - {"HEAD"}}
    assert found == set(TABLE)


def test_what_the_guard_lets_anybody_or_anyone_who_looks_do_is_in_the_table() -> None:
    assert set(guard.OPEN) == {path for (_, path), row in TABLE.items() if row.open}
    assert set(guard.OPEN_TO_VIEW) == {path for (method, path), row in TABLE.items() if row.looking}


@each("case", ROUTES)
def test_each_answers_as_it_is_meant(world: World, case: tuple[str, str]) -> None:
    row = TABLE[case]
    answer = row.ask(world)
    assert answer.status_code == row.status, answer.text[-2000:]
    assert answer.headers.get("location", "").startswith(row.leads)
    if case[1].startswith("/control/pause"):
        world.live.perform("control.resume", operator=ASKING, channel="cli")


@each("case", [case for case in ROUTES if not TABLE[case].open])
def test_nobody_gets_anything_who_is_not_signed_in(world: World, case: tuple[str, str]) -> None:
    method, path = case
    address = _unknown(path)
    with _stranger(world) as client:
        answer = client.request(method, address, headers={"origin": ORIGIN}, data={} if method == "POST" else None)
    if method == "POST":
        assert answer.status_code == 403
        assert "not signed in" in answer.text
    elif path in guard.LIVE:
        assert answer.status_code == 401
    else:
        assert answer.status_code == 303
        assert urlsplit(answer.headers["location"]).path == "/sign-in"


def _stranger(world: World) -> Any:
    return TestClient(world.bob.app, base_url=ORIGIN, follow_redirects=False)


@each("path", [path for path in POSTS if not TABLE["POST", path].open])
def test_a_form_needs_its_token_and_to_come_from_here(world: World, path: str) -> None:
    token, before = world.bob.csrf(), world.live.position
    address = _unknown(path)
    answers = [
        world.bob.post(address, csrf=""), world.bob.post(address, csrf=world.eve.csrf()),
        *(world.bob.post(address, csrf=token, origin=origin) for origin in ("https://evil.example", "null")),
    ]  # fmt: skip
    assert [answer.status_code for answer in answers] == [403] * 4
    assert world.live.position == before


@each("path", [path for path in POSTS if not TABLE["POST", path].looking])
def test_who_may_only_look_posts_nothing(world: World, path: str) -> None:
    token, before = world.eve.csrf(), world.live.position
    answer = world.eve.post(_unknown(path), csrf=token, reason=REASON)
    assert answer.status_code == 403
    assert "may look and stop, and change nothing else" in answer.text
    assert world.live.position == before


@each("case", [case for case in ROUTES if TABLE[case].none])
def test_what_there_is_not_is_not_found(world: World, case: tuple[str, str]) -> None:
    method, path = case
    address, fields = _unknown(path), {"reason": REASON}
    if path.startswith("/approvals/") and method == "POST":
        fields = world.filled("approve")[1]
    before = world.live.position
    answer = world.bob.post(address, **fields) if method == "POST" else world.bob.get(address)
    assert answer.status_code == TABLE[case].none, answer.text[-2000:]
    assert "<h1>" in answer.text
    assert world.live.position == before


@each("path", sorted({path for _, path in TABLE}))
def test_a_route_knows_its_own_methods_alone(world: World, path: str) -> None:
    methods = {method for method, known in TABLE if known == path}
    token = world.bob.csrf()
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"):
        answer = world.bob.client.request(method, _unknown(path), headers={"origin": ORIGIN})
        assert answer.status_code == 405, method
    if "POST" not in methods:
        assert world.bob.post(_unknown(path), csrf=token).status_code == 405
    if "GET" not in methods:
        assert world.bob.get(_unknown(path)).status_code == 405

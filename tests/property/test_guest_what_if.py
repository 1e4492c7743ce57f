"""What-if by parts, and by two processes, says byte by byte what one look at all calls says."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pmagent.contracts.guest_calls import Call, Command, Policy, Rule, Verdict, When
from pmagent.contracts.guests import GuestCallAsked, GuestCallDecided
from pmagent.events.event import Draft
from pmagent.guests import what_if as trying
from pmagent.guests.forked import forked
from pmagent.guests.what_if import Result, what_if
from pmagent.workspace.layout import Layout
from tests.support.effort import examples
from tests.support.guests_alone import policy
from tests.support.logged import write_log

WORDS: Final = ("ls", "cat a", "curl x", "make b", "rm c")
RULES: Final = (
    Rule(id="look", match="Bash(ls)", answer="allow"),
    Rule(id="private", match="Bash(cat *)", answer="allow", label="private"),
    Rule(id="untrusted", match="Bash(curl *)", answer="allow", label="untrusted"),
    Rule(id="after", match="Bash(make *)", answer="allow", when=When(labels=["private"])),
    Rule(id="degraded", match="Bash(make *)", answer="deny", when=When(mode=["DEGRADED"])),
    Rule(id="night", match="Bash(rm *)", answer="deny", when=When(hours=[22, 6])),
    Rule(id="soon", match="Bash(rm *)", answer="allow", expires="2026-02-05T00:00:00Z"),
)
calls = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from("abc"), st.booleans(), st.sampled_from([1, 12, 23]),
              st.sampled_from(["NORMAL", "DEGRADED"]), st.lists(st.sampled_from(["private"]), max_size=1)),
    min_size=1, max_size=14,
)  # fmt: skip
chosen = st.lists(st.sampled_from(RULES), unique_by=lambda one: one.id, max_size=len(RULES))


def logged(workspace: Path, drawn: list[tuple[str, str, bool, int, str, list[str]]]) -> None:
    """A log of these calls, live or imported."""
    drafts = list[Draft]()
    for number, (words, session, live, hour, mode, labels) in enumerate(drawn):
        facts = Call(
            harness="claude", session=session, tool="Bash", kind="shell", cwd="/w", root="/w", hour=hour,
            outward=words == "curl x", commands=[Command(words=[*words.split()])],
        )  # fmt: skip
        asked = GuestCallAsked(
            session=session, call=str(number), facts=facts, digest="0" * 64, mode="enforce",
            source="live" if live else "import", seen="" if live else f"2026-02-0{number % 9 + 1}T00:00:00.000000Z",
        )  # fmt: skip
        position = len(drafts) + 2
        raw = msgspec.json.encode(asked)
        drafts.append(Draft("guest.call_asked", None, raw, f"a{number}", "hook", session, 0, "fact"))
        if live:
            verdict = Verdict(answer="ask", rules=["r"], policy="", reasons=[])
            decided = GuestCallDecided(request=position, answer="ask", verdict=verdict, mode=mode, labels=labels)
            raw = msgspec.json.encode(decided)
            drafts.append(Draft("guest.call_decided", None, raw, f"d{number}", "guests", session, position, "decision"))
    write_log(workspace, drafts)


def said(found: Result) -> bytes:
    return msgspec.json.encode(found)


def with_rules(rules: list[Rule]) -> Policy:
    made = policy(("Bash(nothing)", "deny"))
    layers = [msgspec.structs.replace(made.layers[-1], rules=[*made.layers[-1].rules, *rules])]
    return Policy(layers=[*made.layers[:-1], *layers], digest="d")


@settings(max_examples=examples(60), deadline=None)
@example(
    [("cat a", "a", True, 12, "NORMAL", []), ("make b", "a", True, 12, "NORMAL", [])], [RULES[1], RULES[3]], 3, ""
)
@given(calls, chosen, st.integers(1, 30), st.sampled_from(["", "2026-02-04T00:00:00.000000Z"]))
def test_two_parts_say_what_the_whole_says(
    drawn: list[tuple[str, str, bool, int, str, list[str]]], rules: list[Rule], middle: int, since: str
) -> None:
    with TemporaryDirectory() as folder:
        logged(Path(folder), drawn)
        store, judged = Layout(Path(folder)).store, with_rules(rules)
        whole = trying._part(store, judged, since, 1, 10_000, {})
        first = trying._part(store, judged, since, 1, middle, {})
        second = trying._part(store, judged, since, middle + 1, 10_000, {})
        assert said(trying._both(store, judged, since, first, second, middle, 10_000)) == said(whole.found)


def test_a_long_log_is_judged_by_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [(WORDS[n % len(WORDS)], "abc"[n % 3], n % 2 == 0, 12, "NORMAL", list[str]()) for n in range(60)]
    logged(tmp_path, words)
    store, judged = Layout(tmp_path).store, with_rules([*RULES])
    monkeypatch.setattr(trying, "may_fork", lambda: False)
    alone = what_if(store, judged, split_at=1)
    monkeypatch.setattr(trying, "may_fork", lambda: True)
    assert said(what_if(store, judged, split_at=1)) == said(alone)
    parts = list[int]()
    plain = trying._part

    def failing(*arguments: object) -> object:
        parts.append(os.getpid())
        if os.getpid() != own:
            raise RuntimeError("the other process fails")
        return plain(*arguments)  # type: ignore[arg-type]

    own = os.getpid()
    monkeypatch.setattr(trying, "_part", failing)
    assert said(what_if(store, judged, split_at=1)) == said(alone)
    assert parts == [own, own], "what the other one did not say is computed here"


def long_text() -> bytes:
    return f"{os.getpid()}{' ' * 200_000}".encode()


def killed() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def test_a_copy_of_this_process_says_all_or_nothing_and_is_gone_then(monkeypatch: pytest.MonkeyPatch) -> None:
    copies, plain = list[int](), os.fork

    def counted() -> int:
        copies.append(plain())
        return copies[-1]

    monkeypatch.setattr(os, "fork", counted)
    with forked(long_text) as told:
        content = told()
    assert content is not None
    assert (int(content), len(content) > 200_000) == (copies[0], True)
    with forked(killed) as told:
        assert told() is None
    with pytest.raises(ZeroDivisionError), forked(lambda: b"x"):
        raise ZeroDivisionError
    assert len(copies) == 3
    assert not any(os.path.exists(f"/proc/{one}") for one in copies)

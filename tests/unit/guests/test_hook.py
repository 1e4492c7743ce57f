"""The hook as a process of its own, against a server that speaks the guest socket's protocol, well or badly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from pmagent.guests import hook
from pmagent.guests.harnesses import EVENTS, GATES
from pmagent.guests.hook import TOLD
from tests.support.cases import each

PYTHON = os.path.realpath(sys.executable)
REFUSAL = b'{"exit":2,"stdout":"","stderr":"no\\n"}\n'
TAKEN = b'{"taken":true}\n'
PAYLOAD = b'{"session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}\n'
LAST = 120.0


class Ended(NamedTuple):
    """How the hook ended, and what it left."""

    code: int
    out: bytes
    err: bytes
    spool: list[dict[str, Any]]


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """The hook with shorter deadlines."""
    text = Path(hook.__file__).read_text("utf-8")
    for name, seconds in (("TAKEN_SECONDS", hook.TAKEN_SECONDS), ("ANSWER_SECONDS", hook.ANSWER_SECONDS)):
        line = f"{name} = {seconds}"
        assert line in text
        text = text.replace(line, f"{name} = 0.3")
    path = tmp_path / "hook.py"
    path.write_text(text, "utf-8")
    return path


@contextmanager
def serving(data: Path, *answers: bytes, close: bool = True) -> Iterator[list[bytes]]:
    """A server that gives these answers to each line; the lines."""
    (data / "run").mkdir(parents=True, exist_ok=True)
    heard: list[bytes] = []
    kept: list[socket.socket] = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(data / "run" / "guest.sock"))
    server.listen()

    def serve() -> None:
        while True:
            one, _ = server.accept()
            kept.append(one)
            with one.makefile("rb") as lines:
                line = lines.readline()
            if line == b"end":
                return
            heard.append(line)
            with suppress(OSError):  # the hook has gone
                for answer in answers:
                    one.sendall(answer)
                if close:
                    one.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(data / "run" / "guest.sock"))
            last.sendall(b"end")
        thread.join(LAST)
        for one in (*kept, server):
            one.close()
        os.unlink(data / "run" / "guest.sock")


def run(
    data: Path, *, file: Path = Path(hook.__file__), event: str = "PreToolUse", mode: str = "enforce",
    payload: bytes = PAYLOAD, wait: str = "0", environ: dict[str, str] | None = None,
) -> Ended:  # fmt: skip
    """Start the hook as Claude Code would."""
    done = subprocess.run(
        [PYTHON, "-I", "-S", str(file), "claude", event, mode, wait, str(data)], input=payload, capture_output=True,
        env=environ or {}, timeout=LAST, check=False,
    )  # fmt: skip
    spool = sorted((data / "spool").glob("*.json")) if (data / "spool").is_dir() else []
    return Ended(done.returncode, done.stdout, done.stderr, [json.loads(path.read_bytes()) for path in spool])


def refused(ended: Ended) -> None:
    """Nothing on stdout, a line on stderr, exit code 2: what no harness takes for a consent."""
    assert (ended.code, ended.out, ended.err.count(b"\n")) == (2, b"", 1)
    assert b"pmagent" in ended.err


def test_the_daemons_answer_is_printed_as_it_is(tmp_path: Path) -> None:
    said = {"exit": 2, "stdout": 'ja "é"\n', "stderr": "no\nmore"}
    with serving(tmp_path, TAKEN, json.dumps(said).encode() + b"\n") as heard:
        ended = run(tmp_path, environ={"AI_AGENT": "claude-code_2-1-330_harness", "TOKEN": "abc"})
    assert ended == (2, said["stdout"].encode(), said["stderr"].encode(), [])  # type: ignore[attr-defined]
    assert json.loads(heard[0]) == {
        "v": 1, "harness": "claude", "event": "PreToolUse", "mode": "enforce", "wait": 0.0, "version": "2.1.330",
        "payload": json.loads(PAYLOAD),
    }  # fmt: skip


BAD = {
    "nothing": (),
    "taken, and no answer": (TAKEN,),
    "half": (TAKEN, b'{"exit":0,"std'),
    "no JSON": (TAKEN, b"yes\n"),
    "a list": (TAKEN, b"[]\n"),
    "a line before it": (TAKEN, b'hello\n{"exit":0,"stdout":"","stderr":""}\n'),
    "something behind it": (TAKEN, b'{"exit":0,"stdout":"","stderr":""} more\n'),
    "exit as text": (TAKEN, b'{"exit":"0","stdout":"","stderr":""}\n'),
    "exit as truth": (TAKEN, b'{"exit":false,"stdout":"","stderr":""}\n'),
    "no stderr": (TAKEN, b'{"exit":0,"stdout":""}\n'),
    "no UTF-8": (TAKEN, b'{"exit":0,"stdout":"\xff","stderr":""}\n'),
}


@each("answers", BAD.values())
def test_a_gate_refuses_whatever_is_no_answer(answers: tuple[bytes, ...]) -> None:
    with TemporaryDirectory() as folder, serving(Path(folder), *answers):
        refused(run(Path(folder)))


def test_a_gate_refuses_without_a_daemon_and_after_its_deadlines(tmp_path: Path, quick: Path) -> None:
    refused(run(tmp_path))
    (tmp_path / "run").mkdir()
    refused(run(tmp_path))
    with serving(tmp_path, close=False):
        refused(run(tmp_path, file=quick))
    with serving(tmp_path, TAKEN, close=False):
        refused(run(tmp_path, file=quick))
    assert not (tmp_path / "spool").exists()


def test_observe_holds_nothing_up_and_leaves_what_no_daemon_took(tmp_path: Path, quick: Path) -> None:
    for number, served in enumerate((None, (), (TAKEN,)), 1):
        if served is None:
            ended = run(tmp_path, mode="observe")
        else:
            with serving(tmp_path, *served, close=number == 2):
                ended = run(tmp_path, mode="observe", file=quick)
        assert ended[:3] == (0, b"", b"")
        assert len(ended.spool) == number
    last = ended.spool[-1]
    assert (last["mode"], last["payload"], last["event"]) == ("observe", json.loads(PAYLOAD), "PreToolUse")
    assert last["seen"].endswith("Z")
    assert {path.suffix for path in (tmp_path / "spool").iterdir()} == {".json"}
    with serving(tmp_path, TAKEN, b'{"exit":2,"stdout":"x","stderr":"y"}\n'):
        ended = run(tmp_path, mode="observe")
    assert ended[:3] == (0, b"", b"")
    assert len(ended.spool) == 3


def test_an_event_that_only_tells_goes_to_the_spool_in_enforce_too(tmp_path: Path) -> None:
    assert run(tmp_path, event="PostToolUse")[:3] == (0, b"", b"")
    ended = run(tmp_path, event="SessionEnd")
    assert [one["event"] for one in ended.spool] == ["PostToolUse", "SessionEnd"]
    refused(run(tmp_path, event="SomethingNew"))


def test_the_end_of_a_session_is_told_once(tmp_path: Path, quick: Path) -> None:
    """A daemon that has taken it may read a long transcript; one that has gone is told again."""
    for close, number in ((False, 0), (True, 1)):
        with serving(tmp_path, TAKEN, close=close):
            ended = run(tmp_path, event="SessionEnd", file=quick)
        assert (ended.code, len(ended.spool)) == (0, number)


def test_every_event_that_is_asked_for_is_a_gate_or_only_tells() -> None:
    events = {event for listed in EVENTS.values() for event in listed}
    assert events & GATES == events - TOLD


@each("payload", [b"", b"[]", b"null", b'"text"', b"{", b"{}}", b'{"a":1}\n{"b":2}', b'{"a":' + b'"\xff"}'])
def test_what_is_no_object_is_no_call(payload: bytes) -> None:
    """Where it looks like one from its ends, the daemon decides; nothing of it becomes a second line."""
    with TemporaryDirectory() as folder, serving(Path(folder), TAKEN, REFUSAL) as lines:
        ended = run(Path(folder), payload=payload)
    assert (ended.code, ended.out) == (2, b"")
    assert all(line.count(b"\n") == 1 for line in lines if line)


def test_a_payload_cannot_speak_for_the_hook(tmp_path: Path) -> None:
    with serving(tmp_path, TAKEN, b'{"exit":0,"stdout":"","stderr":""}\n') as heard:
        run(tmp_path, payload=b'{},"mode":"observe","payload":{"tool_name":"Read"}')
        run(tmp_path, payload=b'{\n  "a": "b\\nc"\r\n}\n')
    assert json.loads(heard[0])["mode"] == "enforce"
    assert json.loads(heard[1])["payload"] == {"a": "b\nc"}


def test_a_long_call_is_refused_and_a_long_path_is_none(tmp_path: Path) -> None:
    refused(run(tmp_path, payload=b'{"a":"' + b"x" * hook.INPUT_BYTES + b'"}'))
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    here = os.open(deep, os.O_RDONLY)
    (deep / "run").mkdir()
    with serving(Path(f"/proc/self/fd/{here}"), TAKEN, b'{"exit":0,"stdout":"ok","stderr":""}\n'):
        assert run(deep).out == b"ok"
    os.close(here)


def test_a_harness_that_never_ends_its_sentence_is_refused(tmp_path: Path, quick: Path) -> None:
    process = subprocess.Popen(
        [PYTHON, "-I", "-S", str(quick), "claude", "PreToolUse", "enforce", "0", str(tmp_path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(PAYLOAD[:10])
    process.stdin.flush()
    assert process.wait(LAST) == 2
    out, err = process.communicate()
    assert out == b""
    assert b"in time" in err


OTHER = [(), ("claude",), ("claude", "PreToolUse", "enforce"), ("a", "b", "enforce", "soon", "/x"), tuple("abcdefg")]


@each("arguments", OTHER)
def test_other_arguments_refuse(arguments: tuple[str, ...]) -> None:
    words = [PYTHON, "-I", "-S", hook.__file__, *arguments]
    done = subprocess.run(words, input=PAYLOAD, capture_output=True, timeout=LAST, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr


def test_nothing_of_the_environment_reaches_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(0)", "utf-8")
    (tmp_path / "json.py").write_text("import os; os._exit(0)", "utf-8")
    names = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONPYCACHEPREFIX")
    refused(run(tmp_path, environ=dict.fromkeys(names, str(tmp_path))))


def test_a_full_stdout_is_a_refusal(tmp_path: Path) -> None:
    """Half an answer would be no answer, which some harnesses take for a consent."""
    with serving(tmp_path, TAKEN, b'{"exit":0,"stdout":"allowed","stderr":""}\n'), open("/dev/full", "wb") as full:
        done = subprocess.run(
            [PYTHON, "-I", "-S", hook.__file__, "claude", "PreToolUse", "enforce", "0", str(tmp_path)], input=PAYLOAD,
            stdout=full, stderr=subprocess.PIPE, timeout=LAST, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr



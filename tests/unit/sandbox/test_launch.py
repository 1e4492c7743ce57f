"""How bubblewrap is started, with another program in its place."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from pmagent.actors.sandbox import orphans
from pmagent.actors.sandbox.arguments import Content, HostPath
from pmagent.actors.sandbox.launch import BOUND, Launch, gated, opened, start
from tests.support.cases import each

TELLS = """
import os, sys
line = open("/proc/self/cmdline", "rb").read()
at = sys.argv.index("--args")
options = os.fdopen(int(sys.argv[at + 1]), "rb").read()
leads = os.getsid(0) == os.getpid()
print([line, options, sys.argv[1:at], sys.argv[at + 2 :], dict(os.environ).get("A"), os.getcwd(), leads])
"""
PROGRAM = (sys.executable, "-I", "-S", "-c", TELLS)


def held() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_options_come_in_a_file_and_the_command_behind_it() -> None:
    launch = Launch(PROGRAM, ("--setenv", "SECRET", "hush\n"), ("tool", "--", "a b"), environment={"A": "1"})
    with start(launch) as process:
        said, _ = process.communicate(timeout=60)
    line, *rest = eval(said)
    assert rest == [b"--setenv\0SECRET\0hush\n\0", [BOUND[0]], ["--", "tool", "--", "a b"], "1", "/", True]
    assert orphans._OURS in line, "by which what is left of it is known"


def test_without_a_wall_the_command_runs_as_it_is() -> None:
    with start(Launch((), (), (sys.executable, "-I", "-S", "-c", "print(1)"))) as process:
        assert process.communicate(timeout=60)[0] == b"1\n"


@each("launch, error", [
    (Launch(("/nowhere/bwrap",), ("--x",), ("a",)), OSError),
    (Launch(PROGRAM, ("--bind\0", "/"), ("a",)), ValueError),
])
def test_where_it_cannot_be_started_nothing_is_left_open(launch: Launch, error: type[Exception]) -> None:
    before = held()
    with pytest.raises(error):
        start(launch)
    assert held() == before


def test_what_is_handed_over_is_closed_here_after_the_start(tmp_path: Path) -> None:
    before = held()
    with ExitStack() as ours:
        with ExitStack() as theirs:
            options, handed = opened(("--file", Content(b"x"), "--bind-fd", HostPath(str(tmp_path.resolve()))), theirs)
            assert options == ["--file", str(handed[0]), "--bind-fd", str(handed[1])]
            gate = gated(Launch(PROGRAM, options, ("a",), handed), ours, theirs)
            assert {*handed, gate.reading} < {*gate.launch.handed}
        assert len(held()) == len(before) + 2, "our ends of the reports and of the gate"
    assert held() == before

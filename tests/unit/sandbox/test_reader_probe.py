"""Whether there is a wall is not decided by who sits at the terminal."""

from __future__ import annotations

import os
from pathlib import Path

from pmagent.actors.sandbox.bubblewrap import builds
from pmagent.actors.sandbox.launch import Launch


def test_ctrl_c_in_the_terminal_does_not_reach_the_probe(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = tmp_path / "bwrap"
    program.write_text(f'#!/bin/sh\nread -r stat < "/proc/$$/stat"\necho "$$ $stat" > {told}\n')
    program.chmod(0o755)
    assert builds(Launch((str(program),), (), ()))
    own, _, rest = told.read_text().partition(" ")
    session = rest.rpartition(")")[2].split()[3]
    assert session == own, "it leads a session of its own"
    assert int(session) != os.getsid(0)

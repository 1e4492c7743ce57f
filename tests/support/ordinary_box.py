"""Program: become an ordinary user, and run tools in the sandbox. Started as root; prints what the tools could do."""

from __future__ import annotations

import os
import tempfile

import anyio
import anyio._backends._asyncio  # imported before the rights to read it are given up

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, Outcome, SandboxSpec

FORKS = "while (defined($p = fork)) { exec(q(sleep), 30) if !$p; last if ++$n > 50 } print $n + 0"


async def main() -> None:
    """Ask for one thing after the other."""
    folder = tempfile.mkdtemp()

    async def box(*argv: str, limits: Limits | None = None) -> Outcome:
        return await run(SandboxSpec(argv=argv, artifacts=folder, limits=limits or Limits(seconds=20)))

    status = (await box("grep", "-E", "^(CapEff|NoNewPrivs|Seccomp):", "/proc/self/status")).stdout.decode()
    print(" ".join(status.split()))  # noqa: T201
    print("id", (await box("id", "-u")).stdout.decode().strip())  # noqa: T201
    print("unshare", (await box("unshare", "--user", "true")).exit_code)  # noqa: T201
    print("outside", (await box("ls", folder)).exit_code)  # noqa: T201
    await box("touch", "/artifacts/made")
    print("artifact", os.path.isfile(f"{folder}/made"))  # noqa: ASYNC240, T201
    forks = await box("perl", "-e", FORKS, limits=Limits(seconds=20, processes=8))
    print("fork limit", 0 < int(forks.stdout) < 8)  # noqa: T201
    late = await box("sleep", "60", limits=Limits(seconds=1, grace_seconds=5))
    print("timed out", late.timed_out, late.signal)  # noqa: T201


if __name__ == "__main__":
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)
    anyio.run(main)

"""The porter brings the work in. Nothing he is handed ever sees a shell."""
from __future__ import annotations

import asyncio
import re
from pathlib import Path

REMOTE = re.compile(r"https://github\.com/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


class Refused(Exception):
    pass


async def git(*args: str, seconds: float = 60) -> str:
    process = await asyncio.create_subprocess_exec(
        "git", *args, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise Refused(f"git {args[0]} was stopped after {seconds:.0f} s") from None
    if process.returncode:
        raise Refused(err.decode(errors="replace").strip() or f"git {args[0]} gave {process.returncode}")
    return out.decode(errors="replace")


async def bring(url: str, into: str) -> str:
    if not REMOTE.fullmatch(url):
        raise Refused(f"only https://github.com/owner/name is accepted, not {url!r}")
    target = str(Path(into) / "work")
    await git("clone", "--quiet", "--", url, target)
    return target

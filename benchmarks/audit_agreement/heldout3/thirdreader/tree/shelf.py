"""Getting the repo onto the shelf."""
import asyncio
import os
import tempfile


class Shelf:
    """A temporary folder with the clone in it."""

    def __init__(self, url: str):
        self.url = url
        self.tmp = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.tmp.name, "clone")

    async def __aenter__(self):
        p = await asyncio.create_subprocess_exec(
            "git", "clone", "-q", self.url, self.path,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await asyncio.wait_for(p.wait(), 120)
        except asyncio.TimeoutError:
            p.kill()
        return self

    async def __aexit__(self, *exc):
        self.tmp.cleanup()

    async def git(self, *args: str) -> str:
        p = await asyncio.create_subprocess_exec(
            "git", *args, cwd=self.path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )
        out, _ = await p.communicate()
        return out.decode(errors="replace")

    def sources(self):
        for root, dirs, files in os.walk(self.path):
            dirs[:] = [d for d in dirs if not d.startswith(".") and d != "node_modules"]
            for f in files:
                if f.endswith(".py"):
                    full = os.path.join(root, f)
                    with open(full, errors="replace") as fh:
                        yield os.path.relpath(full, self.path), fh.read()

import asyncio
import shutil
from pathlib import Path

WORK = Path("work")


async def clone(url: str) -> Path:
    if not url.startswith("https://"):
        raise ValueError("only https addresses")
    target = WORK / url.rstrip("/").split("/")[-1].removesuffix(".git")
    if target.exists():
        shutil.rmtree(target)
    WORK.mkdir(exist_ok=True)
    proc = await asyncio.create_subprocess_exec(
        "git", "clone", "--quiet", url, str(target), stderr=asyncio.subprocess.PIPE
    )
    _, err = await proc.communicate()
    if proc.returncode != 0:
        raise RuntimeError(f"clone failed: {err.decode(errors='replace').strip()}")
    return target


async def git_log(repo: Path) -> list[str]:
    proc = await asyncio.create_subprocess_exec(
        "git", "-C", str(repo), "log", "--format=%h|%aI|%an|%s", "--shortstat", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await proc.communicate()
    return out.decode(errors="replace").splitlines()

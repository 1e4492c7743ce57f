"""Everything that touches the student's files. Nothing of theirs is executed."""
import ast
import asyncio
import re
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from .records import Clue

ADDRESS = re.compile(r"https://(github|gitlab)\.com/[\w.-]+/[\w.-]+?(\.git)?")
DANGEROUS = {"os.system", "eval", "exec", "pickle.loads"}
MAX_FILE = 400_000


class DockError(Exception):
    pass


async def git(*args: str, timeout: float = 90.0) -> str:
    process = await asyncio.create_subprocess_exec(
        "git", *args, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise DockError(f"git {args[0]} took longer than {timeout:.0f} s") from None
    if process.returncode:
        raise DockError(f"git {args[0]}: {err.decode(errors='replace').strip()[-200:]}")
    return out.decode(errors="replace")


async def check_out(url: str, folder: str) -> str:
    if not ADDRESS.fullmatch(url) and not Path(url, ".git").is_dir():
        raise DockError(f"not an address that I clone from: {url}")
    target = str(Path(folder, "work"))
    await git("clone", "--no-tags", "--", url, target)
    return target


async def history(checkout: str) -> Clue:
    lines = (await git("-C", checkout, "log", "--format=%ad %s", "--date=short")).splitlines()
    days = {line[:10] for line in lines}
    return Clue(key="log", criterion="process", seen=len(days) > 2, text=f"{len(lines)} commits on {len(days)} days")


def calls(tree: ast.AST) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def read_code(checkout: str) -> list[Clue]:
    clues = []
    tests = 0
    for path in sorted(Path(checkout).rglob("*.py")):
        if path.is_symlink() or path.stat().st_size > MAX_FILE:
            continue
        name = str(path.relative_to(checkout))
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError) as error:
            clues.append(Clue(key=f"syntax:{name}", criterion="code", seen=False, text=f"{name}: {error}"))
            continue
        tests += sum(isinstance(node, ast.Assert) for node in ast.walk(tree)) if "test" in name else 0
        for call in sorted(calls(tree) & DANGEROUS):
            clues.append(Clue(key=f"danger:{name}", criterion="code", seen=True, danger=True, text=f"{name} calls {call}"))
    clues.append(Clue(key="asserts", criterion="tests", seen=tests > 0, text=f"{tests} assertions"))
    return clues


def read_paper(pdf: str) -> Clue:
    try:
        text = "\n".join(page.extract_text() for page in PdfReader(pdf).pages[:40])
    except (OSError, PyPdfError) as error:
        return Clue(key="paper", criterion="paper", seen=False, text=f"cannot be read: {error}")
    return Clue(key="paper", criterion="paper", seen=len(text) > 800, text=text[:6000])

"""Take samples of a library: clone it, look at log, code and paper."""
from __future__ import annotations

import ast
import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from pypdf import PdfReader

from .forms import Sample

_PLACE = re.compile(r"https://[\w.-]+/[\w./-]+")
_LIMIT = 60.0


class NoSample(RuntimeError):
    """The library cannot be examined."""


async def _git(*arguments: str, cwd: Path | None = None) -> str:
    process = await asyncio.create_subprocess_exec(
        "git", *arguments, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(_LIMIT):
            out, err = await process.communicate()
    except TimeoutError as late:
        process.kill()
        raise NoSample(f"git {arguments[0]}: no end after {_LIMIT:.0f} s") from late
    if process.returncode != 0:
        raise NoSample(f"git {arguments[0]}: {err.decode(errors='replace')[-300:]}")
    return out.decode(errors="replace")


@contextlib.asynccontextmanager
async def checkout(place: str) -> AsyncIterator[Path]:
    if not (_PLACE.fullmatch(place) or (Path(place) / ".git").exists()):
        raise NoSample(f"{place} is neither an https address nor a repository")
    folder = Path(tempfile.mkdtemp(prefix="assay-"))
    try:
        await _git("clone", "--quiet", "--", place, str(folder / "lib"))
        yield folder / "lib"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def from_log(lib: Path) -> list[Sample]:
    log = (await _git("log", "--format=%aI\t%an\t%s", cwd=lib)).splitlines()
    people = {line.split("\t")[1] for line in log}
    return [
        Sample(id="log.size", text=f"{len(log)} commits by {len(people)} people"),
        Sample(id="log.last", text=f"last change {log[0].split(chr(9))[0]}" if log else "no change"),
    ]


async def from_code(lib: Path) -> list[Sample]:
    return await asyncio.to_thread(_read_code, lib)


def _read_code(lib: Path) -> list[Sample]:
    unsafe: list[str] = []
    documented = functions = asserts = 0
    for file in sorted(lib.rglob("*.py")):
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            unsafe.append(f"{file.name} does not parse")
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions += 1
                documented += ast.get_docstring(node) is not None
            elif isinstance(node, ast.Assert):
                asserts += 1
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"eval", "exec", "os.system", "pickle.load"}:
                unsafe.append(f"{file.name}:{node.lineno} {ast.unparse(node.func)}")
    return [
        Sample(id="code.docs", text=f"{documented} of {functions} functions have a docstring"),
        Sample(id="code.asserts", text=f"{asserts} assertions"),
        Sample(id="code.unsafe", text="; ".join(unsafe[:20]) or "none", alarm=bool(unsafe)),
    ]


async def from_paper(paper: Path | None) -> list[Sample]:
    if paper is None:
        return []
    try:
        text = await asyncio.to_thread(lambda: "\n".join(p.extract_text() for p in PdfReader(paper).pages))
    except Exception as broken:  # pypdf raises many kinds
        return [Sample(id="paper.broken", text=f"{type(broken).__name__}: {broken}")]
    return [Sample(id=f"paper.{n}", text=text[at:at + 1500]) for n, at in enumerate(range(0, min(len(text), 9000), 1500))]

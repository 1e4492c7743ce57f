"""Make the git repository and the PDF report of one project of the set.

Usage: build.py PROJECT TREE OUT

PROJECT holds ``history.toml`` and ``report.md``, TREE the files as they are at the end. OUT/repo and OUT/report.pdf are
written, the same bytes each time: commits bear the dates of the history, and the PDF none.

A commit of ``history.toml`` adds ``files`` (patterns) as they are in TREE, the ``head`` of files (their first lines),
or ``text`` of its own, and takes away ``remove``. The last commit must be TREE itself, or nothing is built.
"""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pymupdf

mupdf: Any = pymupdf  # its calls are not annotated

STYLE = "body {font-family: sans-serif; font-size: 10.5pt} pre, code {font-family: monospace; font-size: 9pt}"
PAGE = mupdf.paper_rect("a4")
BOX = mupdf.Rect(56, 56, PAGE.x1 - 56, PAGE.y1 - 56)


def files_of(folder: Path) -> dict[str, bytes]:
    """The files below a folder, by their relative path; git's own and compiled ones are left out."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {".git", "__pycache__", ".pytest_cache"} & set(path.parts)
    }


def after(commit: dict[str, Any], before: dict[str, bytes], tree: dict[str, bytes]) -> dict[str, bytes]:
    """The files after a commit."""
    now = dict(before)
    for pattern in commit.get("files", []):
        found = [name for name in tree if Path(name).match(pattern) or name.startswith(pattern.rstrip("*"))]
        if not found:
            raise SystemExit(f"error: history.toml: no file of the project is named {pattern}")
        now.update((name, tree[name]) for name in found)
    for name, lines in commit.get("head", {}).items():
        now[name] = b"".join(tree[name].splitlines(keepends=True)[:lines])
    now.update((name, text.encode()) for name, text in commit.get("text", {}).items())
    for name in commit.get("remove", []):
        del now[name]
    return now


def build_repository(history: dict[str, Any], tree: dict[str, bytes], target: Path) -> None:
    """Commit by commit, with the history's authors and dates."""
    target.mkdir(parents=True)
    bare = {"PATH": os.environ["PATH"], "HOME": str(target), "GIT_CONFIG_NOSYSTEM": "1"}
    bare["GIT_CONFIG_GLOBAL"] = os.devnull

    def git(*arguments: str, **variables: str) -> None:
        subprocess.run(["git", "-C", str(target), *arguments], env=bare | variables, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    now: dict[str, bytes] = {}
    for commit in history["commit"]:
        then = after(commit, now, tree)
        for name in now.keys() - then.keys():
            (target / name).unlink()
        for name, content in then.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(content)
        now = then
        name, _, address = commit.get("author", history["author"]).rstrip(">").partition(" <")
        git("add", "--all", "--force")
        who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
               for key, value in (("NAME", name), ("EMAIL", address), ("DATE", commit["date"]))}
        git("commit", "--quiet", "--allow-empty", "--no-verify", "--message", commit["message"], **who)
    if now != tree:
        odd = sorted(name for name in now.keys() | tree.keys() if now.get(name) != tree.get(name))
        raise SystemExit(f"error: {target.parent.name}: the last commit is not the project: {', '.join(odd)}")


def inline(text: str) -> str:
    """Code and bold of one line. Spans keep f and its neighbour from becoming one sign, which few programs still do."""
    text = re.sub(r"(?<=f)([fil])", r"<span>\1</span>", html.escape(text, quote=False))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)


def as_html(markdown: str) -> str:
    """The little Markdown that the reports use: headings, lists, quotations, tables, code, paragraphs."""
    out = []
    for block in re.split(r"\n\s*\n", markdown.strip()):
        lines = block.split("\n")
        if block.startswith("```"):
            out.append("<pre>" + html.escape("\n".join(lines[1:-1])) + "</pre>")
        elif block.startswith("|"):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if set(line) - set("|- ")]
            out.append("<table>" + "".join(
                "<tr>" + "".join(f"<td>{inline(cell)}</td>" for cell in row) + "</tr>" for row in rows) + "</table>")
        elif block.startswith("#"):
            level = len(lines[0]) - len(lines[0].lstrip("#"))
            out.append(f"<h{level}>{inline(lines[0].lstrip('# '))}</h{level}>")
            if lines[1:]:
                out.append(as_html("\n".join(lines[1:])))
        elif block.startswith("> "):
            out.append("<blockquote>" + inline(" ".join(line.lstrip("> ") for line in lines)) + "</blockquote>")
        elif re.match(r"(-|\d+\.) ", block):
            items = re.split(r"\n(?=(?:-|\d+\.) )", block)
            kind = "ul" if block[0] == "-" else "ol"
            texts = [inline(re.sub(r"^(-|\d+\.) ", "", " ".join(item.split()))) for item in items]
            out.append(f"<{kind}>" + "".join(f"<li>{text}</li>" for text in texts) + f"</{kind}>")
        else:
            out.append("<p>" + inline(" ".join(lines)) + "</p>")
    return "\n".join(out)


def build_pdf(markdown: str, target: Path) -> None:
    """The report as pages of text that can be searched."""
    story, buffer = mupdf.Story(as_html(markdown), user_css=STYLE), io.BytesIO()
    writer, more = mupdf.DocumentWriter(buffer), 1
    while more:
        device = writer.begin_page(PAGE)
        more, _ = story.place(BOX)
        story.draw(device)
        writer.end_page()
    writer.close()
    with mupdf.open("pdf", buffer.getvalue()) as document:
        document.save(target, garbage=3, deflate=True, no_new_id=True)


def build(project: Path, tree: Path, out: Path) -> None:
    """OUT/repo and OUT/report.pdf of one project."""
    history = tomllib.loads((project / "history.toml").read_text("utf-8"))
    build_repository(history, files_of(tree), out / "repo")
    build_pdf((project / "report.md").read_text("utf-8"), out / "report.pdf")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit("usage: build.py PROJECT TREE OUT")
    build(*(Path(argument) for argument in sys.argv[1:]))

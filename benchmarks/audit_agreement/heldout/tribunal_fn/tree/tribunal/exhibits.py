"""Detectives. Each returns exhibits and never raises for a bad repository."""
import re
import shutil
import subprocess as sp
import tempfile
from pathlib import Path

from langgraph.func import task

from .schemas import Exhibit

ALLOWED = re.compile(r"(https://(github|gitlab)\.com/[^\s?#]+|/[^\s]+)")


def _git(*args, cwd=None):
    return sp.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True, timeout=90).stdout


@task
def repository_exhibits(url: str) -> list[Exhibit]:
    if not ALLOWED.fullmatch(url):
        return [Exhibit("repository", "address refused", ok=False)]
    work = Path(tempfile.mkdtemp(prefix="tribunal"))
    try:
        _git("clone", "--", url, str(work / "r"))
        log = _git("log", "--stat", "--format=%h %s", cwd=work / "r")
        code = "\n".join(p.read_text(errors="ignore")[:4000] for p in sorted((work / "r").rglob("*.py"))[:30])
        danger = re.findall(r"os\.system\(.*|shell\s*=\s*True", code)
        return [Exhibit("log", log[:8000]), Exhibit("code", code[:20000]), Exhibit("danger", "\n".join(danger), ok=not danger)]
    except sp.CalledProcessError as e:
        return [Exhibit("repository", e.stderr[-400:], ok=False)]
    except sp.TimeoutExpired:
        return [Exhibit("repository", "git did not finish", ok=False)]
    finally:
        shutil.rmtree(work, ignore_errors=True)


@task
def report_exhibits(path: str | None) -> list[Exhibit]:
    if not path or not Path(path).is_file():
        return [Exhibit("report", "no report was given", ok=False)]
    import pymupdf

    return [Exhibit(f"report p.{i + 1}", page.get_text()) for i, page in enumerate(pymupdf.open(path))]

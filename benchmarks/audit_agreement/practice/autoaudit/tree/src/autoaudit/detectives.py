import ast
import base64
import subprocess

from langchain_openai import ChatOpenAI

from . import tools
from .state import AuditState, Evidence


def intake(state: AuditState):
    try:
        return {"repo_dir": str(tools.clone(state["repo_url"]))}
    except (subprocess.SubprocessError, ValueError) as e:
        return {"failures": [f"clone: {e}"]}


def repo_investigator(state: AuditState):
    from pathlib import Path
    repo = Path(state["repo_dir"])
    ev = [Evidence(goal="git", found=True, content=tools.log(repo), location="git log")]
    for f in repo.rglob("*.py"):
        try:
            names = {n.attr for n in ast.walk(ast.parse(f.read_text("utf8", "ignore"))) if isinstance(n, ast.Attribute)}
        except SyntaxError:
            continue
        for wanted in ("add_conditional_edges", "with_structured_output", "system"):
            if wanted in names:
                ev.append(Evidence(goal=wanted, found=True, location=str(f.relative_to(repo))))
    return {"evidences": {"repo": ev}}


def doc_analyst(state: AuditState):
    import pymupdf
    try:
        text = "\n".join(p.get_text() for p in pymupdf.open(state["pdf_path"]))
    except Exception as e:
        return {"failures": [f"pdf: {e}"], "evidences": {"doc": []}}
    return {"evidences": {"doc": [Evidence(goal="report", found=bool(text.strip()), content=text[:6000], location="pdf")]}}


def vision_inspector(state: AuditState):
    llm = ChatOpenAI(model="gpt-4o", timeout=60)
    seen = []
    for n, image in enumerate(tools.images(state["pdf_path"])):
        uri = "data:image/png;base64," + base64.b64encode(image).decode()
        msg = llm.invoke([("human", [{"type": "text", "text": "Describe this diagram's flow."},
                                     {"type": "image_url", "image_url": {"url": uri}}])])
        seen.append(Evidence(goal="diagram", found=True, content=msg.content, location=f"image {n}"))
    return {"evidences": {"vision": seen}}


def aggregate(state: AuditState):
    return {"notes": [f"{len(v)} pieces of evidence from {k}" for k, v in state["evidences"].items()]}

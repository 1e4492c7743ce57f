import ast
from pathlib import Path

from .git_tools import Clone, GitError, git
from .state import AgentState, Evidence


class RepoInvestigator:
    key = "repo"

    def __call__(self, state: AgentState) -> dict:
        try:
            with Clone(state["repo_url"]) as repo:
                return {"evidences": {self.key: [self.history(repo), *self.nodes(Path(repo))]}}
        except GitError as exc:
            return {"errors": [f"repo: {exc}"]}

    def history(self, repo: str) -> Evidence:
        log = git("log", "--reverse", "--format=%h %aI %s", cwd=repo).splitlines()
        return Evidence(goal="git_history", found=len(log) > 3, location="git log", content="\n".join(log[:50]))

    def nodes(self, root: Path):
        for path in root.rglob("*.py"):
            try:
                tree = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError):
                continue
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in (
                        "add_node", "add_edge", "add_conditional_edges", "with_structured_output", "system"):
                    yield Evidence(goal="graph", found=True, location=f"{path.relative_to(root)}:{call.lineno}",
                                   content=ast.unparse(call))


class DocAnalyst:
    key = "doc"

    def __call__(self, state: AgentState) -> dict:
        if not state.get("pdf_path"):
            return {"errors": ["doc: no report"]}
        import pymupdf

        try:
            with pymupdf.open(state["pdf_path"]) as doc:
                pages = [Evidence(goal="report", found=True, location=f"page {p.number + 1}", content=p.get_text()[:3000]) for p in doc]
        except (pymupdf.FileNotFoundError, pymupdf.FileDataError) as exc:
            return {"errors": [f"doc: {exc}"]}
        return {"evidences": {self.key: pages}}


def aggregator(state: AgentState) -> dict:
    found = sum(len(v) for v in state.get("evidences", {}).values())
    return {} if found else {"errors": ["no evidence at all"]}

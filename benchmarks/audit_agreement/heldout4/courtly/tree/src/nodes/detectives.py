"""Detective layer: facts only, no opinions."""
from src.state import AgentState, Evidence
from src.tools import doc_tools, repo_tools


def repo_investigator(state: AgentState):
    try:
        path = repo_tools.clone_repo(state["repo_url"])
    except Exception as e:
        print("Clone failed:", e)
        return {"errors": [f"clone failed: {e}"]}

    log = repo_tools.git_log(path)
    models = repo_tools.find_classes(path, ("BaseModel", "TypedDict"))
    edges = repo_tools.find_calls(path, ("add_edge", "add_conditional_edges", "Send"))
    danger = repo_tools.find_calls(path, ("system", "popen", "eval", "exec"))
    files = [p for p in repo_tools.python_files(path)]
    return {
        "repo_dir": path,
        "evidences": {
            "git_forensics": [
                Evidence(goal="iterative history", found=len(log) > 3, content="\n".join(log[:50]),
                         location="git log", rationale=f"{len(log)} commits", confidence=0.9)
            ],
            "state_rigor": [
                Evidence(goal="typed state", found=bool(models), content="\n".join(models[:30]),
                         location="*.py", rationale=f"{len(models)} typed classes", confidence=0.8)
            ],
            "orchestration": [
                Evidence(goal="graph", found=bool(edges), content="\n".join(edges[:40]),
                         location="*.py", rationale=f"{len(edges)} edges", confidence=0.7)
            ],
            "tool_safety": [
                Evidence(goal="no dangerous calls", found=bool(danger), content="\n".join(danger[:20]),
                         location="*.py", rationale=f"{len(danger)} dangerous calls", confidence=0.8)
            ],
            "report_accuracy": [
                Evidence(goal="files in repo", found=True, content="\n".join(files[:80]),
                         location=path, rationale="list of files to compare with the report", confidence=1.0)
            ],
        },
    }


def doc_analyst(state: AgentState):
    try:
        text = doc_tools.read_pdf(state["pdf_path"])
    except Exception as e:
        print("PDF failed:", e)
        return {"errors": [f"pdf failed: {e}"]}
    paths = doc_tools.mentioned_paths(text)
    ctx = doc_tools.keyword_context(text, ["Dialectical Synthesis", "Fan-In", "Metacognition", "State Synchronization"])
    return {
        "evidences": {
            "report_accuracy": [
                Evidence(goal="paths in report", found=bool(paths), content="\n".join(paths),
                         location=state["pdf_path"], rationale="paths mentioned in the report", confidence=0.9),
                Evidence(goal="theory", found=bool(ctx), content=str(ctx),
                         location=state["pdf_path"], rationale="keywords in context", confidence=0.6),
            ]
        }
    }


def evidence_aggregator(state: AgentState):
    """Fan-in. Waits for all detectives."""
    print("Evidence for:", ", ".join(state["evidences"]) or "nothing")
    return {}

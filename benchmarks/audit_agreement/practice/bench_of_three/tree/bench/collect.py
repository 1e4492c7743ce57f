import subprocess, tempfile, pathlib
from .state import BenchState


def collect(state: BenchState):
    with tempfile.TemporaryDirectory() as d:
        try:
            subprocess.run(["git", "clone", "-q", state["url"], d], check=True, timeout=60, capture_output=True)
        except subprocess.CalledProcessError as e:
            return {"error": e.stderr.decode()}
        except subprocess.TimeoutExpired:
            return {"error": "timeout"}
        py = {str(p.relative_to(d)): p.read_text(errors="ignore")[:1500] for p in list(pathlib.Path(d).rglob("*.py"))[:25]}
        log = subprocess.run(["git", "log", "--oneline"], cwd=d, capture_output=True, text=True).stdout
    return {"evidence": {**py, "git log": log}}


def ok(state: BenchState):
    return "stop" if state.get("error") else "go"

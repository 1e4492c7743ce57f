import json
import subprocess

from langchain_core.tools import tool

from .workdir import inside


def make_tools(path):
    @tool
    def read_file(name: str, start: int = 1, end: int = 200) -> str:
        """Read lines of a file of the pull request."""
        full = inside(path, name)
        if full is None:
            return "no such file"
        try:
            with open(full) as f:
                lines = f.readlines()[start - 1:end]
        except OSError as e:
            return str(e)
        return "".join(f"{i}: {line}" for i, line in enumerate(lines, start))

    @tool
    def search(pattern: str) -> str:
        """Search the checkout with grep."""
        out = subprocess.run(f"grep -rnE '{pattern}' . | head -50", shell=True, cwd=path, capture_output=True, text=True)
        return out.stdout or "nothing found"

    @tool
    def lint(name: str) -> str:
        """Run ruff on one file."""
        full = inside(path, name)
        if full is None:
            return "no such file"
        out = subprocess.run(["ruff", "check", "--output-format", "json", full], capture_output=True, text=True, timeout=60)
        try:
            return "\n".join(f"{m['location']['row']}: {m['code']} {m['message']}" for m in json.loads(out.stdout)[:30])
        except ValueError:
            return out.stderr[:500]

    return [read_file, search, lint]

import sys
from pathlib import Path

from .graph import app


def main():
    if len(sys.argv) != 3:
        print(__doc__ or "usage: python -m grantweaver URL PROFILE", file=sys.stderr)
        return 2
    profile = Path(sys.argv[2]).read_text("utf-8")
    result = app.invoke({"url": sys.argv[1], "profile": profile, "problems": [], "sections": []})
    print(result["application"])
    return 0


if __name__ == "__main__":
    sys.exit(main())

import sys
from dotenv import load_dotenv
load_dotenv()

from pipeline import app


def main():
    if len(sys.argv) != 3:
        print("usage: python jury.py REPO_URL PITCH_PDF")
        sys.exit(1)
    result = app.invoke({
        "repo_url": sys.argv[1],
        "pitch": sys.argv[2],
        "facts": [],
        "opinions": [],
    })
    print("Final score:", result["final"]["score"])
    print("Saved to", result["final"]["path"])


if __name__ == "__main__":
    main()

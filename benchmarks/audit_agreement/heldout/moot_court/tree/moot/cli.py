import argparse

from dotenv import load_dotenv

from .graph import build


def main() -> None:
    parser = argparse.ArgumentParser(prog="moot")
    parser.add_argument("repo")
    parser.add_argument("pdf")
    args = parser.parse_args()
    load_dotenv()
    end = build().invoke({"repo_url": args.repo, "pdf": args.pdf, "findings": {}, "opinions": [], "problems": []})
    print(end["out"])


if __name__ == "__main__":
    main()

"""Entry point."""
import sys

from verity.board import build_board


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "https://github.com/org/repo"
    pdf = sys.argv[2] if len(sys.argv) > 2 else "report.pdf"
    board = build_board()
    result = board.invoke({"repo_url": url, "pdf_path": pdf, "evidences": {}, "opinions": []})
    print(result["final_report"])


if __name__ == "__main__":
    main()

import sys

from assize.graph import build


def main():
    url = sys.argv[1]
    result = build().invoke({"url": url})
    print(result["score"])


if __name__ == "__main__":
    main()

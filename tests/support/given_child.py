"""A reader's module that runs the program in its request."""

import sys

if __name__ == "__main__":
    exec(compile(sys.stdin.read(), "given", "exec"), {"__name__": "__main__"})

import random
from fractions import Fraction

OPS = {1: "+", 2: "+-", 3: "+-*", 4: "+-*/"}


def make(level, rng=random):
    op = rng.choice(OPS[level])
    top = 4 + 3 * level
    a = Fraction(rng.randint(1, top), rng.randint(2, top))
    b = Fraction(rng.randint(1, top), rng.randint(2, top))
    if op == "-" and a < b:
        a, b = b, a
    result = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[op]
    return {"text": f"{a} {op} {b}", "solution": str(result)}


def parse(text):
    """3/4, 1 1/2, 0.75 or 2"""
    text = text.strip().replace(",", ".")
    try:
        if " " in text:
            whole, part = text.split(" ", 1)
            return Fraction(whole) + Fraction(part.strip())
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def is_right(answer, solution):
    value = parse(answer)
    return value is not None and value == Fraction(solution)


def is_reduced(answer):
    text = answer.strip().split(" ")[-1]
    if "/" not in text:
        return True
    n, _, d = text.partition("/")
    try:
        return Fraction(int(n), int(d)).denominator == int(d)
    except (ValueError, ZeroDivisionError):
        return False

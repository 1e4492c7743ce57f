"""SHA-256 (FIPS 180-4) in Python alone, for boards whose firmware has no ``hashlib``."""

_MASK = 0xFFFFFFFF


def _fraction(number: int, root: int) -> int:
    """The first 32 bits behind the point of the ``root``-th root of ``number``, by integers only."""
    goal = number << (32 * root)
    low, high = 0, 1 << 40
    while low < high - 1:
        middle = (low + high) // 2
        if middle**root <= goal:
            low = middle
        else:
            high = middle
    return low & _MASK


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found


_ROUNDS = [_fraction(prime, 3) for prime in _primes(64)]
_BEGIN = [_fraction(prime, 2) for prime in _primes(8)]


def _turn(word: int, by: int) -> int:
    return (word >> by | word << (32 - by)) & _MASK


def _mix(state: list[int], block: bytes) -> list[int]:
    """The state after one block of 64 bytes (FIPS 180-4, 6.2.2)."""
    words = [int.from_bytes(block[at : at + 4], "big") for at in range(0, 64, 4)]
    for at in range(16, 64):
        early, late = words[at - 15], words[at - 2]
        small = _turn(early, 7) ^ _turn(early, 18) ^ early >> 3
        large = _turn(late, 17) ^ _turn(late, 19) ^ late >> 10
        words.append((words[at - 16] + small + words[at - 7] + large) & _MASK)
    a, b, c, d, e, f, g, h = state
    for at in range(64):
        choice = e & f ^ ~e & g
        one = h + (_turn(e, 6) ^ _turn(e, 11) ^ _turn(e, 25)) + choice + _ROUNDS[at] + words[at]
        two = (_turn(a, 2) ^ _turn(a, 13) ^ _turn(a, 22)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = (one + two) & _MASK, a, b, c, (d + one) & _MASK, e, f, g
    return [(old + new) & _MASK for old, new in zip(state, (a, b, c, d, e, f, g, h))]  # noqa: B905  (no strict= there)


def sha256(data: bytes) -> str:
    """The digest of ``data``, in hex."""
    whole = len(data) // 64 * 64
    state = _BEGIN
    for at in range(0, whole, 64):
        state = _mix(state, data[at : at + 64])
    rest = data[whole:] + b"\x80"
    rest += bytes((56 - len(rest)) % 64) + (len(data) * 8).to_bytes(8, "big")
    for at in range(0, len(rest), 64):
        state = _mix(state, rest[at : at + 64])
    return "".join("%08x" % word for word in state)  # noqa: UP031  (the same in every Python)

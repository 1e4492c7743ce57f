"""The main loop: one round serves the switch, the line and the machine, and is over soon."""

from .core import Core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from digitalio import DigitalInOut
    from microcontroller import Processor
    from nvm import ByteArray
    from usb_cdc import Serial
    from watchdog import WatchDogTimer

    from .hands import Hands
    from .shapes import Sha256
    from .uart import UartLine

CHUNK = 64
"""Bytes that are read in a round, and written to USB: one of its packets."""

KILLED_MARK = 0x4B
"""In the first byte of the memory that outlives a reset: the kill switch was open since power-on."""

KNOWN = (
    (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
        b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ),
)
"""SHA-256 of no block, one and two (FIPS 180-4)."""

FLICKER_MS = 64
"""So long the light is on, and off, once the program has failed."""


class Board:
    """The hardware of the loop. ``switch`` reads True when it is open, which kills. ``line`` takes ``piece`` bytes at
    once when none is waiting."""

    def __init__(
        self,
        ticks_ms: "Callable[[], int]",
        switch: "DigitalInOut",
        light: "DigitalInOut",
        line: "Serial | UartLine",
        hands: "Hands",
        usb_connected: "Callable[[], bool]",
        watchdog: "WatchDogTimer",
        memory: "ByteArray",
        piece: int = CHUNK,
    ) -> None:
        self.ticks_ms = ticks_ms
        self.switch = switch
        self.light = light
        self.line = line
        self.hands = hands
        self.usb_connected = usb_connected
        self.watchdog = watchdog
        self.memory = memory
        self.piece = piece

    def killed_before(self) -> bool:
        """Whether the switch was open before a reset that was no power-on."""
        return self.memory[0] == KILLED_MARK

    def forget_kill(self) -> None:
        """After power-on: no kill is remembered. The memory is written in any case, which shows that it can be; the
        last write is that nothing is remembered. Raises RuntimeError where it does not keep what is written."""
        for killed in (True, False):
            self.memory[0] = KILLED_MARK if killed else 0
            if self.killed_before() != killed:
                raise RuntimeError("the lasting memory does not keep what is written")

    def prove(self) -> None:
        """Read once whatever each round reads: what cannot be read shows before the watchdog runs."""
        self.ticks_ms()
        if self.usb_connected():
            self.hands.prove()
        self.line.read(0)
        for reading in (self.switch.value, self.line.in_waiting, self.line.out_waiting, self.line.connected):
            bool(reading)

    def mark(self, *, killed: bool) -> None:
        """Write it down, if it is not. Each write wears the memory."""
        if self.killed_before() != killed:
            self.memory[0] = KILLED_MARK if killed else 0


def serve(core: Core, board: Board) -> None:
    """One round."""
    received = board.line.read(min(board.line.in_waiting, CHUNK)) if board.line.in_waiting else b""
    usb = board.usb_connected()
    try:
        step = core.step(
            board.ticks_ms(),
            received,
            killed=board.switch.value or board.killed_before(),
            dtr=board.line.connected,
            usb=usb,
            caps_lock=usb and board.hands.caps_lock(),
            room=0 if board.line.out_waiting else board.piece,
        )
        board.light.value = step.led
        for report in step.reports:
            why = board.hands.hand_over(report)
            core.reported(not why, why)
        if step.send:
            board.line.write(step.send)
    finally:  # whatever fails: what is not written down here, a reset would take back
        if core.killed:
            board.mark(killed=True)
    if step.feed:
        board.watchdog.feed()


def run(core: Core, board: Board, rounds: int = -1) -> None:
    """Rounds without end, or so many.

    Any exception in a round ends all typing for good: the core types nothing any more, the light flickers, and the
    watchdog, which is not fed, resets the board. Everything is released on every way out.
    """
    try:
        while rounds:
            rounds -= 1
            try:
                serve(core, board)
            except Exception:  # noqa: BLE001  whatever it is, the firmware has failed
                _end(core.fail)
                _end(lambda: let_go(board))
            if core.failed:
                _end(lambda: flicker(board))
    finally:
        let_go(board)


def _end(act: "Callable[[], object]") -> None:
    """Do what can still be done. The program has failed already, and the watchdog's reset is what ends that."""
    try:
        act()
    except Exception:  # noqa: BLE001  nothing is left that could be told to anybody
        return


def flicker(board: Board) -> None:
    """The light of a program that has failed, until the watchdog resets the board."""
    board.light.value = board.ticks_ms() // FLICKER_MS % 2 == 0


def let_go(board: Board) -> None:
    """Light off, all released, as far as there is a machine."""
    board.light.value = False
    if board.usb_connected():
        board.hands.hand_over(("release",))


def device_id(cpu: "Processor") -> str:
    """The name of this board, the same at each boot."""
    return "pla-" + "".join([f"{byte:02x}" for byte in cpu.uid])


def last_word(value: object) -> str:
    """``microcontroller.ResetReason.POWER_ON`` to ``POWER_ON``."""
    return str(value).split(".")[-1]


def checked(fast: "Sha256 | None", slow: "Sha256") -> "Sha256":
    """The board's own SHA-256 where it has one that is right, else ours. Raises RuntimeError where neither is."""
    for found in (fast, slow):
        if found is not None and _is_right(found):
            return found
    raise RuntimeError("this board computes no right SHA-256")


def _is_right(found: "Sha256") -> bool:
    """Whether it knows what is known. CircuitPython's may be missing, lack the algorithm, or raise anything else."""
    try:
        return all(found(data) == digest for data, digest in KNOWN)
    except Exception:  # noqa: BLE001
        return False

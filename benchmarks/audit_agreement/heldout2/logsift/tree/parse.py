"""Log lines -> entries -> templates"""
import re
from collections import namedtuple
from typing import Iterable, List, Optional

Entry = namedtuple('Entry', 'time host program level text')

LINE = re.compile(r'^(\w{3} [ \d]\d \d\d:\d\d:\d\d) (\S+) ([\w./@-]+)(?:\[\d+\])?: (.*)$')

LEVELS = [
    ('crit', re.compile(r'panic|segfault|out of memory|corrupt', re.I)),
    ('error', re.compile(r'error|fail|denied|refused', re.I)),
    ('warn', re.compile(r'warn|timeout|retry|slow', re.I)),
]

MASKS = [
    (re.compile(r'\b[0-9a-f]{8}-[0-9a-f-]{27}\b', re.I), '<uuid>'),
    (re.compile(r'\b\d{1,3}(\.\d{1,3}){3}\b'), '<ip>'),
    (re.compile(r'\b0x[0-9a-f]+\b', re.I), '<hex>'),
    (re.compile(r'(/[\w.-]+){2,}'), '<path>'),
    (re.compile(r'\b\d+\b'), '<n>'),
]


def level(text: str) -> str:
    for name, pattern in LEVELS:
        if pattern.search(text):
            return name
    return 'info'


def parse_line(line: str) -> Optional[Entry]:
    m = LINE.match(line)
    if not m:
        return None
    time, host, program, text = m.groups()
    return Entry(time, host, program, level(text), text)


def template(text: str) -> str:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def entries(lines: Iterable[str], ignore: List[str]):
    ignored = [re.compile(p) for p in ignore if p.strip()]
    for line in lines:
        line = line.rstrip('\n')
        rest = ''.join(line.split(None, 4)[4:])
        if any(p.search(rest) for p in ignored):
            continue
        e = parse_line(line)
        if e:
            yield e

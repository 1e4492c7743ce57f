"""Texts as people type them, labelled: with a credential, or without. Written for this project; the keys are made here,
so that no file holds the shape of one."""

from __future__ import annotations

import random
import string
from typing import Final

from tests.support.secrets import KEYS, NAMED

PASSWORDS: Final = (
    "Tr0ub4dor&3", "P@ssw0rd!", "hunter2hunter2", "x7Kp9QwZ3mLt", "S3cr3t!pw", "Winter2026!", "qW8#rT5$yU",
)  # fmt: skip
"""Texts that people take for passwords."""

TOKENS: Final = tuple(
    "".join(random.Random(seed).choices(alphabet, k=length))
    for seed, (alphabet, length) in enumerate(
        [
            (string.ascii_letters + string.digits, 20),
            (string.ascii_letters + string.digits, 24),
            (string.ascii_letters + string.digits, 32),
            (string.ascii_letters + string.digits + "+/", 40),
            (string.ascii_letters + string.digits + "-_", 43),
            ("0123456789abcdef", 32),
            ("0123456789abcdef", 40),
            ("0123456789abcdef", 64),
            (string.ascii_uppercase + "234567", 32),
            (string.ascii_lowercase, 32),
            (string.ascii_lowercase + string.digits, 26),
        ]
    )
)
"""Drawn at random, of several alphabets."""

CARDS: Final = ("4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009", "6011000000000004")

WITH: Final[list[str]] = [
    *KEYS.values(), *(f"export THING={key}\n" for key in KEYS.values() if "\n" not in key),
    *(f"{name}{value}@host/" if name[-1] in ":@" and "//" in name else f"{name}{value}" for name, value in NAMED),
    *PASSWORDS, *(f"{password}\n" for password in PASSWORDS),
    *(f"sshpass -p {password} ssh admin@host\n" for password in PASSWORDS),
    *(f"mysql -u root -p{password} lab\n" for password in PASSWORDS),
    *(f"curl -u alice:{password} https://example.org/\n" for password in PASSWORDS),
    *(f"alice\t{password}\n" for password in PASSWORDS), *(f"alice\n{password}\n" for password in PASSWORDS),
    *(f"https://alice:{password.replace('@', '%40')}@example.org/" for password in PASSWORDS),
    *(f"my password is {password}" for password in PASSWORDS),
    *(f"{password} is the password of the lab" for password in PASSWORDS),
    *(f"echo {password} | sudo -S reboot\n" for password in PASSWORDS), *TOKENS,
    *(f"curl -H 'X-Thing: {token}' https://example.org/\n" for token in TOKENS),
    *(f"echo {token} > /etc/thing\n" for token in TOKENS), *(f"Authorization: Bearer {token}" for token in TOKENS),
    *(f"api key {token}" for token in TOKENS), *(f"pay with {card} please" for card in CARDS),
    *(" ".join(KEYS[name]) for name in ("aws", "github", "google", "openai")),
    *("\n".join(KEYS[name][at : at + 7] for at in range(0, len(KEYS[name]), 7)) for name in ("aws", "github", "jwt")),
    *(f'"{KEYS[name][:9]}" + "{KEYS[name][9:]}"' for name in ("aws", "github", "google")), "p a s s w o r d : hunter2",
    "pass\nword hunter2", "passwd\n", "the PIN is 4711", "pin: 123456", "verification code 938471", "otp 483920",
    "alice:hunter2x\n", "admin:correcthorse", "login alice password letmein", "client_secret = abcdefgh",
    "token=abc123def", "my secret is swordfish", "Kennwort geheim", "net user alice Welcome1 /add\n", "my pa55w0rd",
]
"""With a credential, or asking for one."""

WITHOUT: Final[list[str]] = [
    "ls\nreboot\n", "Dear\nAlice\n", "cd\nmake\n",
    "hello", "Hello, world!", "ls -la\n", "cd /usr/local/lib/python3.11/site-packages\n", "pwd\n", "git status\n",
    "git commit -m 'Fix the tokenizer'\n", "git log --oneline --graph\n", "make test\n", "sudo apt install ripgrep\n",
    "The quick brown fox jumps over the lazy dog.",
    "Dear Sir or Madam,\n\nthank you for your letter.\n\nYours,\nAlice\n", "systemctl restart networking.service\n",
    "journalctl -u ssh --since yesterday\n", "ping -c 3 192.168.10.254\n", "ssh alice@lab-host-12.example.org\n",
    "scp report.pdf alice@example.org:/srv/reports/\n", "curl https://example.org/index.html\n",
    "https://example.org/path/to/page?query=word&page=2", "http://localhost:8080/health", "localhost:8080",
    "10.0.0.1:8080/metrics", "docker run --rm -it debian:bookworm bash\n", "kubectl get pods --all-namespaces\n",
    "SELECT name, price FROM items WHERE price > 10 ORDER BY name;\n", "for i in $(seq 1 10); do echo $i; done\n",
    "print('hello')\n", "def main() -> None:\n    return None\n", "import os, sys\n",
    "x = [n * n for n in range(10)]\n", "alice@example.org", "Alice Example", "+49 30 1234567", "2026-11-22",
    "2026-11-22T08:59:11", "12345678", "3.14159265358979", "0x7fff0000", "the 1st of 12 parts",
    "addEventListener('click', onButtonClicked)", "getElementsByTagNameNS", "thisIsACamelCaseNameOfAFunction",
    "ANOTHER_CONSTANT_WITH_A_LONG_NAME", "a_snake_case_name_of_a_variable", "x86_64-linux-gnu",
    "nmcli device wifi list\n", "dmesg | tail -n 20\n", "tar xzf archive-1.2.3.tar.gz\n",
    "vim ~/.config/nvim/init.lua\n", ":wq\n", "y\n", "yes\n", "no",
    "Notes of the meeting:\n- the camera is mounted\n- the switch is wired normally closed\n", "echo $PATH\n",
    "exit\n", "python3 -m venv .venv && . .venv/bin/activate\n", "pip install -r requirements.txt\n",
    "rm -rf build/\n", "uname -a\n", "chmod 0644 /etc/hosts\n", "mount /dev/sdb1 /mnt\n",
    "dd if=image.iso of=/dev/sdc bs=4M status=progress\n", "whoami\n", "Der Rechner startet neu.",
    "Temperature: 21.5 C, humidity: 48 %", "1,2,3,4,5,6,7,8,9,10", "a=1; b=2; c=3",
    "firefox --new-window about:blank\n", "Order 4711 was shipped on Monday.", "top -o %MEM\n", "lsusb -t\n",
    "README.md", "setup.py", "main.cpp", "photo-2026-11.jpg", "C:\\Users\\Alice\\Documents\n", "ipconfig /all\n",
    "Get-ChildItem -Recurse -Filter *.log\n", "key findings of the report", "the tokens of a parser",
    "open the door with a key", "minicom -D /dev/ttyACM0 -b 115200\n", "gcc -O2 -Wall -o hello hello.c\n",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "abcdefghijklmnopqrstuvwxyz", "aaaaaaaaaaaaaaaaaaaaaaaa",
    "--------------------------------", "Lorem ipsum dolor sit amet",
]  # fmt: skip
"""Without one."""

#!/usr/bin/env python3
import argparse
import os
import smtplib
import subprocess
import sys
from email.message import EmailMessage

from groups import make_groups, remember, top
from parse import entries

SMTP_HOST = 'mail.firm.example'


def read_journal(days):
    out = subprocess.run(['journalctl', '--no-pager', '-o', 'short', '--since', f'-{days}d'],
                         stdout=subprocess.PIPE, universal_newlines=True)
    return out.stdout.splitlines()


def summary(host, groups, total):
    lines = [f'{host}: {total} lines, {len(groups)} groups shown', '']
    for g in groups:
        lines.append(f"{'NEW ' if g.new else '    '}{g.count:6} x [{g.level}] {g.program}: {g.text}")
        lines.append(f'            e.g. {g.example[:160]}')
    return '\n'.join(lines)


def send(address, subject, text):
    msg = EmailMessage()
    msg['From'] = 'logsift@firm.example'
    msg['To'] = address
    msg['Subject'] = subject
    msg.set_content(text)
    try:
        with smtplib.SMTP(SMTP_HOST, timeout=30) as s:
            s.send_message(msg)
    except Exception:
        pass


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--host', required=True)
    p.add_argument('--file')
    p.add_argument('--days', type=int, default=1)
    p.add_argument('--mail')
    p.add_argument('--keep', default='/var/lib/logsift/groups.db')
    a = p.parse_args()

    if a.file:
        if not os.path.exists(a.file):
            print('no such file:', a.file, file=sys.stderr)
            return 2
        with open(a.file, errors='replace') as f:
            lines = f.readlines()
    else:
        lines = read_journal(a.days)

    ignore = []
    if os.path.exists('ignore.txt'):
        with open('ignore.txt') as f:
            ignore = f.read().splitlines()

    found = make_groups(entries(lines, ignore))
    remember(a.keep, a.host, found)
    text = summary(a.host, top(found), len(lines))
    print(text)
    if a.mail:
        send(a.mail, f'logsift {a.host}', text)
    return 0


if __name__ == '__main__':
    sys.exit(main())

from __future__ import annotations

import argparse
import sqlite3
import sys
from datetime import date
from pathlib import Path

from . import checks, mailbox, pdf, reading, settings
from .ledger import Ledger, write_table
from .model import Outcome, Settings


def run(given: Settings, ledger: Ledger, today: date) -> Outcome:
    outcome = Outcome()
    for mail in sorted(given.inbox.glob("*.eml")):
        for attachment in mailbox.attachments(mail):
            try:
                file = pdf.keep(attachment, given.work)
                invoice = reading.read(pdf.text_of(file), file.name)
            except (pdf.Unreadable, reading.NoInvoice, OSError) as error:
                outcome.unread.append((f"{attachment.name} from {attachment.sender}", str(error)))
                continue
            checked = checks.check(invoice, given.suppliers, ledger.knows(invoice.iban, invoice.number), today)
            ledger.add(checked)
            (outcome.booked if checked.clear else outcome.doubtful).append(checked)
        mailbox.set_aside(mail)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="facturier")
    parser.add_argument("--config", type=Path, default=Path("facturier.toml"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("table", type=Path)
    commands.add_parser("list")
    commands.add_parser("accept").add_argument("number")
    arguments = parser.parse_args()
    try:
        given = settings.load(arguments.config)
        ledger = Ledger(given.ledger)
        if arguments.command == "list":
            for number, supplier, doubts in ledger.doubtful():
                print(f"{number} ({supplier}): {doubts}")
            return 0
        if arguments.command == "accept":
            if not ledger.accept(arguments.number):
                print(f"facturier: no invoice {arguments.number}", file=sys.stderr)
                return 1
            return 0
        outcome = run(given, ledger, date.today())
        write_table(ledger.clear(), arguments.table)
    except (settings.SettingsError, sqlite3.Error, OSError) as error:
        print(f"facturier: {error}", file=sys.stderr)
        return 1
    for name, reason in outcome.unread:
        print(f"not read: {name}: {reason}", file=sys.stderr)
    for one in outcome.doubtful:
        print(f"doubtful: {one.invoice.number} of {one.supplier}: {'; '.join(one.doubts)}", file=sys.stderr)
    print(f"{len(outcome.booked)} booked, {len(outcome.doubtful)} doubtful, {len(outcome.unread)} not read")
    return 2 if outcome.doubtful or outcome.unread else 0


if __name__ == "__main__":
    sys.exit(main())

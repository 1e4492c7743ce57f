from datetime import date
from decimal import Decimal

import pytest

from facturier.reading import NoInvoice, read

TEXT = """
  Scierie Morel                     Facture n° 2026-0117
  Date : 12/03/2026
  Total HT :       1 240,00 €
  TVA 20 % :         248,00 €
  Total TTC :      1 488,00 €
  IBAN FR76 3000 6000 0112 3456 7890 189
"""


def test_an_invoice_is_read():
    invoice = read(TEXT, "a.pdf")
    assert (invoice.number, invoice.issued, invoice.total) == ("2026-0117", date(2026, 3, 12), Decimal("1488.00"))
    assert invoice.iban == "FR7630006000011234567890189"


@pytest.mark.parametrize(("line", "name"), [("Date", "date"), ("Total TTC", "total"), ("IBAN", "IBAN")])
def test_a_missing_field_is_named(line, name):
    text = "\n".join(one for one in TEXT.splitlines() if line not in one)
    with pytest.raises(NoInvoice, match=name):
        read(text, "a.pdf")

from datetime import date

from mandate.records import Facts
from mandate.rules import months_later, terms


def facts(area, served):
    return Facts(tenant="Ada Kern", landlord="Immo GmbH", area=area, served_on=served, account="...")


def test_month_ends_are_met():
    assert months_later(date(2026, 1, 31), 1) == date(2026, 2, 28)
    assert months_later(date(2026, 11, 30), 3) == date(2027, 2, 28)


def test_a_rent_increase_may_be_thought_over_for_two_months():
    assert [one.ends for one in terms(facts("rent increase", date(2026, 3, 10)))] == [date(2026, 5, 31)] * 2


def test_no_service_no_term():
    assert terms(facts("termination", None)) == []

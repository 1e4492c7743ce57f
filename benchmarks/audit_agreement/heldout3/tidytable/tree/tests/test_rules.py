import pandas as pd
import pytest

from tidytable.model import Column
from tidytable.rules import check, lost

BORN = Column(name="born", type="date", required=True)
INCOME = Column(name="income", type="number", minimum=0, maximum=100)


@pytest.mark.parametrize(("column", "value", "rule"), [
    (BORN, None, "is required"), (BORN, "31.1.2026", "is no date like 2026-01-31"), (INCOME, "many", "is no number"),
    (INCOME, "-1", "is below 0"), (INCOME, "101", "is above 100"),
])
def test_each_rule(column, value, rule):
    frame = pd.DataFrame({column.name: pd.Series([value], dtype=object)})
    assert [one.rule for one in check(frame, [column])] == [rule]


def test_good_values_pass():
    assert check(pd.DataFrame({"born": ["2026-01-31"], "income": ["7"]}), [BORN, INCOME]) == []


def test_a_missing_column():
    assert check(pd.DataFrame({"x": ["1"]}), [BORN])[0].rule == "is missing"


def test_emptied_cells_are_noticed():
    before = pd.DataFrame({"income": ["1", "2"]})
    assert lost(before, pd.DataFrame({"income": ["1", None]}), [INCOME])[0].rule == "would be emptied"


def test_twice_the_same():
    assert check(pd.DataFrame({"id": ["a", "a"]}), [Column(name="id", type="text", unique=True)])[0].rule == "must be unique"

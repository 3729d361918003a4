"""Make the demo's table of counts from household rows: run once, kept so that the making can be checked.

usage: python examples/make_table.py HOUSEHOLDS.csv > examples/tallyveil_demo/high_income_heads.csv

Not here: the household rows. They are not part of this repository.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter

LEAST_INCOME = 200_000
OFFICES = {
    "NCR": "ncr",
    "CAR": "car",
    "I - Ilocos Region": "ilocos",
    "II - Cagayan Valley": "cagayan-valley",
    "III - Central Luzon": "central-luzon",
    "IVA - CALABARZON": "calabarzon",
    "IVB - MIMAROPA": "mimaropa",
    "V - Bicol Region": "bicol",
    "VI - Western Visayas": "western-visayas",
    "VII - Central Visayas": "central-visayas",
    "VIII - Eastern Visayas": "eastern-visayas",
    "IX - Zasmboanga Peninsula": "zamboanga-peninsula",  # misspelt in the source
    "X - Northern Mindanao": "northern-mindanao",
    "XI - Davao Region": "davao",
    "XII - SOCCSKSARGEN": "soccsksargen",
    "Caraga": "caraga",
    "ARMM": "armm",
}


def main(path: str) -> None:
    """Count the heads of households with a high income and print the table."""
    counts: Counter[tuple[str, str, int]] = Counter()
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if int(row["Total Household Income"]) >= LEAST_INCOME:
                office = OFFICES[row["Region"].strip()]
                counts[office, row["Household Head Sex"], int(row["Household Head Age"])] += 1
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["office", "sex", "age", "count"])
    order = {office: number for number, office in enumerate(OFFICES.values())}
    for (office, sex, age), count in sorted(counts.items(), key=lambda item: (order[item[0][0]], item[0][1:])):
        writer.writerow([office, sex, age, count])


if __name__ == "__main__":
    main(sys.argv[1])

"""What a person reads in the terminal: every figure's errors as a table, what they mean, and where the files are.

Not here: the pictures.
"""

from __future__ import annotations

from pathlib import Path

from tallyveil.cli.console import print_table
from tallyveil_reproduce.captions import DATA, READING, TABLE_1, TABLE_2
from tallyveil_reproduce.folder import PAGE
from tallyveil_reproduce.page import one_answer_table, two_answers_table
from tallyveil_reproduce.results import Results


def show(results: Results, folder: Path, files: list[str], seconds: float) -> None:
    """Print all of it on standard output."""
    print(READING.english)
    print(DATA.english)
    for words in results.protections():
        print(f"- {words.english}")
    print("NOT protected:")
    for phrase in results.not_protected():
        print(f"- {phrase}")
    print(f"\nMAPE: mean ± standard deviation of {results.repeats} repeats (expected).\n")
    for item in results.figures:
        headers, rows = item.table()
        print_table(headers, rows, title=f"Figure {item.number}. {item.title.english}", right=set(headers[1:]))
        print(f"{item.caption.english}\n")
    for words, (headers, rows) in ((TABLE_1, one_answer_table(results)), (TABLE_2, two_answers_table(results))):
        print_table(headers, rows, right=set(headers[1:]))
        print(f"{words.english}\n")
    page = f"; open {folder / PAGE}" if PAGE in files else ""
    print(f"{len(files)} files in {folder}{page}. {seconds:.0f} s.")

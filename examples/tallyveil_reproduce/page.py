"""All figures and tables as one HTML page that needs nothing else: no network, no script, no other file.

Not here: the pictures themselves (`pictures`) and the captions' words (`captions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from tallyveil_reproduce.captions import DATA, READING, TABLE_1, TABLE_2, Words
from tallyveil_reproduce.pictures import Picture
from tallyveil_reproduce.results import FigureResult, Results

_STYLE = """
body { font-family: "DejaVu Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; color: #222;
  max-width: 1120px; margin: 2rem auto; padding: 0 1rem; line-height: 1.55; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin: 3rem 0 .5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
figure { margin: 1rem 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
.zh { color: #444; } nav a { margin-right: .8em; }
details { margin: .5rem 0; overflow-x: auto; } summary { cursor: pointer; color: #0072B2; }
table { border-collapse: collapse; font-size: .85rem; margin: .5rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_page(results: Results, pictures: Mapping[int, Picture]) -> str:
    """The page.

    Args:
        results: Figures and tables.
        pictures: The drawn figures by number.
    """
    links = "".join(f'<a href="#figure-{item.number}">{item.number}</a>' for item in results.figures)
    figures = "".join(_figure(item, pictures[item.number].svg) for item in results.figures)
    head = Words(
        f"The paper's experiments, drawn again; {results.repeats} repeats",
        f"论文实验的重现；每项重复 {results.repeats} 次",
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Tallyveil: {escape(head.english)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(head.english)}</h1>{_paragraphs(Words('', head.chinese))}"
        f"{_paragraphs(READING)}{_paragraphs(DATA)}{_protections(results)}<nav>Figures 图: {links}"
        f'<a href="#note">Numeric note 数值型笔记</a></nav>'
        f'{figures}<h2 id="note">Numeric note 数值型笔记</h2>{_note(results)}</body></html>\n'
    )


def _protections(results: Results) -> str:
    kept = "".join(
        f'<li>{escape(words.english)} <span class="zh" lang="zh">{escape(words.chinese)}</span></li>'
        for words in results.protections()
    )
    open_to_sight = "".join(f"<li>{escape(phrase)}</li>" for phrase in results.not_protected())
    return (
        f"<h2>What is protected 保护了什么</h2><ul>{kept}</ul>"
        f"<p><strong>What is NOT protected 没有保护什么</strong></p><ul>{open_to_sight}</ul>"
    )


def _figure(item: FigureResult, svg: str) -> str:
    headers, rows = item.table()
    title = f"Figure {item.number}. {item.title.english} · 图 {item.number} {item.title.chinese}"
    return (
        f'<section id="figure-{item.number}"><h2>{escape(title)}</h2>'
        f'<figure role="img" aria-label="{escape(title)}">{svg}</figure>'
        f"{_paragraphs(item.caption)}<details><summary>MAPE: mean ± sd over the repeats (expected) · "
        f"均值 ± 标准差（期望）</summary>{_table(headers, rows)}</details></section>"
    )


def _note(results: Results) -> str:
    return "".join(
        _paragraphs(words) + _table(headers, rows)
        for words, (headers, rows) in ((TABLE_1, one_answer_table(results)), (TABLE_2, two_answers_table(results)))
    )


def one_answer_table(results: Results) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the note's first table."""
    one = results.one_answer
    return ["Within ±5 of 3000", "share of answers"], [
        [f"drawn here, {one.repeats} × {one.draws} answers", f"{one.share:.2%} ± {one.share_sd:.1%}"],
        ["exact law of the noise drawn here", f"{one.share_expected:.3%}"],
        ["law of the note's rounded continuous noise", f"{one.share_of_note:.3%}"],
        ["the note's only run", f"{one.seen_by_note:.0%}"],
    ]


def two_answers_table(results: Results) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the note's second table."""
    return ["True answer", "90 % of noisy answers", "mean relative error", "expected"], [
        [
            f"{row.true_answer}",
            f"{row.low:.0f} to {row.high:.0f}",
            f"{row.relative_error:.3%} ± {row.relative_error_sd:.3%}",
            f"{row.relative_error_expected:.3%}",
        ]
        for row in results.two_answers
    ]


def _paragraphs(words: Words) -> str:
    english = f"<p>{escape(words.english)}</p>" if words.english else ""
    return f'{english}<p class="zh" lang="zh">{escape(words.chinese)}</p>'


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

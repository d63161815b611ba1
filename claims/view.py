"""The ledger for readers: rows as an HTML table (light, dark, phone, screen reader) and as plain text."""

import html
from collections import Counter

from claims.judge import VERDICTS
from claims.ledger import HARMS, claim, ledger
from claims.texts import readable, show, shown_at

_COLUMNS = ("判定", "原文", "原文值", "重算", "更正与说明")
_HUES = {"holds": "34,160,90", "rounding": "60,130,220", "wrong": "220,50,50", "inconsistent": "200,60,160",
         "misleading": "225,140,20", "unreproducible": "130,130,140", "unverifiable": "130,130,140"}

# Colours are translucent and text inherits, so one style serves light and dark pages and JupyterLab.
_STYLE = """
.ledger{position:relative;overflow-x:auto;font-size:.9em;line-height:1.5}
.ledger table{border-collapse:collapse;width:100%;margin:.5em 0}
.ledger table td{font-variant-numeric:tabular-nums}
.ledger table th,.ledger table td{text-align:left;vertical-align:top;padding:.5em .6em;border-bottom:1px solid rgba(128,128,128,.35);overflow-wrap:anywhere}
.ledger table th{font-weight:600;white-space:nowrap}
.ledger q{quotes:"「" "」"}
.ledger small{opacity:.85}
.ledger .v{display:inline-block;white-space:nowrap;font-weight:600;padding:0 .6em;border:1px solid currentColor;border-radius:1em}
.ledger caption{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.ledger form{display:flex;flex-wrap:wrap;gap:.6em 1em;margin:.6em 0}
.ledger select,.ledger input{font:inherit;color:inherit;background:transparent;border:1px solid rgba(128,128,128,.7);border-radius:.3em;padding:.2em .4em}
.ledger option{color:#111;background:#fff}
.ledger [hidden]{display:none!important}
html[data-theme=dark] .bd-content div.cell_output .text_html:has(.ledger){background:transparent!important;color:inherit!important;padding:0}
.ledger .records td:nth-child(2){min-width:10em}
.ledger .records td:nth-child(3),.ledger .records td:nth-child(4){min-width:6.5em}
.ledger .records td:last-child{min-width:14em}
.ledger table.pairs td:nth-child(-n+2){min-width:11em}
.ledger table:not(.records) td:first-child{white-space:nowrap}
.ledger .records td{white-space:pre-line}
@media(max-width:44rem){
.ledger .records thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.ledger .records,.ledger .records tbody,.ledger .records tr,.ledger .records td{display:block;width:auto}
.ledger .records tr{border-bottom:2px solid rgba(128,128,128,.5);padding:.5em 0}
.ledger table.records td{border:0;padding:.2em 0;min-width:0}
.ledger .records td[data-label]::before{content:attr(data-label) "：";font-weight:600}
}
"""
_STYLE += "".join(f".ledger .v-{verdict}{{background:rgba({hue},.18)}}\n" for verdict, hue in _HUES.items())

_SCRIPT = """
(() => {
  const box = document.currentScript.closest('.ledger');
  const form = box.querySelector('form'), rows = [...box.querySelectorAll('tbody tr')], said = box.querySelector('output');
  const texts = rows.map(row => row.textContent.toLowerCase());
  const apply = () => {
    const want = Object.fromEntries(new FormData(form));
    let shown = 0;
    rows.forEach((row, i) => {
      const match = ['verdict', 'chapter', 'doc'].every(key => !want[key] || row.dataset[key] === want[key])
        && want.text.toLowerCase().split(/\\s+/).every(word => texts[i].includes(word));
      row.hidden = !match;
      shown += match;
    });
    said.textContent = `显示 ${shown} / ${rows.length} 条`;
  };
  form.addEventListener('input', apply);
  form.addEventListener('submit', event => event.preventDefault());
  apply();
})();
"""


class Rows(tuple):
    """Rows of the ledger that show themselves: HTML where the front end takes it, plain text elsewhere."""

    caption = "核验账本"
    filters = False

    def with_filters(self):
        """The same rows with controls to narrow them down in the page."""
        rows = Rows(self)
        rows.filters = True
        return rows

    def __repr__(self):
        return "\n".join(map(repr, self)) or "（没有记录）"

    def _repr_html_(self):
        caption = f'<caption>{self.caption}：{len(self)} 条</caption>'
        table = _frame(_COLUMNS, "".join(map(_html_row, self)), caption)
        return _box(f"{_controls(self)}{table}<script>{_SCRIPT}</script>" if self.filters else table, self.caption)


class Page(str):
    """A piece of HTML with its plain text."""

    def __new__(cls, text, markup):
        page = super().__new__(cls, text)
        page.markup = markup
        return page

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        return self.markup


def rows(chapter=None, *, verdict=None, harm=None, doc=None):
    """Rows of the ledger, of one chapter ("04") or by verdict, harm or document. The last expression of a cell shows them."""
    found = [row for row in ledger(chapter) if verdict in (None, row.verdict) and doc in (None, row.doc) and harm in (None, row.harm)]
    if chapter is not None and not found:
        raise ValueError(f"核验账本里没有第 {chapter} 章的记录；章号写成两位，如 \"04\"")
    return Rows(found)


def summary(found=None):
    """How many claims got which verdict, chapter by chapter."""
    found = ledger() if found is None else found
    chapters = sorted({row.chapter for row in found})
    counts = Counter((row.chapter, row.verdict) for row in found)
    lines = [[f"{chapter} 章", *(counts[chapter, verdict] for verdict in VERDICTS), sum(row.chapter == chapter for row in found)] for chapter in chapters]
    lines.append(["合计", *(sum(row.verdict == verdict for row in found) for verdict in VERDICTS), len(found)])
    head = ["", *(label for label, _ in VERDICTS.values()), "合计"]
    text = "\n".join("\t".join(map(str, line)) for line in [head, *lines])
    return Page(text, _box(_table(head, lines), "各章的判定数"))


def harms():
    """How many claims do which harm, worst first."""
    counts = Counter(row.harm for row in ledger())
    lines = [[words, counts[harm]] for harm, words in HARMS.items()]
    return Page("\n".join(f"{words}\t{n}" for words, n in lines), _box(_table(["害处", "论断数"], lines), "按害处的论断数"))


def legend():
    """The seven verdicts and the rule behind each."""
    text = "\n".join(map("：".join, VERDICTS.values()))
    return Page(text, _box(_table(["判定", "规则"], [[_badge(verdict), rule] for verdict, (_, rule) in VERDICTS.items()], raw=1), "判定的规则"))


def contradictions(between_documents=None):
    """Pairs of places that can't both be right, side by side; right is the side whose own claim holds."""
    pairs = sorted({tuple(sorted((row.id, other))) for row in ledger() for other in row.record.get("contradicts", ())})
    sides = [(claim(a), claim(b)) for a, b in pairs]
    if between_documents is not None:
        sides = [(a, b) for a, b in sides if (a.doc != b.doc) == between_documents]
    sides.sort(key=lambda side: (side[0].doc, side[0].line, side[1].line))
    lines = [[_side(a), _side(b), _who_is_right(a, b)] for a, b in sides]
    text = "\n".join(f"{_place(a)} {a.quote} ⟂ {_place(b)} {b.quote} → {_who_is_right(a, b)}" for a, b in sides)
    return Page(text, _box(_table(["一处", "另一处", "以谁为准"], lines, raw=2, stacks=True), "两处说法的矛盾"))


def _who_is_right(a, b):
    right = [row for row in (a, b) if row.verdict == "holds"]
    if len(right) == 1:
        wrong = b if right[0] is a else a
        return f"以 {_place(right[0])} 为准。" + wrong.correct
    return "两处都不作准。" + " ".join(dict.fromkeys(row.correct for row in (a, b) if row.correct))


def _side(row):
    return f'{_badge(row.verdict)} <small>{_place(row)}</small><br><q>{html.escape(readable(row.quote))}</q>'


def _place(row):
    return f"{row.doc} L{row.line}"


def _badge(verdict):
    return f'<span class="v v-{verdict}">{VERDICTS[verdict][0]}</span>'


def _html_row(row):
    origin = f"<q>{html.escape(readable(row.quote))}</q><br><small>{_place(row)} · {html.escape(row.section)}<br><code>{row.id}</code></small>"
    values = [html.escape(text.replace("], [", "],\n[")) for text in (show(row.claimed), shown_at(row))]  # a matrix row by row
    cells = [_badge(row.verdict), origin, *values, _remarks(row)]
    return _tr(_COLUMNS, cells, f'id="claim-{row.id}" data-verdict="{row.verdict}" data-chapter="{row.chapter}" data-doc="{row.doc}"')


def _remarks(row):
    parts = [html.escape(part) for part in (row.correct, row.note) if part]
    small = []
    if "compute" in row.record:
        given = ", ".join(f"{name}={value!r}" for name, value in row.record.get("args", {}).items())
        small.append(f"重算：{row.compute}({given})")
    if row.record.get("against"):
        small.append(f"对照：{row.against}")
    if row.record.get("missing"):
        small.append(f"缺少：{row.missing}")
    if row.reason:
        small.append(f"由人判断：{row.reason}")
    for text, source in row.sources:
        small.append(f"来源：{text}" + ("" if source.get("checked", True) else "——未独立核实"))
    return "<br>".join(parts + [f"<small>{html.escape(text)}</small>" for text in small])


def _controls(found):
    def menu(name, label, options):
        choices = '<option value="">全部</option>' + "".join(f'<option value="{value}">{text}</option>' for value, text in options)
        return f'<label>{label} <select name="{name}">{choices}</select></label>'

    present = {row.verdict for row in found}
    return ("<form>" + menu("verdict", "判定", [(v, label) for v, (label, _) in VERDICTS.items() if v in present])
            + menu("chapter", "章", [(c, c) for c in sorted({row.chapter for row in found})])
            + menu("doc", "文档", [(d, d) for d in sorted({row.doc for row in found})])
            + '<label>文字 <input type="search" name="text"></label><output aria-live="polite"></output></form>')


def _table(head, lines, raw=0, stacks=False):
    """A table; the first `raw` columns are HTML already. One with long texts stacks its cells on a phone, one of numbers scrolls."""
    cells = [[value if i < raw else html.escape(str(value)) for i, value in enumerate(line)] for line in lines]
    return _frame(head, "".join(_tr(head, line) for line in cells), stacks=stacks)


def _frame(head, body, caption="", stacks=True):
    # The roles are spelled out: on a phone the style turns rows into blocks, and browsers then forget that it is a table.
    # A corner that names nothing is no header.
    top = "".join(f'<th role="columnheader" scope="col">{html.escape(name)}</th>' if name else '<td role="cell"></td>' for name in head)
    kind = ' class="records"' if head is _COLUMNS else ' class="records pairs"' if stacks else ""
    return f'<table role="table"{kind}>{caption}<thead role="rowgroup"><tr role="row">{top}</tr></thead><tbody role="rowgroup">{body}</tbody></table>'


def _tr(head, cells, attributes=""):
    label = lambda name, cell: f' data-label="{html.escape(name)}"' if name and cell != "" else ""
    return f'<tr role="row" {attributes}>' + "".join(f'<td role="cell"{label(name, cell)}>{cell}</td>' for name, cell in zip(head, cells)) + "</tr>"


def _box(content, label):
    return f'<div class="ledger" role="group" aria-label="{html.escape(label)}" tabindex="0"><style>{_STYLE}</style>{content}</div>'


__all__ = ["Page", "Rows", "contradictions", "harms", "legend", "rows", "summary"]

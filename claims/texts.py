"""Numbers and texts of the ledger as a reader sees them."""

import math
import re

from claims.judge import UNSET

# What the quotations hold of LaTeX, and how it reads in plain text.
_LATEX = [
    (r"\\\(|\\\)", ""), (r"\\(?:operatorname|mathrm|text)\{(\w+)\}", r"\1"), (r"_\{(\w+)\}", r"_\1"), (r"\\sqrt\{(\w+)\}", r"√\1"),
    (r"\^\{\(([^{}]*)\)\}", r"^(\1)"), (r"\^\{(-\\infty)\}", r"^\1"), (r"\^\{([^{}]*)\}", r"^(\1)"), (r"\s*\\times\s*", "×"), (r"\\in\b", "∈"),
    (r"\\mathbb R", "ℝ"), (r"\\top", "⊤"), (r"\\alpha", "α"), (r"\\approx", "≈"), (r"\\infty", "∞"), (r"\\ ", " "),
]


# Short words that records use as values, as a reader sees them.
_WORDS = {
    "OpenAI": "任职 OpenAI", "ex-OpenAI (left Nov 2024)": "2024 年 11 月已离职", "exists": "存在", "all rights reserved": "版权保留", "omitted": "从略",
    "permutation equivariant": "置换等变", "symmetric": "对称", "project then split": "先投影再切", "slice X then project": "先切 X 再投影",
    "project X (all d dims) then slice": "用全部 d 维投影 X，再切", "upper triangular": "上三角", "strictly upper triangular": "严格上三角",
    "shared-KV MQA (1 KV head, K=V, dim 512) + CSA/HCA": "共用的 MQA（1 个 KV 头，K = V，512 维）+ CSA / HCA", "F≈0 at init": "初始化时 F ≈ 0",
    "Var(F)~Var(x) unless scaled init": "F 与 x 的方差同量级，除非专门缩小初始化", "end of layer": "每层结束时", "Post-LN only": "只对 Post-LN 成立",
    "antecedent=RMSNorm": "“它”指 RMSNorm", "no renormalisation stated": "没有提重新归一化", "keep top-k, renormalise": "留下前 k 个，再归一化",
    "ambiguous": "没有说清", "batch_size": "batch_size 倍", "Xavier/Kaiming": "Xavier / Kaiming",
}


class Shown:
    """A value that formats itself element by element: `{computed:.3f}` works for numbers and for nested lists."""

    def __init__(self, value):
        self.value = value

    def __format__(self, spec):
        return show(self.value, spec)


def show(value, spec=""):
    """A value as text; `spec` is a format for the numbers in it, otherwise six significant digits and grouped integers."""
    if isinstance(value, bool):
        return "是" if value else "否"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(show(item, spec) for item in value) + "]"
    if isinstance(value, dict):
        return "；".join("：".join((key, show(item, spec))) for key, item in value.items())
    if isinstance(value, int | float):
        return format(value, spec) if spec else _number(value)
    return "—" if value is None or value is UNSET else _WORDS.get(value, str(value))


def _number(value):
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}" if abs(value) >= 10_000 else f"{int(value)}"
    if abs(value) >= 10_000:
        return f"{value:,.2f}"
    return f"{value:.6g}" if abs(value) >= 1e-4 else f"{value:.1e}"


def fill(text, record, evidence):
    """Put the measured numbers into a record's text: `{computed}`, `{other}`, and whatever the computation adds."""
    names = {key: getattr(evidence, key) for key in ("computed", "says", "rounded", "other", "narrow")}
    values = {"claimed": record["claimed"], **names, **evidence.show}
    return text.format(**{key: Shown(value) for key, value in values.items()})


def shown_at(row):
    """The recomputed value with two digits more than the document prints, so that a reader sees which way it rounds."""
    value = row.evidence.verdict_value if row.computed is None else row.computed
    tol = min(row.tol) if isinstance(row.tol, list) else row.tol
    digits = 2 - math.floor(math.log10(2 * tol)) if tol else 0
    return show(value, f".{digits}f") if 2 < digits <= 6 and _has_fraction(value) else show(value)


def _has_fraction(value):
    if isinstance(value, list):
        return any(map(_has_fraction, value))
    return isinstance(value, float) and value != int(value)


def readable(quote):
    """A quotation without its LaTeX marks."""
    for pattern, replacement in _LATEX:
        quote = re.sub(pattern, replacement, quote)
    return re.sub(r"\s*\t\s*", " ｜ ", re.sub(r" {2,}", "  ", quote)).strip()

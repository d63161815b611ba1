"""核验账本：两份文档里每个可以检查的论断，重新算一遍，按写明的规则判定。

在笔记本里::

    import claims
    claims.rows("04")          # 第 04 章的全部记录，网页里是表格
    claims.claim("b-out0")     # 一条记录：.claimed、.computed、.verdict、.correct

一条论断是 `records/NN.json` 里的一条记录：编号、文档、位置、短引文、原文值、容差，以及用哪个重算函数（`compute`）和原文给的数（`args`）。
重算函数在 `claims/compute/`，用 `lib` 里的部件；判定由 `claims/judge.py` 的规则得出，不由人填写。记录里的 `verdict` 只是留给测试对照的。
添一条：在那一章的 JSON 里写记录，缺重算函数就在 `claims/compute/` 加一个（`@computation`，有界、有种子），再跑 `pytest tests/claims`。
`correct` 与 `note` 里的数用占位符，如 `{computed:.4f}`，由重算的结果填入。
`basis` 说明依据：`computed` 重新算出；`source` 与所引来源的值对照；`judgement` 由人判断，必须写明理由。
"""

from claims.ledger import Row, claim, evaluate, ledger, load
from claims.view import Rows, contradictions, harms, legend, rows, summary

__all__ = ["Row", "Rows", "claim", "contradictions", "evaluate", "harms", "ledger", "legend", "load", "rows", "summary"]

"""The ledger on the command line.

    python -m claims                 a short table: how many claims, which verdicts, by chapter
    python -m claims --json          every record with its computed verdict, as JSON
    python -m claims --chapter 04    only one chapter (repeatable)
    python -m claims --verdict wrong only these verdicts (repeatable)
    python -m claims b-out0 …        only these claims
"""

import argparse
import json
import sys

from claims.judge import VERDICTS
from claims.ledger import claim, ledger
from claims.view import Rows, summary


def selected(options):
    if options.ids:
        rows = map(claim, options.ids)
    else:
        rows = ledger() if not options.chapter else [row for chapter in options.chapter for row in ledger(chapter)]
    return Rows(row for row in rows if not options.verdict or row.verdict in options.verdict)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m claims", description="核验账本：两份文档的每个论断、重算结果与判定")
    parser.add_argument("ids", nargs="*", metavar="编号", help="只看这些论断")
    parser.add_argument("--json", action="store_true", help="以 JSON 输出每条记录")
    parser.add_argument("--chapter", action="append", metavar="NN", help="只看这一章，可重复")
    parser.add_argument("--verdict", action="append", choices=list(VERDICTS), help="只看这种判定，可重复")
    options = parser.parse_args(argv)
    try:
        rows = selected(options)
    except KeyError as error:
        parser.error(error.args[0])
    if options.json:
        json.dump([row.as_dict() for row in rows], sys.stdout, ensure_ascii=False, indent=1, allow_nan=False)
        print()
    elif options.ids or options.chapter or options.verdict:
        print(rows)
    else:
        print(summary(rows))


if __name__ == "__main__":
    main()

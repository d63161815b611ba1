"""评分的命令：`python -m grading grade|report|export|sandbox …`，每个命令都有 --help。"""

import argparse
import sys
from pathlib import Path


def main(arguments=None):
    """Run one command; the exit status is 0 unless it could not do its work."""
    parser = argparse.ArgumentParser(prog="python -m grading", description="评分：在沙箱里运行提交，写成绩簿、成绩表和反馈。")
    commands = parser.add_subparsers(dest="command", required=True, metavar="命令")
    _grade_parser(commands.add_parser("grade", help="评一份作业的全部提交"))
    _report_parser(commands.add_parser("report", help="由成绩簿重写成绩表与反馈（人工评分之后用）"))
    _export_parser(commands.add_parser("export", help="把成绩填进平台导出的成绩表（Moodle 的评分工作表、Canvas 的成绩册）"))
    commands.add_parser("sandbox", help="看这台机器能不能用沙箱")
    options = parser.parse_args(arguments)
    from grading.assignment import AssignmentError
    from grading.batch import Busy
    from grading.export import WorksheetError
    from grading.intake import IntakeError
    from grading.sandbox import SandboxUnavailable
    from grading.worker import DifferentCode

    try:
        return {"grade": _grade, "report": _report, "export": _export, "sandbox": _sandbox}[options.command](options)
    except (AssignmentError, Busy, DifferentCode, IntakeError, SandboxUnavailable, WorksheetError) as problem:
        print(problem, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("已中断。再运行同一条命令会从这里继续。", file=sys.stderr)
        return 130


def _grade_parser(parser):
    parser.add_argument("assignment", help="作业名，例如 ex04-attention")
    parser.add_argument("--submissions", required=True, type=Path, help="文件夹（STUDENT/作业名/*.ipynb 等）或 zip 导出")
    parser.add_argument("--out", required=True, type=Path, help="成绩、反馈和成绩簿写在这里")
    parser.add_argument("--workers", type=int, help="同时评几份（默认：处理器的核数）")
    parser.add_argument("--scheduler", help="Dask 调度器的地址（tcp://…），或 local 表示本机的 Dask 集群")
    parser.add_argument("--db-url", help="成绩簿的地址，例如 postgresql+psycopg2://user@host/db（默认：OUT/gradebook.db）")
    parser.add_argument("--again", action="store_true", help="没有变化的提交也重新评")
    parser.add_argument("--json", action="store_true", help="在标准输出写 JSON，代替表格")
    parser.add_argument("--solutions", type=Path, help="作业源所在的文件夹（默认：solutions）")
    parser.add_argument("--quiet", action="store_true", help="不显示进度条")


def _grade(options):
    from grading import batch, report
    from grading.assignment import SOLUTIONS
    from grading.checks import PUBLISHED_SEED, course_seed

    summary = batch.grade(
        options.assignment, options.submissions, options.out, solutions=options.solutions or SOLUTIONS,
        workers=options.workers, scheduler=options.scheduler, db_url=options.db_url, again=options.again,
        progress=not options.quiet)
    rows = [row for row in summary.rows if row["assignment"] == options.assignment]
    if options.json:
        print(batch.as_json(rows))
        return 0
    print(report.summary_table(rows, options.assignment))
    print(f"\n评了 {len(summary.graded)} 份，{len(summary.unchanged)} 份没有变化，用时 {summary.seconds:.1f} 秒。")
    if course_seed() == PUBLISHED_SEED:
        print("注意：隐藏测试的输入来自仓库里公开的种子。正式评分前请换成自己的：head -c 16 /dev/urandom | base64 > .grading-seed")
    for row in report.suspicious(rows):
        print(f"可疑：{row['student']}：{'；'.join(row['reasons'])}")
    print(f"成绩表 {options.out / 'grades.csv'}，反馈 {options.out / 'feedback'}/，报告 {options.out / 'report.html'}")
    return 0


def _report_parser(parser):
    parser.add_argument("--out", required=True, type=Path, help="评分时的 --out")
    parser.add_argument("--db-url", help="评分时的 --db-url")
    parser.add_argument("--solutions", type=Path, help="作业源所在的文件夹（默认：solutions）")


def _report(options):
    from grading import batch
    from grading.assignment import SOLUTIONS
    from grading.gradebook import GradeStore, sqlite_url

    with GradeStore(options.db_url or sqlite_url(options.out / "gradebook.db")) as store:
        rows = batch.write_reports(store, options.out, {}, options.solutions or SOLUTIONS)
    print(f"由成绩簿写了 {len(rows)} 份成绩：{options.out / 'grades.csv'}，{options.out / 'feedback'}/")
    return 0


def _export_parser(parser):
    parser.add_argument("assignment", help="作业名")
    parser.add_argument("worksheet", type=Path, help="平台导出的 CSV；不会被改动")
    parser.add_argument("--out", required=True, type=Path, help="评分时的 --out；填好的表也写在这里")
    parser.add_argument("--db-url", help="评分时的 --db-url")
    parser.add_argument("--column", help="填哪一列（默认：Grade、成绩，或以作业名开头的一列）")
    parser.add_argument("--out-of", type=float, help="平台上的满分；给出时按比例换算")


def _export(options):
    from grading import export
    from grading.batch import write_if_changed
    from grading.gradebook import GradeStore, sqlite_url

    with GradeStore(options.db_url or sqlite_url(options.out / "gradebook.db")) as store:
        rows = store.results(options.assignment)
    filled = export.fill(options.worksheet.read_bytes(), rows, options.assignment, options.column, options.out_of)
    path = options.out / f"{options.worksheet.stem}-{options.assignment}.csv"
    write_if_changed(path, filled.text)
    print(f"填了 {filled.count} 行：{path}（学生按“{filled.by}”一列对应，分数在“{filled.column}”一列）")
    for words, names in (("表里没有这些学生的一行", filled.strangers), ("这些行没有交作业，没有填", filled.absent)):
        if names:
            print(f"{words}：{'、'.join(names)}")
    if any(row["pending"] for row in rows):
        print("注意：还有题目等人工评分，它们现在记 0 分。")
    return 0


def _sandbox(options):
    from grading.sandbox import require_sandbox

    require_sandbox()
    print("沙箱可用。")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m benchmarks                      every job; writes chapters/stored/performance.json, which the book shows
python -m benchmarks forward encoding      only these; prints, and updates them in the results
python -m benchmarks --list                the jobs
    --rounds N    turns of each contestant (default 9)
    --no-save     leave the stored results alone
"""
import os

# Before NumPy and PyTorch are imported: one thread each, in every library.
for _name in ("OPENBLAS", "OMP", "MKL", "RAYON", "VECLIB_MAXIMUM"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from dataclasses import asdict  # noqa: E402
from pathlib import Path  # noqa: E402

RESULTS = Path(__file__).resolve().parents[1] / "chapters" / "stored" / "performance.json"  # where the book finds it


def main(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args(argv)
    try:
        import torch
    except ImportError:
        sys.exit("没有同类实现可比：请先运行 make peers")
    torch.set_num_threads(1)
    from benchmarks import machine
    from benchmarks.jobs import JOBS
    if unknown := set(options.jobs) - JOBS.keys():
        sys.exit(f"没有这些项目：{'、'.join(sorted(unknown))}；有 {'、'.join(JOBS)}")
    if options.list:
        for name, job in JOBS.items():
            print(f"{name:14s} {job.__doc__}")
        return
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"jobs": {}}
    about = machine.describe()
    print(f"{about['cpu']}，每方一个线程；{'；'.join(about['blas'])}\n")
    for name in options.jobs or JOBS:
        rows, curves = JOBS[name](options.rounds)
        for row in rows:
            print(line(row), flush=True)
        job = {"rows": [rounded(asdict(row) | {"reached": row.reached}) for row in rows], "curves": rounded(curves), "machine": machine.describe()}
        results["jobs"][name] = job
        if not options.no_save:
            RESULTS.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    missed = [row["name"] for job in results["jobs"].values() for row in job["rows"] if row["reached"] is False]
    print(f"\n没有达到目标的 {len(missed)} 项" + "".join(f"\n  {name}" for name in missed) if missed else "\n全部达到目标")


def line(row):
    goal = "" if row.target is None else f"  目标 {'≥' if row.least else '≤'} {row.target:g}  {'达到' if row.reached else '未达到'}"
    spread = f"（四分位 {row.quartiles[0]:.2f}–{row.quartiles[1]:.2f}）" if row.quartiles else ""
    return f"{row.name}  {row.value:.3g}{spread}{goal}"


def rounded(value):
    """Four significant digits: more would only be noise."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main(sys.argv[1:])

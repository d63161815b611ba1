"""并排测量：同样的 40 份提交，普通的 `nbgrader autograde`（默认设置，一次评全班，串行）与本评分器（一个与两个进程，隔离全开）。

    python -m grading.benchmark [--assignment ex04-attention] [--count 40]

Wall time, processor time and peak memory are those of a control group that holds every process of a run, so nothing that a run
starts escapes the measure. That needs root; without it processor time is sampled, and the output says so.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil

from grading.assignment import SOLUTIONS, Assignment, grade_id, is_answer
from grading.rebuild import released_text

KINDS = ("全对", "一题未答", "一题出错", "一题算错")


@dataclass
class Measure:
    """What one run took."""

    wall: float
    cpu: float
    memory: int
    exact: bool


class ControlGroup:
    """A control group of either version around one command; falls back to sampling."""

    def __init__(self):
        top, name = Path("/sys/fs/cgroup"), f"grading-benchmark-{os.getpid()}-{time.monotonic_ns()}"
        self.folders = {}
        with contextlib.suppress(OSError):
            if (top / "cgroup.controllers").exists():
                (top / name).mkdir()
                self.folders = {"cpu": top / name, "memory": top / name}
            else:
                for controller, key in (("cpuacct", "cpu"), ("memory", "memory")):
                    (top / controller / name).mkdir()
                    self.folders[key] = top / controller / name

    def run(self, command, **how):
        """Run to the end and measure."""
        began = time.monotonic()
        process = subprocess.Popen(command, preexec_fn=self._enter, **how)
        sampler = _Sampler(process.pid) if "cpu" not in self.folders else None
        _, errors = process.communicate()
        wall = time.monotonic() - began
        if process.returncode != 0:
            raise RuntimeError(f"{command[:5]} 失败：{(errors or b'')[-2000:].decode(errors='replace')}")
        if sampler:
            return Measure(wall, *sampler.stop(), False)
        return Measure(wall, self._cpu(), self._memory(), True)

    def _enter(self):
        for folder in set(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def _cpu(self):
        folder = self.folders["cpu"]
        if (folder / "cpuacct.usage").exists():
            return int((folder / "cpuacct.usage").read_text()) / 1e9
        return int((folder / "cpu.stat").read_text().split()[1]) / 1e6

    def _memory(self):
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            with contextlib.suppress(OSError, KeyError):
                return int((self.folders["memory"] / name).read_text())
        return 0

    def close(self):
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()


class _Sampler:
    """Looks at all descendants often and adds up what each had used when last seen."""

    def __init__(self, pid):
        self.root, self.used, self.peak, self.ended = psutil.Process(pid), {}, 0, threading.Event()
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    def _loop(self):
        while not self.ended.wait(0.02):
            memory = 0
            with contextlib.suppress(psutil.Error):
                for process in [self.root, *self.root.children(recursive=True)]:
                    with contextlib.suppress(psutil.Error):
                        times = process.cpu_times()
                        self.used[process.pid] = times.user + times.system
                        memory += process.memory_info().rss
            self.peak = max(self.peak, memory)

    def stop(self):
        self.ended.set()
        self.thread.join()
        return sum(self.used.values()), self.peak


def hand_in(assignment, place, count):
    """The class: four kinds of work in turn, {student: kind}."""
    kinds = {}
    for number in range(count):
        student, kind = f"student{number:03d}", KINDS[number % len(KINDS)]
        kinds[student] = kind
        notebook = _work(assignment, kind, number // len(KINDS))
        (place / student / assignment.name).mkdir(parents=True)
        nbformat.write(notebook, place / student / assignment.name / f"{assignment.name}.ipynb")
    return kinds


def _work(assignment, kind, number):
    """The reference as handed in, with one of its functions spoilt."""
    notebook = nbformat.from_dict(assignment.source)
    stubs = {grade_id(c): c.source for c in assignment.pristine.cells if is_answer(c)}
    answers = [c for c in notebook.cells if is_answer(c) and c.cell_type == "code"]
    chosen = answers[number % len(answers)]
    for cell in notebook.cells:
        cell.source = "\n".join(line for line in released_text(cell).splitlines() if "### " not in line)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    if kind == "一题未答":
        chosen.source = stubs[grade_id(chosen)]
    elif kind != "全对":
        name = chosen.source.split("def ")[1].split("(")[0] if "def " in chosen.source else None
        wrong = "raise ValueError('错了')" if kind == "一题出错" else "return args[0] * 0.5"
        chosen.source += f"\n\ndef {name}(*args, **kwargs):\n    {wrong}" if name else ""
    return notebook


def plain(folder, assignment):
    """A course of plain nbgrader with its defaults: release made ahead, the class graded in one call."""
    root = folder / "plain"
    (root / "source").mkdir(parents=True)
    shutil.copytree(assignment.folder, root / "source" / assignment.name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copytree(folder / "submitted", root / "submitted")
    (root / "nbgrader_config.py").write_text('c = get_config()\nc.CourseDirectory.course_id = "bench"\n')
    command = [sys.executable, "-m", "nbgrader"]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUTF8": "1"}
    subprocess.run([*command, "generate_assignment", assignment.name], cwd=root, env=environment, check=True, capture_output=True)
    return [*command, "autograde", assignment.name], {"cwd": root, "env": environment}


def ours(folder, assignment, workers):
    out = folder / f"ours{workers}"
    return [sys.executable, "-m", "grading", "grade", assignment.name, "--submissions", str(folder / "submitted"), "--out", str(out),
            "--solutions", str(assignment.folder.parent), "--workers", str(workers), "--quiet"], {}


def scores(db, course):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{db}", course) as book:
        return {s.student.id: round(s.score, 6) for a in book.assignments for s in a.submissions}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assignment", default="ex04-attention")
    parser.add_argument("--solutions", type=Path, default=SOLUTIONS)
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    assignment = Assignment.load(options.assignment, options.solutions)
    with tempfile.TemporaryDirectory(prefix="grading-benchmark-") as scratch:
        folder = Path(scratch)
        hand_in(assignment, folder / "submitted", options.count)
        runs = {"nbgrader autograde": plain(folder, assignment), "本评分器，1 个进程": ours(folder, assignment, 1),
                "本评分器，2 个进程": ours(folder, assignment, 2)}
        print(f"{assignment.name}，{options.count} 份提交，{os.cpu_count()} 个处理器，负载 {os.getloadavg()[0]:.1f}")
        measured = {}
        for name, (command, how) in runs.items():
            group = ControlGroup()
            measured[name] = group.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)
            group.close()
            show(name, measured[name], options.count)
        same = scores(folder / "plain" / "gradebook.db", "bench") == scores(folder / "ours1" / "gradebook.db", "token-journey") \
            == scores(folder / "ours2" / "gradebook.db", "token-journey")
    first, _, last = measured.values()
    print(f"两个进程的吞吐量是普通 nbgrader 的 {first.wall / last.wall:.1f} 倍（目标 4），每份的处理器时间是它的 {last.cpu / first.cpu:.2f}（目标 0.5）")
    print("三次的分数" + ("完全相同" if same else "不同"))
    if not first.exact:
        print("处理器时间是抽样得来的（精确测量需要 root）")
    return 0 if same else 1


def show(name, measure, count):
    print(f"  {name:<20} {measure.wall:7.1f} 秒  {60 * count / measure.wall:6.1f} 份/分  "
          f"{measure.cpu / count:5.2f} 处理器秒/份  峰值 {measure.memory / 2**20:5.0f} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())

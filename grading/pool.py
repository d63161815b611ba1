"""本机的评分进程：每个进程一条管道，一次一份提交；死了就换，超时就结束，谁手里的那份重新排队。

concurrent.futures gives up all work when one process dies and can't end a task that takes too long; this pool must
survive both, since what runs in it handles hostile submissions.
"""

import multiprocessing
import pickle
import signal
import sys
import time
import traceback
from multiprocessing.connection import wait

TRIES = 3  # of one task before it is given up


def run(function, tasks, workers, seconds, given_up, prepare=()):
    """Yield function(task) for each task, in the order in which they are done.

    `seconds` bounds one task; `given_up(task, reason, error)` makes the result of one that took too long, or whose process
    died or failed too often. `prepare` names modules that the processes load once. Whatever ends this generator ends them.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(prepare))
    waiting, tasks = [], iter(tasks)
    crew = []

    def next_task():
        return waiting.pop() if waiting else next(((task, 1) for task in tasks), None)

    try:
        crew = [_Worker(context, function) for _ in range(workers)]
        while True:
            for worker in crew:
                if worker.task is None and (job := next_task()):
                    worker.give(job, seconds)
            busy = [worker for worker in crew if worker.task is not None]
            if not busy:
                return
            ready = wait([w.pipe for w in busy] + [w.process.sentinel for w in busy], timeout=1.0)
            for worker in busy:
                kind, value = worker.outcome(ready)
                if kind == "working":
                    continue
                (task, tries), worker.task = worker.task, None
                if kind in ("died", "too-long"):
                    worker.end(kill=True)
                    crew[crew.index(worker)] = _Worker(context, function)
                if kind == "done":
                    yield value
                elif kind != "too-long" and tries < TRIES:
                    waiting.append((task, tries + 1))
                else:
                    yield given_up(task, kind, value)
    finally:
        for worker in crew:
            worker.end()


class _Worker:
    def __init__(self, context, function):
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, function), daemon=False)
        self.process.start()
        theirs.close()
        self.task, self.deadline = None, 0.0

    def give(self, job, seconds):
        self.task, self.deadline = job, time.monotonic() + seconds
        try:
            self.pipe.send(job[0])
        except (BrokenPipeError, OSError):
            pass  # it has just died; outcome() will see it

    def outcome(self, ready):
        """("done", result), ("error", exception), or ("working" | "died" | "too-long", None)."""
        if self.pipe in ready:
            try:
                return self.pipe.recv()
            except (EOFError, OSError):
                return "died", None
        if self.process.sentinel in ready:
            return "died", None
        return "too-long" if time.monotonic() > self.deadline else "working", None

    def end(self, kill=False):
        """Let it leave if it is idle, else kill it; its sandboxes end with it."""
        self.pipe.close()
        self.process.join(0.0 if kill or self.task is not None else 2.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(pipe, function):
    if sys.platform == "linux":
        from grading.inside.confine import die_with_parent

        die_with_parent()  # the fork server, which ends with the main process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            break
        try:
            answer = ("done", function(task))
        except Exception as error:  # noqa: BLE001  the main process decides what an error means
            answer = ("error", _portable(error))
        try:
            pipe.send(answer)
        except OSError:
            break  # nobody waits for it any more


def _portable(error):
    """The error with its traceback as a note, or one in its place that can be sent."""
    error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:  # noqa: BLE001  some can't be pickled, some can't be made anew
        other = RuntimeError(f"{type(error).__name__}: {error}")
        other.add_note(error.__notes__[-1])
        return other

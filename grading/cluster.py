"""在 Dask 集群上评分：同一个函数，别的机器。

The tasks carry everything that a submission needs; the workers need a clone of this repository at the same commit, the
environment of its lock file, and bubblewrap. The gradebook stays with the process that started the run.
"""

import os
from itertools import islice

from dask.distributed import Client, LocalCluster, as_completed
from distributed.scheduler import KilledWorker

from grading import worker
from grading.sandbox import SandboxUnavailable, require_sandbox

PATIENCE = 60  # seconds to wait for a first worker
AHEAD = 3  # tasks a worker has waiting; more would only hold submissions in memory


def run(scheduler, tasks, workers, given_up):
    """Yield the result of each task as it is done. `scheduler` is an address, or "local" for a cluster of this machine."""
    if scheduler == "local":
        with LocalCluster(n_workers=workers or os.cpu_count(), threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                yield from _run(client, tasks, given_up)
    else:
        with Client(scheduler, timeout="30s") as client:
            yield from _run(client, tasks, given_up)


def _run(client, tasks, given_up):
    tasks = iter(tasks)
    first = next(tasks, None)
    if first is None:
        return
    ours = _insist_on_same_code(client, first["assignment"])
    room = max(1, AHEAD * len(client.scheduler_info(n_workers=-1)["workers"]))
    submitted = {}

    def submit(task):
        future = client.submit(_graded, task, pure=False, retries=2)
        submitted[future.key] = task
        return future

    waiting = as_completed([submit(task) for task in [first, *islice(tasks, room - 1)]])
    for future in waiting:
        task = submitted.pop(future.key)
        error = future.exception() if future.status == "error" else None
        if error is None:
            digest, result = future.result()
            if digest != ours:
                raise _different("一台后来加入的机器")
            yield result
        else:
            yield given_up(task, "died" if isinstance(error, KilledWorker) else "error", error)
        future.release()
        if (task := next(tasks, None)) is not None:
            waiting.add(submit(task))


def _graded(task):
    """What a worker does, with what it did it."""
    return worker.code_digest(task["assignment"]), worker.grade(task)


def _insist_on_same_code(client, assignment):
    """Every worker has our code, our checks and a sandbox; who joins later tells with each result. The digest of our code."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise SandboxUnavailable(f"调度器 {client.scheduler.address} 那里没有 worker：先启动 dask worker") from None
    ours = worker.code_digest(assignment)
    for address, (digest, trouble) in client.run(_state, assignment).items():
        if trouble:
            raise SandboxUnavailable(f"{address}：{trouble}")
        if digest != ours:
            raise _different(address)
    return ours


def _different(address):
    return worker.DifferentCode(f"{address} 上的代码与这里不同：请在那里更新到同一个提交，再重启它的 worker")


def _state(assignment):
    try:
        require_sandbox()
    except SandboxUnavailable as error:
        return "", str(error)
    return worker.code_digest(assignment), ""

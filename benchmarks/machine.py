"""What the numbers were measured on, and what it can do at most: a large matrix product, streaming weights."""
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import threadpoolctl

PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "tiktoken")
SIZE = 1536  # of the square product: large enough for the full rate, a tenth of a second
STREAM = (768, 3072)  # a weight matrix of GPT-2 small
MATRICES = 24  # of that shape: 226 MB, far more than any cache


def describe():
    cpu = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        cpu = re.search(r"model name\s*: (.*)", info.read_text()).group(1)
    # The path of a library names the machine's folders; what matters is which BLAS and which kernel.
    pools = [f"{pool['internal_api']} {pool.get('version')} ({pool.get('architecture', '-')}, {pool['num_threads']} 线程)"
             for pool in threadpoolctl.threadpool_info()]
    return {"cpu": cpu, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(), "packages": {name: version(name) for name in PACKAGES}, "blas": sorted(set(pools)),
            "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None}


def matrix_product():
    """(run, FLOPs): one large float32 product, the most that the processor gives."""
    a = np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32)
    out = np.empty_like(a)
    return lambda: np.matmul(a, a, out=out), 2 * SIZE**3


def weight_streaming():
    """(run, bytes): one vector through matrices that are in no cache: what generating a token has to do."""
    weights = np.full((MATRICES, *STREAM), 0.01, np.float32)  # np.zeros would be one page of zeros, read from the cache
    x, out = np.ones((1, STREAM[0]), np.float32), np.empty((1, STREAM[1]), np.float32)

    def run():
        for W in weights:
            np.matmul(x, W, out=out)

    return run, weights.nbytes

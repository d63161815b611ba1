"""训练：从一长串编号里随机取片段，算损失和梯度，用 AdamW 改参数；随时可以被打断，接着练得到同样的数。

检查点先写进旁边的新文件，写完再改名换上：在任何一刻断电，留下的都是某一步完整的检查点。
"""
import json
import math
import os
import zipfile
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from lib._checks import as_count, as_ids  # 入口检查：正整数、0…n-1 的编号；不合格就报错
from lib._tree import leaves  # 嵌套参数里的每个（路径, 数组）
from lib.functional import cross_entropy
from lib.gradients import loss_and_gradients

__all__ = ["AdamW", "random_batch", "evaluate", "warmup_cosine", "gradient_norm", "train", "save_checkpoint",
           "load_checkpoint"]


class AdamW:
    """AdamW：每个参数按自己梯度的大小调步长；权重衰减直接作用在参数上，不混进梯度。

    m、v 是梯度和梯度平方的滑动平均。它们从 0 开始，头几步偏小，所以第 t 步除以 1 - βᵗ 补回来（betas 是
    两个平均各自的 β）。lr 是学习率，eps 防止除以 0。

    来源：《Decoupled Weight Decay Regularization》算法 2；与 torch.optim.AdamW 一步相同。
    """

    def __init__(self, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        if not (lr >= 0 and eps >= 0 and weight_decay >= 0 and all(0 <= beta < 1 for beta in betas)):
            raise ValueError(f"lr、eps、weight_decay 应不小于 0，betas 应在 [0, 1) 内；收到 lr={lr}、eps={eps}、"
                             f"weight_decay={weight_decay}、betas={betas}")
        self.lr, self.betas, self.eps, self.weight_decay = lr, tuple(betas), eps, weight_decay
        self.steps = 0
        self.moments = {}  # 参数的路径 -> (m, v)

    def step(self, params, grads):
        """按梯度把 params（嵌套字典）就地改一步。grads 与它同样布局，否则 ValueError。"""
        arrays, gradients = dict(leaves(params)), dict(leaves(grads))
        if arrays.keys() != gradients.keys() or any(arrays[path].shape != gradients[path].shape for path in arrays):
            different = [p for p in sorted({*arrays, *gradients})
                         if np.shape(arrays.get(p)) != np.shape(gradients.get(p))]
            raise ValueError(f"grads 与 params 的布局不同：{different[:5]}")
        self.steps += 1
        for path, p in arrays.items():
            m, v = self.moments.setdefault(path, (np.zeros_like(p), np.zeros_like(p)))
            for rows in _blocks(p):
                self._update(p[rows], gradients[path][rows], m[rows], v[rows])

    def _update(self, p, g, m, v):
        """p 先乘以 1 - lr · weight_decay，再减去 lr · m̂ / (√v̂ + eps)；m̂ = m / (1 - β₁ᵗ)，v̂ = v / (1 - β₂ᵗ)；全部就地改。"""
        beta_1, beta_2 = self.betas
        p *= 1 - self.lr * self.weight_decay
        m *= beta_1
        m += (1 - beta_1) * g
        v *= beta_2
        v += (1 - beta_2) * (g * g)
        root = np.sqrt(v)
        root *= 1 / math.sqrt(1 - beta_2**self.steps)
        root += self.eps
        p -= self.lr / (1 - beta_1**self.steps) * m / root


def _blocks(array, size=32768):
    """把大数组按行分成小块：一块的 p、g、m、v 都留在处理器缓存里，几遍运算只读一次内存。"""
    if array.ndim == 0 or array.size <= size:
        yield ...  # 下标 [...] 就是整个数组
        return
    rows = max(1, size * len(array) // array.size)
    for start in range(0, len(array), rows):
        yield slice(start, start + rows)


def random_batch(data, batch_size, n, rng):
    """从一长串编号里随机取 batch_size 段，每段 n 个；目标是把取的窗口右移一位：位置 i 预测下一个编号。

    形状：data 整数 [m], batch_size 整数, n 整数, rng 随机数 -> ids 整数 [batch_size, n], targets 整数 [batch_size, n]（m > n）
    错误：data 不是一维、不够长（至少 n+1 个）时 ValueError。
    """
    data = np.asarray(data)
    if data.ndim != 1 or len(data) <= n:
        raise ValueError(f"data 应是一维、至少 {n + 1} 个编号（{n} 个作输入，最后一个位置的目标再要 1 个），收到形状 {data.shape}")
    starts = rng.integers(0, len(data) - n, as_count(batch_size, "batch_size"))
    places = starts[:, None] + np.arange(n)  # [batch_size, n]：每行是一段的下标
    return data[places], data[places + 1]


def evaluate(model, data, n=None, batch_size=32):
    """整串数据上的平均交叉熵：切成互不重叠的段，不更新参数。它的指数是困惑度。

    n 是段长（默认 context_length），末尾不足一段的不算。
    错误：data 不足 n+1 个时 ValueError；编号不在词表内时 IndexError。
    """
    n = model.config.context_length if n is None else as_count(n, "n")
    data = as_ids(data, "data", model.config.vocab_size)
    count = (len(data) - 1) // n
    if count < 1:
        raise ValueError(f"data 至少要有 {n + 1} 个编号，收到 {len(data)} 个")
    ids, targets = data[: count * n].reshape(count, n), data[1 : count * n + 1].reshape(count, n)
    total = 0.0
    for start in range(0, count, batch_size):
        batch = np.s_[start : start + batch_size]
        total += float(cross_entropy(model(ids[batch]), targets[batch], reduction="sum"))
    return total / ids.size


def warmup_cosine(steps, peak, warmup=0, final=0.0):
    """学习率计划：先线性升到 peak，再沿半个余弦降到 final；返回「第几步 → 学习率」的函数，给 train 的 schedule。

    steps 是总步数，warmup 是其中上升的步数；步从 0 数起。
    """
    def rate(step):
        if step < warmup:
            return peak * (step + 1) / warmup
        progress = min(1.0, (step - warmup) / max(1, steps - warmup))
        return final + (peak - final) * (1 + math.cos(math.pi * progress)) / 2
    return rate


def gradient_norm(grads):
    """全部梯度接成一个长向量，它的长度。"""
    return math.sqrt(sum(float(np.vdot(g, g)) for _, g in leaves(grads)))


def train(model, data, *, steps, batch_size, rng, optimizer=None, n=None, schedule=None, clip=1.0, validation=None,
          evaluate_every=250, checkpoint=None, checkpoint_every=250, progress=True):
    """就地训练 model，返回 {"loss": 每步的损失, "validation": [(步, 验证损失), …]}。

    data、validation 是一维的编号；n 是片段长度（默认 context_length）；schedule(步) 给出学习率；
    clip 是全部梯度接成一个向量的长度上限（None 不限）。rng 是 numpy.random.default_rng(种子)。
    给了 checkpoint（文件路径）就定期保存；文件已存在时接着它练，得到的数与一口气练完完全相同。

    错误：损失或梯度不再有限时 FloatingPointError，参数停在上一步；检查点的设置不同或文件不完整时 ValueError。
    """
    n = model.config.context_length if n is None else as_count(n, "n")
    data = as_ids(data, "data", model.config.vocab_size)
    optimizer = AdamW() if optimizer is None else optimizer
    history = {"loss": [], "validation": []}
    settings = _settings(model, data, batch_size, n)
    if checkpoint is not None and Path(checkpoint).exists():
        history = load_checkpoint(checkpoint, model, optimizer, rng, settings)
    done = len(history["loss"])
    bar = tqdm(range(done, steps), initial=done, total=steps, desc="训练", disable=not progress)
    for step in bar:
        if schedule is not None:
            optimizer.lr = schedule(step)
        ids, targets = random_batch(data, batch_size, n, rng)
        # grads 留到下一步才被换掉，占着的内存挡住了系统回收，下一步不必重新向系统要（快一到两成）
        loss, grads = loss_and_gradients(model, ids, targets)
        _clip(grads, clip, step, float(loss))
        optimizer.step(model.params, grads)
        history["loss"].append(float(loss))
        last = step + 1 == steps
        if validation is not None and (last or (step + 1) % evaluate_every == 0):
            history["validation"].append((step + 1, evaluate(model, validation, n)))
        if checkpoint is not None and (last or (step + 1) % checkpoint_every == 0):
            save_checkpoint(checkpoint, model, optimizer, rng, history, settings)
        bar.set_postfix(损失=f"{loss:.3f}", refresh=False)
    return history


def _clip(grads, clip, step, loss):
    """梯度太长就等比例缩短；不是有限的数就停下。"""
    norm = gradient_norm(grads)
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise FloatingPointError(
            f"第 {step + 1} 步的损失是 {loss}、梯度长度是 {norm}，不能再练下去；参数停在第 {step} 步。"
            "请调小学习率、加上 warmup 或 clip，再从上一个检查点继续"
        )
    if clip is not None and norm > clip:
        for _, g in leaves(grads):
            g *= clip / norm


# ---------------------------------------------------------------- 检查点


def _settings(model, data, batch_size, n):
    """接着练必须相同的东西；数据用校验和代表。"""
    checksum = zlib.crc32(np.ascontiguousarray(data, dtype=np.int64))
    return {"config": asdict(model.config), "batch_size": as_count(batch_size, "batch_size"), "n": n, "data": checksum}


def save_checkpoint(path, model, optimizer, rng, history, settings):
    """参数、优化器、随机数发生器、历史写进一个文件；先写新文件再改名。settings 是接着练时要核对的设置。"""
    path = Path(path)
    arrays = {f"params.{name}": array for name, array in leaves(model.params)}
    for name, (m, v) in optimizer.moments.items():
        arrays[f"m.{name}"], arrays[f"v.{name}"] = m, v
    state = {"settings": settings, "history": history, "rng": rng.bit_generator.state, "steps": optimizer.steps}
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "wb") as file:
        np.savez(file, state=json.dumps(state), **arrays)
        file.flush()
        os.fsync(file.fileno())  # 改名之前，内容要真的落到盘上
    os.replace(temporary, path)


def load_checkpoint(path, model, optimizer, rng, settings=None):
    """读回 save_checkpoint 写的文件，就地恢复参数、优化器和随机数发生器，返回历史。

    错误：文件不完整，或它记下的设置与 settings 不同（None 不核对）时 ValueError。
    """
    try:
        with np.load(path) as file:
            arrays = dict(file)
        state = json.loads(str(arrays.pop("state")))
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} 不是完整的检查点（{error}）；请换一个文件名，或删掉它从头练") from error
    if settings is not None and state["settings"] != settings:
        different = [name for name in settings if settings[name] != state["settings"].get(name)]
        raise ValueError(f"检查点 {path} 是用别的设置练的，不能接着练：{'、'.join(different)} 不同；请换一个文件名")
    optimizer.steps = state["steps"]
    optimizer.moments = {}
    for name, array in leaves(model.params):
        array[...] = arrays[f"params.{name}"]
        optimizer.moments[name] = (arrays[f"m.{name}"], arrays[f"v.{name}"])
    rng.bit_generator.state = state["rng"]
    return {"loss": state["history"]["loss"], "validation": [tuple(pair) for pair in state["history"]["validation"]]}

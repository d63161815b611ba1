"""Generation: the loop, temperature, top-k, top-p, and greedy repetition."""

from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.functional import softmax
from lib.generation import generate
from lib.sampling import apply_temperature, greedy, sample, top_k_filter, top_p_filter

CONTINUES = {"中国": "的", "的": "首都", "首都": "是", "是": "北京", "北京": "。", "。": "EOS"}
WORDS = ["中国", "的", "首都", "是", "北京", "。", "EOS"]


def _table_model(follow):
    """A model whose next word is written in a table, with the interface that `generate` asks for."""
    def model(ids, cache=None, last_only=True):
        return np.where(np.arange(len(WORDS)) == WORDS.index(follow[WORDS[ids[-1]]]), 9.0, 0.0)[None]

    model.config = SimpleNamespace(context_length=32, vocab_size=len(WORDS))
    return model


@computation
def generation_loop(prompt):
    """Append what was drawn and ask again, until the end mark."""
    ids = [WORDS.index(word) for word in prompt]
    out = generate(_table_model(CONTINUES), ids, 10, temperature=0, stop_ids=[WORDS.index("EOS")], use_cache=False)
    return "→".join(WORDS[i] for i in out[len(ids):])


@computation
def greedy_repeats(text, steps):
    """Characters by their most frequent successor: greedy choice runs in a circle, drawing does not."""
    following = defaultdict(Counter)
    for a, b in zip(text, text[1:] + text[0]):
        following[a][b] += 1
    chars = sorted(set(text))
    logits = {a: np.log([following[a][b] + 1e-9 for b in chars]) for a in chars}
    rng = np.random.default_rng(0)

    def write(choose):
        out = [text[0]]
        while len(out) < steps:
            out.append(chars[int(choose(logits[out[-1]]))])
        return "".join(out)

    def period(written):
        tail = written[steps // 2:]
        return next((p for p in range(1, len(tail) // 2) if tail[p:] == tail[:-p]), 0)

    circle = period(write(greedy))
    drawn = period(write(lambda row: sample(row, rng)))
    return Evidence(bool(circle and not drawn), show={"circle": circle})


@computation
def temperature_formula():
    rng = np.random.default_rng(0)
    z = rng.normal(size=9)
    return "softmax(z/T)" if all(np.allclose(softmax(apply_temperature(z, T)), softmax(z / T)) for T in (0.3, 1.0, 2.5)) else "其他"


@computation
def zero_temperature(logits):
    """z / 0 is undefined; towards zero the largest takes all, and equal largest ones share."""
    z = np.array(logits, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        divided = z / 0
    undefined = not np.isfinite(divided).all()
    near = softmax(apply_temperature(z, 1e-6))
    tie = softmax(apply_temperature(np.array([2.0, 2.0, 0.0]), 1e-6))
    limit = undefined and np.allclose(tie, [0.5, 0.5, 0])
    greedy_in_the_limit = near.argmax() == z.argmax() and near.max() > 1 - 1e-9
    return Evidence("T→0⁺ 的极限；T=0 除零" if limit else "T=0", narrow="T=0" if greedy_in_the_limit else UNSET)


@computation
def high_temperature(logits, T):
    """How even is the distribution at this temperature, and at a very large one?"""
    z = np.array(logits, float)
    p, far = softmax(apply_temperature(z, T)), softmax(apply_temperature(z, 1000.0))
    claim = "近乎均匀"
    return Evidence(p, says=claim if p.max() < 1.5 / len(z) else "仍然集中", narrow=claim if far.max() < 1.1 / len(z) else UNSET)


@computation
def entropy_rises(logits):
    """The entropy over rising temperatures."""
    z = np.array(logits, float)
    rows = [softmax(apply_temperature(z, T)) for T in np.linspace(0.1, 5, 50)]
    entropy = [float(-(p * np.log(np.maximum(p, 1e-300))).sum()) for p in rows]
    return bool((np.diff(entropy) > 0).all())


@computation
def top_k_needs_renormalizing(logits, k):
    """Setting the rest to zero leaves less than one; the filtered logits through softmax give one, with the odds kept."""
    z = np.array(logits, float)
    p, kept = softmax(z), softmax(top_k_filter(z, k))
    cut = np.where(kept > 0, p, 0)
    odds = np.allclose(cut / cut.sum(), kept)
    return Evidence("keep top-k, renormalise" if cut.sum() < 1 - 1e-9 and odds else "no renormalisation stated",
                    narrow="no renormalisation stated" if odds else UNSET, show={"left": float(cut.sum())})


@computation
def top_p_reading(logits, p):
    """"Until p is reached": leaving out the token that crosses p can leave nothing; keeping it is the published rule."""
    z = np.array(logits, float)
    probabilities = np.sort(softmax(z))[::-1]
    without = int((probabilities.cumsum() <= p).sum())
    with_it = int(np.isfinite(top_p_filter(z, p)).sum())
    rule = "最小前缀集合使累计概率 ≥ p（含跨过 p 的那个），再归一化"
    differ = without != with_it  # so the sentence must say which of the two it means
    return Evidence(rule if without == 0 < with_it else "ambiguous", says="要含跨过 p 的那个" if differ else "ambiguous",
                    narrow="ambiguous" if with_it >= 1 else UNSET, show={"without": without, "with_it": with_it, "largest": probabilities[0]})

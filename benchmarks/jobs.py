"""The jobs: each prepares its contestants, lets them take turns and returns rows for the report (and curves to plot)."""
import math
import tempfile
import time
from dataclasses import replace

import numpy as np

from benchmarks import corpora, machine, plain_gpt2, textbook_bpe
from benchmarks.measure import Row, take_turns
from lib.accounting import count_parameters, forward_flops
from lib.generation import KVCache
from lib.gradients import loss_and_gradients
from lib.model import GPT, PRESETS, Config
from lib.tokenizer import GPT2_PATTERN, ByteBPE
from lib.training import AdamW, _clip, evaluate, train, warmup_cosine

# ---------------------------------------------------------------- GPT-2 small


def gpt2_pair():
    """(ours, transformers eager, transformers sdpa) with the same random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils import logging
    logging.disable_progress_bar()
    import torch
    torch.manual_seed(0)
    eager = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).eval()
    with tempfile.TemporaryDirectory() as folder:
        eager.save_pretrained(folder)
        ours = GPT.from_pretrained(folder)
        sdpa = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="sdpa").eval()
    return ours, eager, sdpa


def forward(rounds):
    """Logits of every position of one sequence."""
    import torch
    ours, eager, sdpa = gpt2_pair()
    plain = plain_gpt2.weights(ours)
    product, product_flops = machine.matrix_product()
    targets = {64: (0.70, 0.75), 256: (0.75, 0.80), 1024: (0.70, 0.95)}
    rows = []
    for n, (against_eager, against_sdpa) in targets.items():
        ids = np.random.default_rng(n).integers(0, ours.config.vocab_size, n)
        tensor = torch.tensor(ids[None])
        run = lambda model: lambda: model(tensor, use_cache=False).logits
        contestants = {"lib": lambda: ours(ids), "transformers eager": run(eager), "transformers sdpa": run(sdpa),
                       "朴素 NumPy": lambda: plain_gpt2.forward(ids, plain, ours.config.n_heads), "sgemm": product}
        with torch.inference_mode():
            expected = contestants["transformers eager"]()[0].numpy()
            for name in ("lib", "朴素 NumPy"):
                assert np.abs(contestants[name]() - expected).max() < 1e-3, f"{name} gives other logits"
            times = take_turns(contestants, rounds)
        rows += [times.ratio("lib", "transformers eager", against_eager, f"前向 {n} 词元：lib ÷ transformers eager"),
                 times.ratio("lib", "transformers sdpa", against_sdpa, f"前向 {n} 词元：lib ÷ transformers sdpa"),
                 times.ratio("lib", "朴素 NumPy", 1.0, f"前向 {n} 词元：lib ÷ 朴素 NumPy"),
                 times.share({"lib": forward_flops(PRESETS["gpt2"], n), "sgemm": product_flops}, "lib", "sgemm",
                             0.70 if n == 256 else None, f"前向 {n} 词元：占同轮 sgemm 速率")]
    return rows, {}


def decode(rounds, steps=8):
    """One token after another with a KV cache, after 64 and after 900 tokens."""
    import torch
    ours, eager, _ = gpt2_pair()
    stream, stream_bytes = machine.weight_streaming()
    # Every weight is read once a token, except of wpe, of which it is one row.
    read_bytes = 4 * (count_parameters(ours.config) - ours.config.context_length * ours.config.d_model)
    ids = np.random.default_rng(0).integers(0, ours.config.vocab_size, 1000)
    contestants = {"带宽": stream}
    for n in (64, 900):
        cache = KVCache(ours.config, dtype=ours.dtype)
        ours(ids[:n], cache=cache)
        contestants[f"lib {n}"] = (lambda cache=cache, n=n: cache.truncate(n),
                                   lambda cache=cache, n=n: [ours(ids[i : i + 1], cache=cache) for i in range(n, n + steps)])
        with torch.inference_mode():
            past = eager(torch.tensor(ids[None, :n]), use_cache=True).cache
        contestants[f"transformers {n}"] = (lambda past=past, n=n: past.get_seq_length() > n and past.crop(n - past.get_seq_length()),
                                            lambda past=past, n=n: [eager(torch.tensor(ids[None, i : i + 1]), cache=past,
                                                                          use_cache=True) for i in range(n, n + steps)])
    with torch.inference_mode():
        for n in (64, 900):
            a, b = (contestants[f"{name} {n}"] for name in ("lib", "transformers"))
            assert np.abs(a[1]()[-1][0] - b[1]()[-1].logits[0, 0].numpy()).max() < 1e-3, "other logits"
        times = take_turns(contestants, rounds)
    rows = [times.ratio(f"lib {n}", f"transformers {n}", 0.65, f"缓存生成，已有 {n} 个：lib ÷ transformers") for n in (64, 900)]
    rows.append(times.ratio("lib 900", "lib 64", 1.2, "缓存生成：900 个时每词元 ÷ 64 个时"))
    rows.append(times.share({"lib 64": steps * read_bytes, "带宽": stream_bytes}, "lib 64", "带宽", 0.80, "缓存生成：占同轮权重流带宽"))
    return rows, {}


def cache_curve(rounds):
    """Our own cost of the next token, with and without a cache, over the length."""
    ours = GPT(PRESETS["gpt2"])
    ids = np.random.default_rng(0).integers(0, ours.config.vocab_size, 1000)
    lengths = [16, 32, 64, 128, 256, 512, 900]
    curve = {"length": lengths, "cached": [], "uncached": []}
    for n in lengths:
        cache = KVCache(ours.config, dtype=ours.dtype)
        ours(ids[:n], cache=cache)
        times = take_turns({"cached": (lambda: cache.truncate(n), lambda: ours(ids[n : n + 1], cache=cache)),
                            "uncached": lambda: ours(ids[: n + 1], last_only=True)}, max(3, rounds // 2))
        for name in ("cached", "uncached"):
            curve[name].append(times.median(name))
    at = lengths.index(64)
    saved = curve["uncached"][at] / curve["cached"][at]
    return [Row(f"{lengths[at]} 个词元时：无缓存 ÷ 有缓存（自己比自己）", saved, None)], {"cache": curve}


# ---------------------------------------------------------------- attention


def attention(rounds, batch=8, n=256, d=384, heads=6):
    """Causal multi-head attention with its four projections: against scaled_dot_product_attention inside the same projections."""
    import torch
    import torch.nn.functional as F

    from lib.attention import multi_head_attention
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, n, d), np.float32)
    whole = rng.standard_normal((d, 3 * d), np.float32) * d**-0.5  # side by side on both sides, as their models keep them
    params = dict(zip(("W_Q", "W_K", "W_V"), np.split(whole, 3, axis=1))) | {"W_O": rng.standard_normal((d, d), np.float32) * d**-0.5}
    fused = torch.tensor(whole.T.copy())
    out, t = torch.tensor(params["W_O"].T.copy()), torch.tensor(x)

    def sdpa():
        q, k, v = (part.view(batch, n, heads, d // heads).transpose(1, 2) for part in F.linear(t, fused).split(d, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.linear(y.transpose(1, 2).reshape(batch, n, d), out)

    ours = lambda: multi_head_attention(x, params, heads, is_causal=True, need_weights=False)[0]
    with torch.inference_mode():
        assert np.abs(ours() - sdpa().numpy()).max() < 1e-4
        times = take_turns({"lib": ours, "torch sdpa": sdpa}, 3 * rounds)
    return [times.ratio("lib", "torch sdpa", 1.0, f"因果多头注意力 {batch}×{n}×{d}，{heads} 头：lib ÷ torch sdpa")], {}


# ---------------------------------------------------------------- training

SMALL, SMALL_BATCH = Config(vocab_size=65, context_length=64, d_model=128, n_layers=4, n_heads=4), 12
LARGE, LARGE_BATCH = Config(vocab_size=65, context_length=128, d_model=192, n_layers=6, n_heads=6), 16


def training(rounds):
    """One step: loss, gradients, clipping to length 1, AdamW."""
    from benchmarks.torch_gpt import CharGPT
    product, product_flops = machine.matrix_product()
    rows = []
    for size, config, batch, target in (("小", SMALL, SMALL_BATCH, 0.95), ("大", LARGE, LARGE_BATCH, 1.0)):
        n = config.context_length
        name = f"{size}（{config.n_layers} 层，{config.d_model} 维，块 {n}，批 {batch}）"
        ids, targets = np.random.default_rng(0).integers(0, config.vocab_size, (2, batch, n))
        ours, optimizer = GPT(config), AdamW()
        theirs = CharGPT(config)
        theirs.copy_from(ours.params)
        step, kept = theirs.stepper(ids, targets), {}

        def run(ours=ours, optimizer=optimizer, ids=ids, targets=targets, kept=kept):
            # As lib.training.train does: the gradients live until the next ones are there.
            loss, kept["grads"] = loss_and_gradients(ours, ids, targets)
            _clip(kept["grads"], 1.0, optimizer.steps, float(loss))
            optimizer.step(ours.params, kept["grads"])
            return float(loss)

        for _ in range(5):
            assert abs(run() - step()) < 1e-4, "the two loss curves part"
        times = take_turns({"lib": run, "torch": step, "sgemm": product}, rounds)
        flops = 3 * batch * forward_flops(config, n)
        rows += [times.ratio("lib", "torch", target, f"训练一步，{name}：lib ÷ PyTorch eager"),
                 times.share({"lib": flops, "sgemm": product_flops}, "lib", "sgemm", None, f"训练一步，{name}：占同轮 sgemm 速率")]
    return rows, {}


def char_gpt(rounds, steps=2000):
    """2,000 steps on Shakespeare's characters: the loss on the held-out last tenth, and the CPU time."""
    text = corpora.load()["english-1MB"]
    characters = sorted(set(text))
    ids = np.array([characters.index(c) for c in characters])[np.searchsorted(characters, list(text))]
    cut = len(ids) * 9 // 10
    model = GPT(replace(SMALL, vocab_size=len(characters)), rng=np.random.default_rng(1337))
    start = time.process_time()
    history = train(model, ids[:cut], steps=steps, batch_size=SMALL_BATCH, rng=np.random.default_rng(1337), optimizer=AdamW(1e-3, (0.9, 0.99), weight_decay=0.1),
                    schedule=warmup_cosine(steps, 3e-3, 100, 1e-4), progress=False)
    seconds = time.process_time() - start
    loss = evaluate(model, ids[cut:])
    ends = range(25, steps + 1, 25)
    curve = {"step": list(ends), "loss": [float(np.mean(history["loss"][i - 25 : i])) for i in ends]}
    return [Row(f"莎士比亚字符模型，{steps} 步：验证损失", loss, 1.95, note=f"{len(characters)} 种字符，留出最后十分之一"),
            Row(f"莎士比亚字符模型，{steps} 步：CPU 分钟", seconds / 60, 5.0)], {"char_gpt": curve}


# ---------------------------------------------------------------- tokenizers


def bpe_training(rounds):
    """Learn 5,000 entries from text in memory."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    texts = corpora.load()
    rows = []
    for name, file, target, turns in (("英文 10 MB", "english-10MB", 0.8, max(3, rounds // 3)), ("英文 1 MB", "english-1MB", 1.1, rounds),
                                      ("中文 1 MB", "chinese-1MB", 1.5, rounds)):
        def theirs(text=texts[file]):
            tokenizer = Tokenizer(models.BPE())
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            alphabet = pre_tokenizers.ByteLevel.alphabet()
            tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=5000, initial_alphabet=alphabet, show_progress=False))

        times = take_turns({"lib": lambda text=texts[file]: ByteBPE.train(text, 5000), "tokenizers": theirs}, turns, warm_up=0)
        rows.append(times.ratio("lib", "tokenizers", target, f"BPE 训练 {name}，5,000 项：lib ÷ tokenizers（Rust）"))
    sample = texts["english-1MB"][:100_000]
    assert ByteBPE.train(sample[:20_000], 280).merges == textbook_bpe.in_bytes(textbook_bpe.train(sample[:20_000], 280, GPT2_PATTERN))
    times = take_turns({"lib": lambda: ByteBPE.train(sample, 300), "每次重数": lambda: textbook_bpe.train(sample, 300, GPT2_PATTERN)}, 3, warm_up=0)
    return [*rows, times.ratio("每次重数", "lib", 60, "BPE 训练 100 kB，300 项：比每次重数快几倍", least=True)], {}


def encoding(rounds):
    """Encode with GPT-2's vocabulary: cold (a new tokenizer) and warm (the pieces of this text were met before)."""
    import tiktoken
    from tokenizers import Tokenizer, models, pre_tokenizers

    from lib.tokenizer import _to_visible
    path, texts = corpora.vocabulary(), corpora.load()
    ours = ByteBPE.from_tiktoken(path)
    rust = tiktoken.Encoding("r50k", pat_str=GPT2_PATTERN.replace(r"\Z", "$"), mergeable_ranks=ours.vocab, special_tokens=ours.special_tokens)
    face = Tokenizer(models.BPE({_to_visible(token): i for token, i in ours.vocab.items()}, visible_merges(ours)))
    face.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rows = []
    for name, file in (("英文 1 MB", "english-1MB"), ("中文 1 MB", "chinese-1MB")):
        text = texts[file]
        assert ours.encode(text) == rust.encode_ordinary(text) == face.encode(text).ids, "other ids"
        times = take_turns({"lib 热": lambda: ours.encode(text), "lib 冷": (ours._ids_of.clear, lambda: ours.encode(text)),
                            "tiktoken": lambda: rust.encode_ordinary(text), "tokenizers": lambda: face.encode(text).ids}, rounds)
        english = file.startswith("english")
        rows += [times.ratio("lib 热", "tiktoken", 2.0 if english else None, f"编码 {name}，热：lib ÷ tiktoken（Rust）"),
                 times.ratio("lib 热", "tokenizers", 0.5 if english else None, f"编码 {name}，热：lib ÷ tokenizers（Rust）"),
                 times.ratio("lib 冷", "tokenizers", None, f"编码 {name}，冷：lib ÷ tokenizers（Rust）")]
    return rows, {}


def visible_merges(bpe):
    """The merge list behind a rank table: the two parts into which each token falls when only earlier ones may merge."""
    from lib.tokenizer import _to_visible, merge_parts_plain
    merges = []
    for token, index in sorted(bpe.vocab.items(), key=lambda entry: entry[1]):
        if len(token) > 1:
            earlier = lambda left, right, index=index: r if (r := bpe.vocab.get(left + right, math.inf)) < index else math.inf
            left, right = merge_parts_plain([bytes([b]) for b in token], earlier)
            merges.append((_to_visible(left), _to_visible(right)))
    return merges


JOBS = {"forward": forward, "decode": decode, "cache": cache_curve, "attention": attention, "training": training, "char-gpt": char_gpt,
        "bpe-training": bpe_training, "encoding": encoding}

"""What must hold for every input: properties of the components, sought with hypothesis."""
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lib import attention, block, embedding, feedforward, functional, normalization, position, sampling
from lib.generation import KVCache, generate, stream, window_start
from lib.model import GPT, Config, pack

settings.register_profile("lib", deadline=None, max_examples=40)
settings.load_profile("lib")

floats = st.floats(-50, 50, allow_nan=False, width=32)
rows = hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), elements=floats)
logits = hnp.arrays(np.float64, st.integers(1, 12), elements=floats)
seeds = st.integers(0, 2**32 - 1)


def normal(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# softmax and its family

@given(rows, st.floats(-1e4, 1e4))
def test_softmax_is_a_distribution_that_ignores_translation(x, shift):
    p = functional.softmax(x)
    assert (p >= 0).all() and np.allclose(p.sum(-1), 1)
    np.testing.assert_allclose(functional.softmax(x + shift), p, atol=1e-9)
    np.testing.assert_allclose(np.exp(functional.log_softmax(x)), p, atol=1e-12)


@given(rows, st.data())
def test_softmax_along_any_axis(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    moved = np.moveaxis(functional.softmax(np.moveaxis(x, axis, -1)), -1, axis)
    np.testing.assert_allclose(functional.softmax(x, axis), moved, rtol=1e-14)


@given(rows)
def test_softmax_of_extremes(x):
    assert np.isfinite(functional.softmax(x * 1e300)).all()
    assert (functional.softmax(np.full_like(x, -np.inf)) == 0).all()
    assert np.isneginf(functional.log_softmax(np.full_like(x, -np.inf))).all()


@given(seeds)
def test_cross_entropy_reductions_and_ignored_targets(seed):
    x, y = normal(seed, 3, 4, 7), np.random.default_rng(seed).integers(0, 7, (3, 4))
    each = functional.cross_entropy(x, y, reduction="none")
    np.testing.assert_allclose(each.sum(), functional.cross_entropy(x, y, reduction="sum"))
    np.testing.assert_allclose(each.mean(), functional.cross_entropy(x, y))
    y2 = y.copy()
    y2[0] = -100
    np.testing.assert_allclose(functional.cross_entropy(x, y2), each[1:].mean())
    np.testing.assert_allclose(functional.cross_entropy(np.zeros((2, 5)), [0, 4]), np.log(5))


@given(rows)
def test_activations(x):
    np.testing.assert_array_equal(functional.relu(x) - functional.relu(-x), x)
    np.testing.assert_allclose(functional.sigmoid(x) + functional.sigmoid(-x), 1)
    np.testing.assert_allclose(functional.silu(x), x * functional.sigmoid(x), rtol=1e-12, atol=1e-300)
    for form, atol in (("none", 1e-12), ("tanh", 1e-12)):
        np.testing.assert_allclose(functional.gelu(x, form) - functional.gelu(-x, form), x, atol=atol)
    assert np.abs(functional.gelu(x) - functional.gelu(x, "tanh")).max() < 4.74e-4


# attention

@given(seeds, st.integers(1, 5), st.integers(1, 6))
def test_attention_does_not_depend_on_the_order_of_keys(seed, n_q, n_k):
    q, k, v = normal(seed, n_q, 4), normal(seed + 1, n_k, 4), normal(seed + 2, n_k, 3)
    order = np.random.default_rng(seed).permutation(n_k)
    output, weights = attention.scaled_dot_product_attention(q, k, v)
    shuffled, moved = attention.scaled_dot_product_attention(q, k[order], v[order])
    np.testing.assert_allclose(shuffled, output, atol=1e-12)
    np.testing.assert_allclose(moved, weights[:, order], atol=1e-12)


@given(seeds, st.integers(1, 8))
def test_self_attention_without_a_mask_is_permutation_equivariant(seed, n):
    d = 6
    p = {f"W_{c}": normal(seed + i, d, d) for i, c in enumerate("QKVO")}
    x, order = normal(seed, n, d), np.random.default_rng(seed).permutation(n)
    a = attention.multi_head_attention(x, p, 2)[0]
    b = attention.multi_head_attention(x[order], p, 2)[0]
    np.testing.assert_allclose(b, a[order], atol=1e-12)


@given(seeds, st.integers(2, 9), st.data())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("need_weights", [True, False])
def test_causality_is_exact_to_the_bit(need_weights, dtype, seed, n, data):
    d, j = 8, data.draw(st.integers(1, n - 1))
    p = {f"W_{c}": normal(seed + i, d, d, dtype=dtype) for i, c in enumerate("QKVO")}
    x = normal(seed, n, d, dtype=dtype)
    y = x.copy()
    y[j:] = normal(seed + 9, n - j, d, dtype=dtype) * 100
    f = lambda x: attention.multi_head_attention(x, p, 2, is_causal=True, need_weights=need_weights)[0]
    assert np.array_equal(f(x)[:j], f(y)[:j]) and not np.array_equal(f(x)[j:], f(y)[j:])


@given(seeds, st.integers(1, 20), st.integers(0, 20), st.sampled_from([None, 1, 3, 8, 100]), st.integers(1, 9),
       st.sampled_from([(1, 1), (4, 4), (4, 2), (6, 1)]))
def test_blocked_attention_agrees_with_the_plain_one(seed, n_q, past, window, size, heads):
    h, h_kv = heads
    n_k = n_q + past
    q, k, v = normal(seed, 2, h, n_q, 4), normal(seed + 1, 2, h_kv, n_k, 4), normal(seed + 2, 2, h_kv, n_k, 3)
    mask = attention.sliding_window_mask(n_q, window, n_k)
    groups = h // h_kv
    plain, _ = attention.scaled_dot_product_attention(
        q, attention.repeat_kv(k, groups), attention.repeat_kv(v, groups), mask)
    blocked = attention.causal_attention(q, k, v, window=window, block=size)
    np.testing.assert_allclose(blocked, plain, rtol=1e-12, atol=1e-13)


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_a_row_that_sees_nothing_gives_zeros_and_disturbs_no_other(seed, n_q, n_k):
    q, k, v = normal(seed, n_q, 4), normal(seed + 1, n_k, 4), normal(seed + 2, n_k, 3)
    mask = np.random.default_rng(seed).random((n_q, n_k)) < 0.6
    mask[0] = False
    output, weights = attention.scaled_dot_product_attention(q, k, v, mask)
    assert (output[0] == 0).all() and (weights[0] == 0).all() and (weights[~mask] == 0).all()
    assert np.isfinite(output).all()
    sees = mask.any(-1)
    np.testing.assert_allclose(weights[sees].sum(-1), 1)


def test_masking_holds_at_any_size_of_score():
    q = k = np.array([[1e6], [1e6]])  # where -1e4 instead of -inf would let the future through
    assert attention.scaled_dot_product_attention(q, k, np.eye(2), attention.causal_mask(2))[1][0].tolist() == [1, 0]


@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(1, 5))
def test_merging_undoes_splitting(seed, h, d_head, n):
    x = normal(seed, 2, n, h * d_head)
    assert np.array_equal(attention.merge_heads(attention.split_heads(x, h)), x)


@given(seeds)
def test_gqa_equals_full_attention_with_repeated_weights(seed):
    d, h, kv, d_head = 6, 4, 2, 3
    p = {"W_Q": normal(seed, d, h * d_head), "W_K": normal(seed + 1, d, kv * d_head),
         "W_V": normal(seed + 2, d, kv * d_head), "W_O": normal(seed + 3, h * d_head, d)}
    repeat = lambda W: np.repeat(W.reshape(d, kv, d_head), h // kv, axis=1).reshape(d, h * d_head)
    full = p | {"W_K": repeat(p["W_K"]), "W_V": repeat(p["W_V"])}
    x = normal(seed + 4, 5, d)
    for a, b in zip(attention.multi_head_attention(x, p, h, kv), attention.multi_head_attention(x, full, h)):
        np.testing.assert_allclose(a, b, atol=1e-12)


# normalization, feed-forward, block

@given(seeds, st.floats(-100, 100), st.floats(0.1, 100))
def test_layer_norm_ignores_shift_and_scale(seed, shift, scale):
    x = normal(seed, 4, 8)
    y = normalization.layer_norm(x, eps=0)
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-12)
    np.testing.assert_allclose((y * y).mean(-1), 1)
    np.testing.assert_allclose(normalization.layer_norm(x * scale + shift, eps=0), y, atol=1e-9)
    centred = x - x.mean(-1, keepdims=True)
    np.testing.assert_allclose(normalization.rms_norm(centred, eps=0), y, atol=1e-9)
    np.testing.assert_allclose(normalization.batch_norm(x.T, eps=0).T, y, atol=1e-9)


@given(seeds)
def test_constant_rows_normalize_to_the_bias(seed):
    bias = normal(seed, 5)
    assert np.array_equal(normalization.layer_norm(np.full((2, 5), 3.0), np.ones(5), bias), np.tile(bias, (2, 1)))


@given(seeds, st.sampled_from(["relu", "gelu", "silu", "swiglu"]), st.integers(1, 6))
def test_feed_forward_treats_each_token_alone(seed, activation, n):
    p = {"W_1": normal(seed, 4, 7), "W_2": normal(seed + 1, 7, 4), "b_1": normal(seed + 2, 7),
         "W_gate": normal(seed + 3, 4, 7), "W_up": normal(seed + 4, 4, 7), "W_down": normal(seed + 5, 7, 4)}
    f = (lambda x: feedforward.swiglu_feed_forward(x, p)) if activation == "swiglu" else (
        lambda x: feedforward.feed_forward(x, p, activation))
    x = normal(seed + 6, n, 4)
    np.testing.assert_allclose(f(x), np.stack([f(row) for row in x]), atol=1e-12)


@given(seeds)
def test_pre_ln_is_the_identity_when_sub_layers_are_zero_and_post_ln_two_norms(seed):
    x = normal(seed, 3, 8)
    for norm_position, expected in (("pre", x), ("post", normalization.layer_norm(normalization.layer_norm(x)))):
        config = Config(5, 8, 8, 1, 2, norm_position=norm_position)
        params = GPT(config, dtype=np.float64).params["blocks"][0]
        for part in (params["attention"], params["ffn"]):
            for array in part.values():
                array[...] = 0
        np.testing.assert_allclose(block.transformer_block(x, params, config), expected, atol=1e-12)


@given(seeds)
def test_residual_forms(seed):
    x, f, norm = normal(seed, 3, 4), np.sin, normalization.layer_norm
    np.testing.assert_array_equal(block.residual(x, f), x + f(x))
    np.testing.assert_array_equal(block.post_ln(x, f, norm), norm(x + f(x)))
    np.testing.assert_array_equal(block.pre_ln(x, f, norm), x + f(norm(x)))


# embedding and position

@given(seeds, hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, max_dims=3, max_side=4), elements=st.integers(0, 6)))
def test_lookup_is_a_product_with_one_hot(seed, ids):
    table = normal(seed, 7, 3)
    np.testing.assert_array_equal(embedding.embed(table, ids), embedding.one_hot(ids, 7) @ table)


def test_lookup_gives_a_copy():
    table = np.zeros((2, 3))
    embedding.embed(table, [0, 0])[0] = 1
    assert (table == 0).all()


@given(seeds)
def test_cosine_and_distance_rank_alike_after_normalizing(seed):
    table, query = embedding.normalize(normal(seed, 40, 5)), embedding.normalize(normal(seed + 1, 5))
    np.testing.assert_allclose(embedding.euclidean_distance(table, query) ** 2,
                               2 - 2 * embedding.cosine_similarity(table, query), atol=1e-12)
    assert np.array_equal(embedding.nearest(table, query, 40), embedding.nearest(table, query, 40, "euclidean"))


@given(hnp.arrays(np.float64, 4, elements=st.floats(-1e200, 1e200).filter(lambda v: abs(v) > 1e-200)), st.floats(1e-90, 1e90))
def test_cosine_survives_extreme_lengths(a, scale):
    assert embedding.cosine_similarity(a, a * scale) == pytest.approx(1)
    assert -1 <= embedding.cosine_similarity(a, -a) <= 1


@given(st.integers(-30, 30), st.integers(0, 30), st.sampled_from([2, 8, 16]), st.sampled_from([10000.0, 7.0]))
def test_shifting_the_sinusoid_is_one_matrix_for_every_position(offset, p, d, base):
    table = position.sinusoidal_encoding(80, d, base)
    if 0 <= p + offset < 80:
        np.testing.assert_allclose(table[p] @ position.shift_matrix(offset, d, base), table[p + offset], atol=1e-12)
    M = position.shift_matrix(offset, d, base)
    np.testing.assert_allclose(M @ position.shift_matrix(-offset, d, base), np.eye(d), atol=1e-12)


@given(seeds, st.integers(0, 5000), st.integers(0, 50), st.sampled_from(["half", "interleaved"]))
def test_rotary_keeps_length_and_sees_only_distance(seed, start, gap, layout):
    q, k = normal(seed, 1, 8), normal(seed + 1, 1, 8)
    turn = functools.partial(position.rotary, layout=layout)
    np.testing.assert_allclose(np.linalg.norm(turn(q, [start])), np.linalg.norm(q))
    here = turn(q, [start + gap]) @ turn(k, [start]).T
    there = turn(q, [gap]) @ turn(k, [0]).T
    np.testing.assert_allclose(here, there, atol=1e-9)


def test_rotary_takes_the_positions_of_each_sequence():
    x, positions = normal(0, 2, 3, 4, 8), np.array([[0, 1, 2, 3], [5, 6, 7, 8]])
    turned = position.rotary(x, positions[:, None])
    for i in range(2):
        np.testing.assert_array_equal(turned[i], position.rotary(x[i], positions[i]))


@given(seeds)
def test_the_two_rotary_layouts_differ_by_a_permutation(seed):
    x, positions = normal(seed, 5, 8), np.arange(5)
    order = np.arange(8).reshape(4, 2).T.ravel()  # 0 2 4 6 1 3 5 7
    np.testing.assert_allclose(position.rotary(x, positions, layout="interleaved")[:, order],
                               position.rotary(x[:, order], positions), atol=1e-12)


# sampling

@given(logits, st.floats(0.05, 20))
def test_temperature_keeps_the_ranking_and_orders_the_entropy(x, T):
    entropy = lambda z: -(functional.softmax(z) * np.clip(functional.log_softmax(z), -1e9, 0)).sum()
    assert entropy(sampling.apply_temperature(x, T)) <= entropy(sampling.apply_temperature(x, T * 2)) + 1e-9
    assert sampling.greedy(sampling.apply_temperature(x, T)) == sampling.greedy(x) or len(set(x)) < len(x)


@given(logits)
def test_limits_of_the_temperature(x):
    assert functional.softmax(sampling.apply_temperature(x, 0))[sampling.greedy(x)] == 1
    np.testing.assert_allclose(functional.softmax(sampling.apply_temperature(x, 1e-320)), (x == x.max()) / (x == x.max()).sum())
    assert np.ptp(functional.softmax(sampling.apply_temperature(x, np.inf))) == 0
    x = np.append(x, -np.inf)
    for T in (0, 0.5, np.inf):
        assert functional.softmax(sampling.apply_temperature(x, T))[-1] == 0


@given(logits, st.integers(1, 15), st.floats(0.001, 1))
def test_filters_keep_the_best_and_change_no_kept_logit(x, k, p):
    kept = np.isfinite(sampling.top_k_filter(x, k))
    assert kept.sum() == min(k, len(x)) and np.array_equal(sampling.top_k_filter(x, k)[kept], x[kept])
    assert kept.all() or x[kept].min() >= x[~kept].max()
    y = sampling.top_p_filter(x, p)
    kept, probability = np.isfinite(y), functional.softmax(x)
    assert kept[sampling.greedy(x)] and np.array_equal(y[kept], x[kept])
    assert probability[kept].sum() >= p - 1e-9
    weakest = np.where(kept, probability, np.inf).min()
    assert probability[kept].sum() - weakest < p + 1e-9, "no token more than needed"


@given(logits, seeds, st.integers(1, 5), st.floats(0.1, 1))
def test_sampling_draws_only_what_the_filters_leave(x, seed, k, p):
    rng = np.random.default_rng(seed)
    left = sampling.top_p_filter(sampling.top_k_filter(sampling.apply_temperature(x, 0.7), k), p)
    drawn = [sampling.sample(x, rng, 0.7, k, p) for _ in range(20)]
    assert np.isfinite(left[drawn]).all()
    assert sampling.sample(x, None, temperature=0) == sampling.greedy(x)


def test_sampling_frequencies_follow_the_probabilities():
    x, n = np.log([0.5, 0.3, 0.15, 0.05]), 20_000
    counts = np.bincount(sampling.sample(np.tile(x, (n, 1)), np.random.default_rng(3)), minlength=4)
    expected = np.exp(x) * n
    assert ((counts - expected) ** 2 / expected).sum() < 16.3, "chi-square, 3 degrees of freedom, p = 0.001"


# model, cache, generation

RECIPES = {
    "2017": dict(norm_position="post", position="sinusoidal", activation="relu", scale_embeddings=True),
    "gpt2": dict(),
    "llama": dict(norm="rms", position="rotary", activation="swiglu", bias=False, tie_embeddings=False, n_kv_heads=2),
    "mistral": dict(norm="rms", position="rotary", activation="swiglu", bias=False, window=3, n_kv_heads=1),
}


@functools.cache
def tiny(recipe, dtype=np.float64, context=12):
    rng = np.random.default_rng(5)
    model = GPT(Config(13, context, 16, 2, 4, **RECIPES[recipe]), rng=rng, dtype=dtype)
    for p in model.params["blocks"]:  # sharp attention, so that a wrong position or a leak shows
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            p["attention"][name] *= 20
    return model


def splits(n):
    """Every way to cut n tokens into consecutive pieces."""
    for cuts in range(2 ** (n - 1)):
        ends = [i + 1 for i in range(n - 1) if cuts >> i & 1] + [n]
        yield list(zip([0, *ends], ends))


@pytest.mark.parametrize("recipe", RECIPES)
def test_cached_equals_uncached_for_every_split(recipe):
    model, ids = tiny(recipe), np.random.default_rng(1).integers(0, 13, 7)
    full, cache = model(ids), KVCache(tiny(recipe).config, dtype=np.float64)
    for pieces in splits(7):
        cache.reset()
        got = np.concatenate([model(ids[a:b], cache=cache) for a, b in pieces])
        np.testing.assert_allclose(got, full, atol=1e-12)
        assert len(cache) == 7


@pytest.mark.parametrize("recipe", RECIPES)
@given(st.integers(1, 4), seeds)
def test_sequences_of_a_batch_never_mix(recipe, batch, seed):
    model, ids = tiny(recipe), np.random.default_rng(seed).integers(0, 13, (batch, 6))
    alone = np.stack([model(row) for row in ids])
    np.testing.assert_allclose(model(ids), alone, atol=1e-12)
    cache = KVCache(model.config, batch, np.float64)
    cached = np.concatenate([model(ids[:, :4], cache=cache), model(ids[:, 4:], cache=cache)], axis=1)
    np.testing.assert_allclose(cached, alone, atol=1e-12)


@pytest.mark.parametrize("recipe", RECIPES)
@given(st.integers(1, 10), seeds)
def test_the_model_is_causal_to_the_bit(recipe, j, seed):
    model, rng = tiny(recipe, np.float32), np.random.default_rng(seed)
    ids = rng.integers(0, 13, 11)
    changed = ids.copy()
    changed[j:] = rng.integers(0, 13, 11 - j)
    assert np.array_equal(model(ids)[:j], model(changed)[:j])


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_truncated_cache_goes_on_as_if_the_rest_had_never_been(recipe):
    model, cache = tiny(recipe), KVCache(tiny(recipe).config, dtype=np.float64)
    ids = np.arange(9)
    model(ids, cache=cache)
    cache.truncate(4)
    np.testing.assert_allclose(model(ids[4:][::-1], cache=cache), model(np.r_[ids[:4], ids[4:][::-1]])[4:], atol=1e-12)


@pytest.mark.parametrize("recipe", RECIPES)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(0, 30), st.sampled_from([0, 0.8, 1.5]), seeds)
@settings(max_examples=15)
def test_generation_is_the_same_with_and_without_cache_even_past_the_context(recipe, prompt, new, temperature, seed):
    model, given_prompt = tiny(recipe), list(prompt)
    outputs = [generate(model, prompt, new, rng=np.random.default_rng(seed), temperature=temperature, top_k=6,
                        top_p=0.95, use_cache=use_cache) for use_cache in (True, False)]
    assert outputs[0] == outputs[1] and prompt == given_prompt
    assert outputs[0][: len(prompt)] == prompt and len(outputs[0]) == len(prompt) + new
    assert all(type(i) is int for i in outputs[0])
    if new:  # splitting the work: stop and go on
        half = generate(model, prompt, new // 2, temperature=0)
        assert generate(model, half, new - new // 2, temperature=0) == generate(model, prompt, new, temperature=0)


@given(st.integers(1, 200), st.integers(1, 40))
def test_the_window_moves_by_halves_and_always_fits(n, context):
    start = window_start(n, context)
    assert 0 <= start < n and n - start <= context
    assert n <= context and start == 0 or n - start > context // 2
    assert window_start(n + 1, context) - start in (0, max(1, context // 2))


def test_generation_stops_and_streams():
    model = tiny("gpt2")
    full = generate(model, [1, 2], 12, temperature=0)
    stop = full[5]
    stopped = generate(model, [1, 2], 12, temperature=0, stop_ids=[stop])
    assert stopped == full[: 2 + full[2:].index(stop) + 1], "the stop token is kept, nothing follows"
    steps = stream(model, [1, 2], 12, temperature=0)
    assert [next(steps) for _ in range(3)] == full[2:5], "each token as soon as it is known"
    assert generate(model, [1], 0) == [1]
    assert generate(model, np.array([1, 2]), 4, temperature=0) == full[:6]


@pytest.mark.parametrize("recipe", RECIPES)
def test_float32_stays_float32_through_the_whole_model(recipe):
    model, record = tiny(recipe, np.float32), {}
    model(np.arange(6), record=record)
    arrays = [record["embedding"], record["final"], record["logits"]]
    arrays += [a for trace in record["blocks"] for a in trace.values()]
    assert {a.dtype for a in arrays} == {np.dtype(np.float32)}
    cache = KVCache(model.config)
    assert model([1, 2], cache=cache).dtype == model([3], cache=cache).dtype == np.float32


def test_a_seed_decides_the_weights():
    config = Config(13, 8, 16, 2, 4)
    a, b, c = (GPT(config, rng=np.random.default_rng(s))([1, 2, 3]) for s in (0, 0, 1))
    assert np.array_equal(a, b) and not np.array_equal(a, c) and np.array_equal(a, GPT(config)([1, 2, 3]))


@pytest.mark.parametrize("recipe", [*RECIPES, "tied-llama"])
def test_saving_and_loading_gives_the_same_model(recipe, tmp_path):
    extra = dict(norm="rms", position="rotary", activation="swiglu", bias=False)
    model = GPT(Config(13, 12, 16, 2, 4, **(RECIPES.get(recipe) or extra)))
    model.save(tmp_path)
    model.save(tmp_path)  # over an older one
    again = GPT.from_pretrained(tmp_path)
    assert np.array_equal(again([1, 2, 3]), model([1, 2, 3])) and again.num_parameters == model.num_parameters
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    assert GPT.from_pretrained(tmp_path, dtype=np.float64)([1]).dtype == np.float64


@pytest.mark.parametrize("recipe", RECIPES)
def test_packing_changes_how_weights_lie_in_memory_and_nothing_else(recipe):
    model = tiny(recipe)
    packed = GPT(model.config, pack(model.params))
    np.testing.assert_allclose(packed(np.arange(9)), model(np.arange(9)), rtol=1e-12, atol=1e-13)
    weights = packed.params["blocks"][0]["attention"]
    assert weights["W_Q"].base is weights["W_K"].base is weights["W_V"].base
    before = packed(np.arange(9))
    weights["W_K"] *= 2  # in place: the views and the whole stay one
    changed = packed(np.arange(9))
    assert not np.allclose(changed, before)
    weights["W_K"] = weights["W_K"] / 2  # replaced: no view any more
    np.testing.assert_allclose(packed(np.arange(9)), before, rtol=1e-12, atol=1e-13)
    weights["W_Q"], weights["W_K"], weights["W_V"] = (w.copy() for w in (weights["W_Q"], weights["W_K"], weights["W_V"]))
    np.testing.assert_allclose(packed(np.arange(9)), before, rtol=1e-12, atol=1e-13)


def test_views_in_another_order_are_not_taken_for_the_whole():
    whole = np.random.default_rng(0).normal(size=(4, 12))
    W = dict(zip(("W_K", "W_Q", "W_V"), np.split(whole, 3, axis=1))) | {"W_O": np.eye(4)}
    x = np.random.default_rng(1).normal(size=(3, 4))
    expected = attention.multi_head_attention(x, {k: v.copy() for k, v in W.items()}, 2)[0]
    np.testing.assert_allclose(attention.multi_head_attention(x, W, 2)[0], expected, rtol=1e-12)

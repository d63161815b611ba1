"""The same mathematics in plain Python: scalars, lists and loops, no NumPy, nothing of `lib`.

Slow on purpose and written from the papers' formulas, one number at a time; matrices are lists of rows.
"""
import math

INF = math.inf


def softmax(row):
    peak = max(row)
    if peak == -INF:
        return [0.0] * len(row)
    e = [math.exp(v - peak) for v in row]
    return [v / math.fsum(e) for v in e]


def log_softmax(row):
    peak = max(row)
    total = math.fsum(math.exp(v - peak) for v in row)
    return [v - peak - math.log(total) for v in row]


def cross_entropy(rows, targets):
    return math.fsum(-log_softmax(row)[t] for row, t in zip(rows, targets)) / len(rows)


def relu(v):
    return v if v > 0 else 0.0


def sigmoid(v):
    return 1 / (1 + math.exp(-v)) if v > -700 else 0.0


def silu(v):
    return v * sigmoid(v)


def gelu(v):
    return v * 0.5 * (1 + math.erf(v / math.sqrt(2)))


def gelu_tanh(v):
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def matmul(A, B):
    return [[dot(row, [b[j] for b in B]) for j in range(len(B[0]))] for row in A]


def linear(A, W, b=None):
    return [[v + (b[j] if b else 0.0) for j, v in enumerate(row)] for row in matmul(A, W)]


def may_look(i, j, n_q, n_k, window=None):
    """Query i of n_q, aligned at the end of n_k keys, may look at key j."""
    position = n_k - n_q + i
    return j <= position and (window is None or position - j < window)


def attention(q, k, v, allowed=lambda i, j: True, scale=None):
    """`allowed(i, j)` is a yes/no or a number added to the score."""
    scale = 1 / math.sqrt(len(q[0])) if scale is None else scale
    weights, output = [], []
    for i, query in enumerate(q):
        row = []
        for j, key in enumerate(k):
            may = allowed(i, j)
            score = dot(query, key) * scale
            row.append(score + may if isinstance(may, float) else score if may else -INF)
        weights.append(softmax(row))
        output.append([dot(weights[-1], [value[c] for value in v]) for c in range(len(v[0]))])
    return output, weights


def rotary(rows, positions, base=10000.0, interleaved=False):
    d, out = len(rows[0]), []
    for row, position in zip(rows, positions):
        new = [0.0] * d
        for i in range(d // 2):
            a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + d // 2)
            angle = position / base ** (2 * i / d)
            new[a] = row[a] * math.cos(angle) - row[b] * math.sin(angle)
            new[b] = row[a] * math.sin(angle) + row[b] * math.cos(angle)
        out.append(new)
    return out


def sinusoid(position, d, base=10000.0):
    return [(math.sin if c % 2 == 0 else math.cos)(position / base ** ((c - c % 2) / d)) for c in range(d)]


def multi_head_attention(x, p, h, h_kv, allowed, rotate=False, base=10000.0):
    """One head at a time; each head multiplies the whole row of x with its own columns of the weights."""
    d_head = len(p["W_Q"][0]) // h
    q_all, k_all, v_all = (linear(x, p[f"W_{c}"], p.get(f"b_{c}")) for c in "QKV")
    heads, weights = [], []
    for head in range(h):
        shared = head // (h // h_kv)
        q = [row[head * d_head : (head + 1) * d_head] for row in q_all]
        k = [row[shared * d_head : (shared + 1) * d_head] for row in k_all]
        v = [row[shared * d_head : (shared + 1) * d_head] for row in v_all]
        if rotate:
            q, k = rotary(q, range(len(q)), base), rotary(k, range(len(k)), base)
        output, w = attention(q, k, v, allowed)
        heads.append(output)
        weights.append(w)
    joined = [[value for head in heads for value in head[i]] for i in range(len(x))]
    return linear(joined, p["W_O"], p.get("b_O")), weights


def layer_norm(row, gain, bias=None, eps=1e-5):
    mean = math.fsum(row) / len(row)
    variance = math.fsum((v - mean) ** 2 for v in row) / len(row)
    return [(v - mean) / math.sqrt(variance + eps) * g + (bias[c] if bias else 0.0)
            for c, (v, g) in enumerate(zip(row, gain))]


def rms_norm(row, gain, eps=1e-6):
    return [v / math.sqrt(math.fsum(u * u for u in row) / len(row) + eps) * g for v, g in zip(row, gain)]


def batch_norm(rows, gain, bias, eps=1e-5):
    columns = [layer_norm(list(column), [1.0] * len(rows), None, eps) for column in zip(*rows)]
    return [[column[i] * g + b for column, g, b in zip(columns, gain, bias)] for i in range(len(rows))]


def feed_forward(x, p, activation):
    if activation == "swiglu":
        gate, up = linear(x, p["W_gate"], p.get("b_gate")), linear(x, p["W_up"], p.get("b_up"))
        hidden = [[silu(g) * u for g, u in zip(*rows)] for rows in zip(gate, up)]
        return linear(hidden, p["W_down"], p.get("b_down"))
    f = {"relu": relu, "gelu": gelu_tanh, "gelu_exact": gelu, "silu": silu}[activation]
    hidden = [[f(v) for v in row] for row in linear(x, p["W_1"], p.get("b_1"))]
    return linear(hidden, p["W_2"], p.get("b_2"))


def gpt(ids, p, c):
    """Logits of every position; c is any object with the settings of lib.model.Config."""
    d, n = c.d_model, len(ids)

    def norm(rows, q):
        if c.norm == "rms":
            return [rms_norm(row, q["gain"], c.norm_eps) for row in rows]
        return [layer_norm(row, q["gain"], q.get("bias"), c.norm_eps) for row in rows]

    def add(a, b):
        return [[u + v for u, v in zip(*rows)] for rows in zip(a, b)]

    x = [[v * (math.sqrt(d) if c.scale_embeddings else 1) for v in p["wte"][i]] for i in ids]
    if c.position == "learned":
        x = add(x, p["wpe"][:n])
    if c.position == "sinusoidal":
        x = add(x, [sinusoid(t, d) for t in range(n)])
    for b in p["blocks"]:
        def attend(rows, b=b):
            return multi_head_attention(rows, b["attention"], c.n_heads, c.n_kv_heads or c.n_heads,
                                        lambda i, j: may_look(i, j, n, n, c.window), c.position == "rotary", c.rope_base)[0]

        def think(rows, b=b):
            return feed_forward(rows, b["ffn"], c.activation)

        for f, q in ((attend, b["norm_1"]), (think, b["norm_2"])):
            x = add(x, f(norm(x, q))) if c.norm_position == "pre" else norm(add(x, f(x)), q)
    if c.norm_position == "pre":
        x = norm(x, p["norm_f"])
    head = [list(column) for column in zip(*p["wte"])] if c.tie_embeddings else p["lm_head"]
    return linear(x, head)


def top_k(row, k):
    kept = sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
    return [v if i in kept else -INF for i, v in enumerate(row)]


def top_p(row, p):
    total, kept, probabilities = 0.0, set(), softmax(row)
    for i in sorted(range(len(row)), key=lambda i: (-row[i], i)):
        if total >= p:
            break
        kept.add(i)
        total += probabilities[i]
    return [v if i in kept else -INF for i, v in enumerate(row)]


def cosine(a, b):
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))

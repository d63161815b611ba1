"""The same model written with PyTorch's own operators: the independent side of the gradient and training tests."""
import math

import torch
import torch.nn.functional as F


def tensors(tree):
    """The nested dict of arrays as leaf tensors that collect gradients."""
    if isinstance(tree, dict):
        return {key: tensors(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [tensors(value) for value in tree]
    return torch.tensor(tree).requires_grad_()


def gradients(tree):
    if isinstance(tree, dict):
        return {key: gradients(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [gradients(value) for value in tree]
    return tree.grad.numpy()


def flat(tree):
    """Every leaf, in the order of the names."""
    if isinstance(tree, (dict, list)):
        for value in (tree[key] for key in sorted(tree)) if isinstance(tree, dict) else tree:
            yield from flat(value)
    else:
        yield tree


def logits(ids, p, c):
    ids = torch.as_tensor(ids)
    n = ids.shape[-1]
    x = p["wte"][ids]
    if c.scale_embeddings:
        x = x * math.sqrt(c.d_model)
    if c.position == "learned":
        x = x + p["wpe"][:n]
    if c.position == "sinusoidal":
        rate = 10000.0 ** (-torch.arange(0, c.d_model, 2, dtype=torch.float64) / c.d_model)
        angle = torch.arange(n, dtype=torch.float64)[:, None] * rate
        x = x + torch.stack([angle.sin(), angle.cos()], -1).reshape(n, c.d_model).to(x.dtype)
    for block in p["blocks"]:
        for part, name, f in (("attention", "norm_1", attention), ("ffn", "norm_2", feed_forward)):
            if c.norm_position == "pre":
                x = x + f(norm(x, block[name], c), block[part], c)
            else:
                x = norm(x + f(x, block[part], c), block[name], c)
    if c.norm_position == "pre":
        x = norm(x, p["norm_f"], c)
    return x @ (p["wte"].T if c.tie_embeddings else p["lm_head"])


def norm(x, p, c):
    if c.norm == "rms":
        return F.rms_norm(x, x.shape[-1:], p["gain"], c.norm_eps)
    return F.layer_norm(x, x.shape[-1:], p["gain"], p.get("bias"), c.norm_eps)


def linear(x, p, name):
    return F.linear(x, p[f"W_{name}"].T, p.get(f"b_{name}"))


def rotate(x, base):
    n, d = x.shape[-2:]
    angle = torch.arange(n, dtype=torch.float64)[:, None] * base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def attention(x, p, c):
    n = x.shape[-2]
    q, k, v = (linear(x, p, name).unflatten(-1, (-1, c.d_head)).transpose(-2, -3) for name in "QKV")
    if c.position == "rotary":
        q, k = rotate(q, c.rope_base), rotate(k, c.rope_base)
    allowed = torch.ones(n, n, dtype=torch.bool).tril()
    if c.window is not None:
        allowed &= torch.ones(n, n, dtype=torch.bool).triu(1 - c.window)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)
    return linear(y.transpose(-2, -3).flatten(-2), p, "O")


def feed_forward(x, p, c):
    if c.activation == "swiglu":
        return linear(F.silu(linear(x, p, "gate")) * linear(x, p, "up"), p, "down")
    activation = {"relu": F.relu, "silu": F.silu, "gelu_exact": F.gelu,
                  "gelu": lambda h: F.gelu(h, approximate="tanh")}[c.activation]
    return linear(activation(linear(x, p, "1")), p, "2")


def loss(ids, targets, p, c):
    return F.cross_entropy(logits(ids, p, c).flatten(0, -2), torch.as_tensor(targets).flatten())

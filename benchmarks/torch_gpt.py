"""The training peer: a small GPT the way PyTorch users write it, eager mode, AdamW, gradients clipped to length 1."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (part.view(b, n, self.heads, d // self.heads).transpose(1, 2) for part in self.qkv(self.norm_1(x)).split(d, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class CharGPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(config.vocab_size, config.d_model), nn.Embedding(config.context_length, config.d_model)
        self.blocks = nn.ModuleList(Block(config.d_model, config.n_heads) for _ in range(config.n_layers))
        self.norm_f = nn.LayerNorm(config.d_model)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def copy_from(self, params):
        """Take over the weights of a `lib.model.GPT`."""
        put = lambda parameter, array: parameter.copy_(torch.tensor(array))
        put(self.wte.weight, params["wte"])
        put(self.wpe.weight, params["wpe"])
        for norm, p in [(self.norm_f, params["norm_f"])] + [(getattr(block, name), p[name]) for block, p in zip(self.blocks, params["blocks"])
                                                            for name in ("norm_1", "norm_2")]:
            put(norm.weight, p["gain"])
            put(norm.bias, p["bias"])
        for block, p in zip(self.blocks, params["blocks"]):
            a, ffn = p["attention"], p["ffn"]
            for i, name in enumerate("QKV"):
                rows = slice(i * len(a["W_O"]), (i + 1) * len(a["W_O"]))
                put(block.qkv.weight[rows], a[f"W_{name}"].T.copy())
                put(block.qkv.bias[rows], a[f"b_{name}"])
            for layer, W, b in ((block.out, a["W_O"], a["b_O"]), (block.up, ffn["W_1"], ffn["b_1"]), (block.down, ffn["W_2"], ffn["b_2"])):
                put(layer.weight, W.T.copy())
                put(layer.bias, b)

    def stepper(self, ids, targets):
        ids, targets = torch.tensor(ids), torch.tensor(targets)
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)

        def step():
            loss = self(ids, targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            optimizer.step()
            return loss.item()

        return step

"""Whole models: the parameter table of GPT-2, published sizes, and what grows with n and d."""

from dataclasses import replace

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.accounting import MODELS, count_parameters, flops_table, moe_parameters, parameter_table
from lib.model import PRESETS


@computation
def published(model, properties):
    """What `lib.accounting` lists for a model; a derived `d_head` beside the published fields."""
    found = MODELS[model]
    values = [found.d_model // found.n_heads if name == "d_head" else getattr(found, name) for name in properties]
    return values[0] if len(values) == 1 else values


@computation
def dense_model(preset, model):
    """Width, exact number of parameters, and year."""
    return [PRESETS[preset].d_model, count_parameters(PRESETS[preset]), MODELS[model].year]


@computation
def parameters(preset):
    return count_parameters(PRESETS[preset])


@computation
def size_under_its_name(preset, name, printed_name, digits):
    """The model that these numbers belong to, and what the printed name would need."""
    count = count_parameters(PRESETS[preset])
    return Evidence([name, count], narrow=[printed_name, float(round(count, -digits))])


def _gpt2(part, matrices=True, biases=True):
    config = PRESETS["gpt2"]
    rows = [row for row in parameter_table(config) if row.part == part and (len(row.shape) > 1 and matrices or len(row.shape) == 1 and biases)]
    return sum(row.count for row in rows)


@computation
def gpt2_parameters(part):
    """One line of the parameter table of GPT-2 Small."""
    config = PRESETS["gpt2"]
    layers, d = config.n_layers, config.d_model
    weights = {name: _gpt2(name, biases=False) // layers for name in ("注意力", "前馈")}
    norms = (_gpt2("归一化") - 2 * d) // layers  # without the final one
    layer = sum(_gpt2(name) for name in ("注意力", "前馈")) // layers + norms
    tables = {row.name: row.count for row in parameter_table(config) if row.part == "嵌入"}
    values = {"wte": tables["wte"], "wpe": tables["wpe"], "attention": weights["注意力"], "ffn": weights["前馈"], "norms": norms, "layer": layer,
              "layers": layers * layer, "embeddings": sum(tables.values()), "total": count_parameters(config)}
    rounded = {"layers": layers * round(layer, -4), "embeddings": round(tables["wte"], -4) + round(tables["wpe"], -4)}
    show = {"bare": sum(weights.values()) + norms, "final": 2 * d, "with_biases": norms + _gpt2("注意力", False) // layers + _gpt2("前馈", False) // layers}
    return Evidence(values[part], rounded=rounded.get(part, UNSET), show=show)


@computation
def doubling_the_width(preset, n):
    """What doubling d does to the score part, to the projections, and to attention as a whole."""
    config = PRESETS[preset]
    once, twice = (flops_table(c, n) for c in (config, replace(config, d_model=2 * config.d_model, n_heads=2 * config.n_heads)))
    factor = {part: twice[part] / once[part] for part in ("分数", "投影")}
    whole = (twice["分数"] + twice["投影"]) / (once["分数"] + once["投影"])
    return Evidence([factor["分数"], factor["投影"]], says=whole, narrow=factor["分数"], show={"whole": whole})


@computation
def width_follows_size(models):
    """Does a larger model always have a larger width?"""
    by_size = sorted(models, key=lambda model: MODELS[model].parameters)
    widths = [MODELS[model].d_model for model in by_size]
    return all(a <= b for a, b in zip(widths, widths[1:]))


@computation
def heads_of_width(d, head_dim, printed_head_dim):
    return Evidence(d // head_dim, other=d // printed_head_dim)


@computation
def elements_of_a_line(line_bytes, value_bytes):
    """A memory line in bytes, and how many numbers it holds: a width is counted in numbers."""
    return Evidence([line_bytes, line_bytes // value_bytes], says=line_bytes // value_bytes, narrow=line_bytes)


@computation
def active_share(active, total, active_experts, experts):
    """Active parameters over all of them, and the share of experts, which is another number."""
    return Evidence(active / total, other=active_experts / experts, show={"experts": active_experts / experts})


@computation
def cost_follows_active_parameters():
    """Twice the experts, as many of them active: the work stays, the memory doubles. So is the cost only the active part?"""
    small, large = (moe_parameters(d_model=64, d_expert=128, n_experts=n, n_active=2) for n in (64, 128))
    router = 64 * 64  # the router grows with the number of experts; everything else that is active stays
    same_work = large[1] - small[1] == router
    same_memory = large[0] < 1.1 * small[0]
    return Evidence(bool(same_work and same_memory), narrow=bool(same_work), show={"memory": large[0] / small[0]})


@computation
def same_parts(old, new):
    """Which parts differ between the 2017 recipe and a present model, on the same skeleton."""
    parts = {"归一化": "norm", "归一化的位置": "norm_position", "位置编码": "position", "激活函数": "activation", "偏置": "bias"}
    before, after = PRESETS[old], PRESETS[new]
    changed = [word for word, name in parts.items() if getattr(before, name) != getattr(after, name)]
    if before.n_heads // before.kv_heads != after.n_heads // after.kv_heads:
        changed.append("KV 头数")
    skeletons = [{row.part for row in parameter_table(config)} - {"输出"} for config in (before, after)]
    return Evidence(not changed, narrow=skeletons[0] == skeletons[1], show={"changed": "、".join(changed)})

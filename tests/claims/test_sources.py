"""Facts taken from published configurations, against the configuration classes that `transformers` ships."""

import pytest

import claims

V4, SCOUT, V3 = "DeepseekV4Config", "Llama4TextConfig", "DeepseekV3Config"
ROW = ["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"]
# Claim -> configuration class and the attributes that its computed value (or the start of it) must equal.
FACTS = {
    "b-row-v4flash": (V4, ROW), "b-v4-dk": (V4, ["head_dim"]), "b-v4-dmodel": (V4, ["hidden_size"]), "b-v4-1024": (V4, ["q_lora_rank"]),
    "b-v4-experts": (V4, ["n_routed_experts", "num_experts_per_tok", "n_shared_experts"]), "b-vocab-dsv4": (V4, ["vocab_size"]),
    "b-v4-1m": (V4, ["max_position_embeddings"]), "b-v4-mqa": (V4, ["num_key_value_heads"]), "b-tab-v4flash": (V4, ["hidden_size"]),
    "b-row-scout": (SCOUT, ROW), "b-vocab-llama4": (SCOUT, ["vocab_size"]), "b-tab-scout-instruct": (SCOUT, ["hidden_size"]),
    "b-tab-scout": (SCOUT, ["hidden_size"]), "b-kv-config": (SCOUT, ["num_hidden_layers", "num_key_value_heads", "head_dim"]),
    "b-vocab-dsv3": (V3, ["vocab_size"]), "b-tab-dsv3": (V3, ["hidden_size"]),
}


@pytest.mark.peers
@pytest.mark.parametrize("id", FACTS)
def test_fact_stands_in_the_configuration_class(id):
    transformers = pytest.importorskip("transformers", reason="需要同类实现：make peers")
    name, attributes = FACTS[id]
    config, computed = getattr(transformers, name)(), claims.claim(id).computed
    values = computed if isinstance(computed, list) else [computed]
    assert values[:len(attributes)] == [getattr(config, attribute) for attribute in attributes]


def test_what_could_not_be_checked_says_so():
    """A source that nobody could check is marked, and the mark reaches the reader."""
    row = claims.claim("b-tab-k3-active")
    assert [source.get("checked") for _, source in row.sources] == [False]
    assert "未独立核实" in claims.Rows([row])._repr_html_()
    assert "未独立核实" not in claims.Rows([claims.claim("b-kv-authors")])._repr_html_()

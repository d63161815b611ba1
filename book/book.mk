book: $(SETUP) ## 执行 notebook 并生成网站到 _build/html（打印打开的位置）
	$(PY) -m book build $(ARGS)
.PHONY: book

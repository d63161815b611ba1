# What makes pages out of notebooks. `make book` first; the others build on its output.
.PHONY: book lab vendor-pyodide test-site pdf bundle

book: $(SETUP) ## 执行 notebook 并生成网站到 _build/html（打印打开的位置）
	$(PY) -m book build $(ARGS)

lab: $(SETUP) ## 用 JupyterLab 打开各章
	$(BIN)/jupyter lab --notebook-dir=. chapters $(ARGS)

vendor-pyodide: $(SETUP) ## 把浏览器里的 Python（Pyodide）放进网站，各章可在页内运行
	$(PY) -m book.vendor_pyodide
	$(PY) -m book build

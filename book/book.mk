# What makes pages out of notebooks. `make book` first; the others build on its output.
.PHONY: book lab vendor-pyodide test-site pdf bundle compare

book: $(SETUP) ## 执行 notebook 并生成网站到 _build/html（打印打开的位置）
	$(PY) -m book build $(ARGS)

lab: $(SETUP) ## 用 JupyterLab 打开各章
	$(BIN)/jupyter lab --notebook-dir=. chapters $(ARGS)

vendor-pyodide: $(SETUP) ## 把浏览器里的 Python（Pyodide）放进网站，各章可在页内运行
	$(PY) -m book.vendor_pyodide
	$(PY) -m book build

pdf: $(SETUP) ## 全书 PDF 到 _build/dist（需要 Chromium）
	$(PY) -m book.pdf

bundle: $(SETUP) ## 网站、notebook、练习各打一个 zip 到 _build/dist
	$(PY) -m book.bundle

test-site: $(SETUP) ## 在无界面的 Chromium 里验收网站：断网、搜索、页内运行、无障碍、轻重
	$(PY) -m book.vendor_pyodide
	REQUIRE_SYSTEM=1 TEST_ALL=1 $(PY) -m pytest tests/book -m browser $(ARGS)

compare: $(SETUP) ## 本书各页与原样的 Jupyter Book 比轻重与快慢（同一次运行，需要 Chromium）
	$(PY) -m book.compare

# Two commands on a fresh machine: `make book` and `make test`. `make` alone lists everything.
# Set-up is redone only when requirements.txt or pyproject.toml change.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
SETUP := $(VENV)/.ready
export PYTHONUTF8 := 1
# Tests and notebooks run side by side; a thread pool in each would only make them wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
# A narrower run: `make test TESTS=tests/lib`.
TESTS ?=
ASSIGNMENT ?=
SUBMISSIONS ?= submissions
OUT ?= grades
ARGS ?=

.PHONY: help setup
help: ## 列出所有命令
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: $(SETUP) ## 建立 .venv 并安装锁定的依赖（其余命令会自动调用）
$(SETUP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "需要 CPython 3.11 或更新版本；可用 make PYTHON=python3.12 … 指定解释器"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { echo "无法建立虚拟环境：Debian / Ubuntu 需要先安装系统包 python3-venv"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: requirements.in requirements-peers.in ## 由 requirements*.in 重新编译锁文件（需要 uv）
	uv pip compile requirements.in --universal --python-version 3.11 --upgrade --custom-compile-command "make lock" -o requirements.txt
	@# For macOS, where PyTorch has no CUDA dependencies: pip adds them where the index serves a CUDA build.
	MACOSX_DEPLOYMENT_TARGET=14.0 uv pip compile requirements-peers.in --python-version 3.11 --python-platform macos \
	  --custom-compile-command "make lock" -o requirements-peers.txt

include book/book.mk
include grading/grading.mk
include benchmarks/bench.mk
include chapters/material.mk

ifeq ($(TESTS),)
# The site's tests share one built site and the grader's look for processes left behind, so both run by themselves;
# everything else, with the stored outputs of all notebooks (nbval), runs in two processes. Both run even when the
# first fails. What a person does in a browser takes longer and is tried by `make test-site`.
test: $(SETUP) ## 跑全部测试（缺浏览器或 bubblewrap 时会点名跳过了什么、怎么装）
	@status=0; \
	$(PY) -m pytest tests/book tests/grading --ignore tests/book/test_browser.py --ignore tests/book/test_journey_browser.py $(ARGS) \
	  || status=1; \
	$(PY) -m pytest -n 2 --dist loadfile --nbval --nbval-sanitize-with tests/nbval.cfg \
	  tests chapters --ignore tests/book --ignore tests/grading $(ARGS) || status=1; \
	exit $$status
else
test: $(SETUP)
	$(PY) -m pytest $(TESTS) $(ARGS)
endif

test-all: $(SETUP) ## 再加上耗时的测试：全部攻击、PostgreSQL、Dask、JupyterHub
	TEST_ALL=1 $(MAKE) test TESTS="$(TESTS)" ARGS="$(ARGS)"

lint: $(SETUP) ## 检查 Python 风格与中文排版
	$(BIN)/ruff check .
	$(PY) -m pytest -q tests/hygiene

clean: ## 删除生成的网站与缓存，保留 .venv
	rm -rf _build .pytest_cache .hypothesis .ruff_cache

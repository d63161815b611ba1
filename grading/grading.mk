.PHONY: exercises check progress
exercises: $(SETUP) ## 由 solutions/ 生成 exercises/（有答案的笔记本不会被覆盖）
	@$(PY) -m grading.release $(ARGS)
check: $(SETUP) ## 检查自己的练习：make check EX=ex04-attention [NOTEBOOK=路径]，不改动笔记本
	@test -n "$(EX)" || { echo "用法：make check EX=ex04-attention [NOTEBOOK=路径]"; exit 1; }
	@$(PY) -m grading.check_home $(EX) $(if $(NOTEBOOK),"$(NOTEBOOK)")
progress: $(SETUP) ## 所有练习的得分与下一步
	@$(PY) -m grading.progress

.PHONY: grade
grade: $(SETUP) ## 评一份作业的全部提交：make grade ASSIGNMENT=ex04-attention [SUBMISSIONS=文件夹或 zip] [OUT=grades]
	@test -n "$(ASSIGNMENT)" || { echo "要评哪份作业？例如 make grade ASSIGNMENT=ex04-attention SUBMISSIONS=submissions"; exit 2; }
	@$(PY) -m grading grade "$(ASSIGNMENT)" --submissions "$(SUBMISSIONS)" --out "$(OUT)" $(ARGS)

.PHONY: bench-grading
bench-grading: $(SETUP) ## 与普通的 nbgrader autograde 并排测量评分速度（40 份提交）
	@$(PY) -m grading.benchmark $(ARGS)

# A layer over .venv with what only the hub needs; its servers run with .venv's interpreter and this layer in the path.
HUB := .hub
HUB_PACKAGES = $(abspath $(wildcard $(HUB)/venv/lib/python3*/site-packages))
.PHONY: hub-setup hub test-hub
hub-setup: $(HUB)/.ready
$(HUB)/.ready: $(SETUP) deploy/jupyterhub/requirements.txt
	@command -v npm >/dev/null || { echo "JupyterHub 的代理需要 Node.js：Debian / Ubuntu 用 apt-get install nodejs npm"; exit 1; }
	@mkdir -p $(HUB)
	@test -d $(HUB)/venv || $(PY) -m venv $(HUB)/venv
	@$(PY) -c "import sysconfig, glob; open(glob.glob('$(HUB)/venv/lib/python3*/site-packages')[0] + '/course.pth', 'w').write(sysconfig.get_paths()['purelib'] + '\n')"
	$(HUB)/venv/bin/pip install --quiet --disable-pip-version-check -c requirements.txt -r deploy/jupyterhub/requirements.txt
	PATH="$(abspath $(BIN)):$$PATH" npm install --silent --no-audit --no-fund --prefix $(HUB) configurable-http-proxy@5.3.0
	@touch $@
hub: hub-setup ## 启动一门课的 JupyterHub（上课用 root 运行；HUB_TEACHERS、HUB_STUDENTS 见 deploy/README.md）
	PATH="$(abspath $(BIN)):$$PATH" PYTHONPATH="$(HUB_PACKAGES)" HUB_PYTHONPATH="$(HUB_PACKAGES)" $(PY) -m jupyterhub -f deploy/jupyterhub/jupyterhub_config.py
test-hub: hub-setup ## 在真实的浏览器里走一遍：发布、领取、作答、提交、收取、评分、返还（root）
	TEST_ALL=1 PYTHONPATH="$(HUB_PACKAGES)" $(PY) -m pytest tests/grading/test_hub.py $(ARGS)

.PHONY: feedback formgrader export
feedback: $(SETUP) ## 人工评分之后，由成绩簿重写成绩表与反馈：make feedback [OUT=grades]
	@$(PY) -m grading report --out "$(OUT)" $(ARGS)
export: $(SETUP) ## 把成绩填进平台的成绩表：make export ASSIGNMENT=ex04-attention WORKSHEET=moodle.csv [OUT=grades]
	@test -n "$(ASSIGNMENT)" -a -n "$(WORKSHEET)" || { echo "用法：make export ASSIGNMENT=ex04-attention WORKSHEET=平台导出的.csv"; exit 2; }
	@$(PY) -m grading export "$(ASSIGNMENT)" "$(WORKSHEET)" --out "$(OUT)" $(ARGS)
formgrader: $(SETUP) ## 打开 nbgrader 的人工评分界面（http://localhost:8888/formgrader）
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/jupyter server --ServerApp.default_url=/formgrader $(ARGS)

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

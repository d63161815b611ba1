.PHONY: exercises check progress
exercises: $(SETUP) ## 由 solutions/ 生成 exercises/（有答案的笔记本不会被覆盖）
	@$(PY) -m grading.release $(ARGS)

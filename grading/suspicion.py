"""可疑之处：静态地看学生写了什么，再看运行时发生了什么。只提示人去看，不改变分数。"""

import ast
import re

# Attributes and modules that no exercise needs; the reason is shown to the teacher.
MODULES = {
    "ctypes": "直接操作内存", "socket": "网络", "subprocess": "启动别的程序", "multiprocessing": "启动别的进程",
    "urllib": "网络", "requests": "网络", "http": "网络", "unittest.mock": "替换别处的函数", "gc": "翻找内存中的对象",
    "inspect": "查看调用者", "zmq": "内核的通信", "ipykernel": "内核本身", "jupyter_client": "内核的通信",
    "nbformat": "读写笔记本", "nbgrader": "评分程序", "grading": "评分程序", "lib": "课程的参考实现", "solutions": "答案",
    "claims": "课程的内部文件", "kernel": "评分程序的内核", "wire": "评分程序的通道", "confine": "沙箱", "pickle": "序列化",
    "importlib": "动态导入",
}
NAMES = {
    "get_ipython": "IPython 的内部", "ast_transformers": "改写将要运行的代码", "input_transformers_cleanup": "改写将要运行的代码",
    "_exit": "强行结束进程", "kill": "向进程发信号", "getppid": "寻找上级进程", "fork": "复制进程", "system": "运行系统命令",
    "popen": "运行系统命令", "__array_function__": "改变 NumPy 对结果的运算", "__array_ufunc__": "改变 NumPy 对结果的运算",
    "__subclasses__": "翻找解释器的类", "_getframe": "查看调用者", "settrace": "跟踪运行", "setprofile": "跟踪运行",
    "grading_request": "评分程序的通道", "shell_handlers": "内核本身", "do_execute": "内核本身", "register_at_fork": "进程",
    "set_custom_exc": "改变错误的显示", "showtraceback": "改变错误的显示", "symlink": "建立链接", "mkfifo": "建立管道",
    "__eq__": "改变比较的结果", "__array__": "改变 NumPy 看到的数值", "__class__": "冒充别的类型", "__reduce__": "序列化时运行代码",
    "open": "读写文件", "exec": "运行拼出来的代码", "eval": "运行拼出来的代码", "setrlimit": "改变限制", "__import__": "动态导入", "builtins": "替换内建函数",
}
PATCHED = re.compile(r"\b(?:np|numpy)(?:\.testing)?\.(?:allclose|isclose|array_equal|all|any|assert_\w+|testing)\s*=[^=]")
PLACES = re.compile(r"solutions/|gradebook|/etc/|/proc/|\.ssh|\.ipython|submitted/|autograded/|\.\./\.\.")
SHOWN = 12


def examine(rebuilt):
    """[(code, explanation)] of what a person should look at."""
    found = {}
    for cell in rebuilt.notebook.cells:
        grading = cell.metadata.get("nbgrader", {})
        own = grading.get("solution") or not grading.get("grade_id")
        if cell.cell_type == "code" and own:
            _source(cell.source, found)
    for note in ("given-cell-edited", "points-changed", "kernel-died", "memory", "malformed-message", "foreign-owner",
                 "not-a-plain-file", "too-many-cells"):
        if note in rebuilt.notes:
            found[note] = rebuilt.notes[note]
    return list(found.items())[:SHOWN]


def _source(source, found):
    if PATCHED.search(source):
        found["patched-numpy"] = "给 NumPy 的比较函数赋值"
    if place := PLACES.search(source):
        found["path"] = f"提到路径 {place[0]}"
    try:
        tree = ast.parse("\n".join(line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        for name in _named(node):
            top = name.split(".")[0]
            if name in MODULES or top in MODULES:
                found[f"import:{top}"] = f"导入 {name}：{MODULES.get(name, MODULES.get(top))}"
        name = getattr(node, "attr", None) or (getattr(node, "id", None) if isinstance(node, ast.Name) else None)
        name = name or (node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None)
        if name in NAMES:
            found[f"name:{name}"] = f"用到 {name}：{NAMES[name]}"


def _named(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def identical(results):
    """{student: other students} whose answers are all the same, word for word, and more than a few lines long."""
    groups = {}
    for student, answers in results.items():
        text = "\0".join(re.sub(r"\s+", " ", answers[key] or "") for key in sorted(answers))
        if len(text.replace("\0", "")) > 400:
            groups.setdefault(text, []).append(student)
    return {student: [other for other in group if other != student]
            for group in groups.values() if len(group) > 1 for student in group}

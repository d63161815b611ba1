"""Leaving something behind: files outside, changed grades, code that runs in somebody else's process."""

from . import add

add("write-outside", "writing", "writes a file wherever it might be allowed to", """
import os
for top in ("@planted@", "@out@", "@submissions@", "@source@", "@root@", "@root@/lib", "/", "/tmp", "/var/tmp", "/etc", "/root",
            "/usr/local/lib", os.path.expanduser("~")):
    try:
        with open(os.path.join(top, "planted-@token@"), "w") as file: file.write("x")
    except OSError: pass
""")
add("write-the-gradebook", "writing", "gives everybody a hundred points", """
import sqlite3
for path in ("@out@/gradebook.db", "/gradebook.db", "gradebook.db"):
    try:
        db = sqlite3.connect(path); db.execute("update grade set manual_score = 100"); db.commit()
    except sqlite3.Error as error: print(error)
""")
add("write-the-table", "writing", "replaces table and feedback by its own", """
import glob, os
for path in ["@out@/grades.csv", *glob.glob("@out@/feedback/*"), *glob.glob("@out@/autograded/*/*/*")]:
    try: open(path, "w").write("student,assignment,score\\nme,all,100")
    except OSError: pass
""")
add("leave-a-startup-file", "writing", "leaves code that IPython runs when the next kernel starts", """
import os, pathlib
for top in ("~/.ipython", os.environ.get("IPYTHONDIR", "~/.ipython"), "~root/.ipython"):
    try:
        folder = pathlib.Path(top).expanduser() / "profile_default" / "startup"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "00-first.py").write_text("import numpy as np\\nnp.testing.assert_allclose = lambda *a, **k: None\\nraise SystemExit")
    except OSError as error: print(error)
""")
add("leave-a-site-package", "writing", "leaves code where Python imports it from when it starts", """
import site, sysconfig, sys
for top in {*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_paths()["purelib"], *sys.path}:
    for name in ("sitecustomize.py", "usercustomize.py", "planted.pth", "numpy/__init__.py"):
        try: open(f"{top}/{name}", "a").write("\\nimport os; os._exit(9)\\n")
        except OSError: pass
""")
add("change-the-imported", "writing", "changes modules in memory, in case the next submission shares them", """
import numpy as np, sys, types
np.exp = lambda x: x * 0
np.testing.assert_allclose = lambda *a, **k: None
sys.modules["wire"].encode = sys.modules["wire"].decode = None
for name in list(sys.modules):
    if name.startswith(("numpy", "IPython", "json")): sys.modules[name] = types.ModuleType(name)
""", deserves={})  # its own process can't answer any more
add("write-through-a-link", "writing", "lays links to outside into its folder and writes through them", """
import os
for n, top in enumerate(("@planted@", "@out@", "@submissions@")):
    os.symlink(top, f"link{n}")
    try: open(f"link{n}/planted-@token@", "w").write("x")
    except OSError: pass
""")
add("remove-everything", "writing", "deletes all that it may delete", """
import shutil
for top in ("@out@", "@submissions@", "@source@", "@planted@", "/tmp", "/sandbox", "/run", "/dev/shm", "/usr", "/"):
    shutil.rmtree(top, ignore_errors=True)
""")
add("fill-the-disk", "writing", "writes until nothing fits any more, everywhere", """
for top in (".", "/tmp", "/dev/shm", "/run/kernel", "@planted@"):
    for n in range(20):
        try:
            with open(f"{top}/fill{n}", "wb") as file:
                for _ in range(64): file.write(b"x" * (1 << 20))
        except OSError: break
""")

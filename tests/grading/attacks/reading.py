"""Looking for answers, hidden tests, other people's work and secrets.

TOKENS are replaced by the test: {source} the folder of sources, {out} the folder of results, {submissions} of submissions,
{root} the repository.
"""

from . import add

FIND = """
import os, glob
seen = []
for top in {places}:
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith((".ipynb", ".db", ".py", ".csv", ".html")):
                try: seen.append(open(os.path.join(folder, name), "rb").read().decode("utf-8", "replace"))
                except OSError: pass
print(len(seen), "".join(seen)[:400000])
"""
RUN_SOURCE = """
import glob, json
for path in glob.glob("@source@/**/*.ipynb", recursive=True):
    for cell in json.load(open(path))["cells"]:
        if cell["cell_type"] == "code":
            try: exec("".join(cell["source"]), globals())
            except Exception: pass
"""

add("read-the-source", "reading", "runs the cells of the source notebook by its path", RUN_SOURCE)
add("walk-the-course", "reading", "prints every file below the course, results and submissions",
    FIND.replace("{places}", "['@source@', '@out@', '@submissions@', '@root@']"))
add("walk-the-disk", "reading", "prints every notebook, database and module of the disk but the system's",
    FIND.replace("{places}", "[p for p in ('/home', '/root', '/tmp', '/var', '/srv', '/opt', '/mnt', '/etc', '/run', '/work')]"))
add("read-the-gradebook", "reading", "opens the database of grades, which holds the hidden tests as well", """
import sqlite3
db = sqlite3.connect("@out@/gradebook.db")
print(db.execute("select source from source_cell").fetchall(), db.execute("select * from grade").fetchall())
""")
add("read-executed-notebooks", "reading", "reads its own and others' executed notebooks, which hold the hidden tests", """
import glob
for path in glob.glob("@out@/**/*.ipynb", recursive=True): print(open(path).read())
""")
add("read-a-neighbour", "reading", "takes the answers of another submission", """
import glob, json
for path in glob.glob("@submissions@/*/*/*.ipynb"):
    for cell in json.load(open(path))["cells"]:
        exec("".join(cell["source"]), globals())
""")
add("read-by-a-program", "reading", "lets a program read what Python can't", """
import subprocess
print(subprocess.run("cat @out@/gradebook.db @source@/*/* @submissions@/*/*/*; find / -name '*.ipynb' 2>/dev/null",
                     shell=True, capture_output=True).stdout[:200000])
""")
add("read-through-processes", "reading", "follows the roots, folders and open files of other processes", """
import glob, os
for path in glob.glob("/proc/[0-9]*/root@source@/*/*.ipynb") + glob.glob("/proc/[0-9]*/cwd/*") + glob.glob("/proc/[0-9]*/fd/*"):
    try: print(path, os.readlink(path) if os.path.islink(path) else open(path).read()[:1000])
    except OSError: pass
""")
add("read-environments", "reading", "prints the environment of every process that it can see", """
import glob, os
print(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try: print(path, open(path).read())
    except OSError: pass
""")
add("import-the-reference", "reading", "imports the course's own implementation", """
from lib.functional import softmax
""")
add("import-by-path", "reading", "loads the course's implementation from its file", """
import importlib.util, sys
sys.path[:0] = ["@root@", "@root@/lib", "@root@/grading", "@root@/grading/inside"]
spec = importlib.util.spec_from_file_location("functional", "@root@/lib/functional.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
softmax = module.softmax
""")
add("import-the-grader", "reading", "imports the grader's checks and its tables of mistakes", """
import grading.checks, grading.mutants, grading.trusted
print(grading.checks.checks_of("ex04-attention"))
""")
add("search-the-memory", "reading", "searches objects and pages of its own process for traces of tests", """
import gc, re
found = [str(o)[:300] for o in gc.get_objects() if isinstance(o, (str, bytes, dict)) and "@token@"[:6] in str(o)[:10000]]
print(found[:50])
with open("/proc/self/mem", "rb", 0) as memory:
    for line in open("/proc/self/maps"):
        start, end, mode = re.match(r"(\\w+)-(\\w+) (\\S+)", line).groups()
        if "r" in mode and int(end, 16) - int(start, 16) < 1 << 26:
            try:
                memory.seek(int(start, 16)); data = memory.read(int(end, 16) - int(start, 16))
                for hit in re.finditer(b"wanted|hidden_input", data): print(data[hit.start() - 200:hit.end() + 400])
            except (OSError, ValueError, OverflowError): pass
""")
add("follow-a-link", "reading", "makes links to the course's files in its folder and reads through them", """
import os
os.symlink("@source@", "here"); os.symlink("@out@/gradebook.db", "db")
for name in ("here/toy-attention/toy-attention.ipynb", "db"):
    try: print(open(name, "rb").read())
    except OSError as error: print(error)
""")
add("load-a-pickled-neighbour", "reading", "evaluates whatever lies in shared memory and temporary folders", """
import glob, pickle
for path in glob.glob("/dev/shm/*") + glob.glob("/tmp/*") + glob.glob("/var/tmp/*"):
    try: print(path, open(path, "rb").read()[:1000])
    except OSError: pass
""")
add("look-behind-mounts", "reading", "mounts and looks behind what covers the course's folders", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for top in (b"@root@", b"/tmp", b"/proc"):
    libc.umount2(top, 2)
libc.unshare(0x10020000); libc.mount(b"proc", b"/tmp", b"proc", 0, None); libc.chroot(b"/proc/1/root")
for top in ("@root@", "@source@", "@out@", "/tmp/1/root"):
    try: print(top, os.listdir(top))
    except OSError as error: print(error)
""")

add("use-inherited-descriptors", "reading", "reads, seeks and follows every descriptor that it was born with", """
import os, stat
for n in range(1024):
    try:
        kind = os.fstat(n).st_mode
        print(n, os.readlink(f"/proc/self/fd/{n}"), stat.filemode(kind))
        if stat.S_ISDIR(kind): print(os.listdir(n), os.listdir(os.open("..", os.O_RDONLY, dir_fd=n)))
        if stat.S_ISREG(kind) or stat.S_ISFIFO(kind): print(os.pread(n, 10000, 0))
    except OSError: pass
for pid in os.listdir("/proc"):
    if pid.isdigit():
        for name in ("fd", "root", "cwd", "map_files"):
            try: print(pid, name, os.listdir(f"/proc/{pid}/{name}"))
            except OSError: pass
""")

"""一门课的 JupyterHub：真实的系统用户，nbgrader 自带的文件交换，老师的 Formgrader 通过沙箱评分。

    make hub                                  # 第一次会安装 JupyterHub 与它的代理
    sudo make hub HUB_TEACHERS=wang           # 真的上课：以 root 运行，学生是系统用户，用系统密码登录

Who is named in HUB_TEACHERS gets the course folder and the formgrader; everybody else only fetches and submits. All settings
come from the environment (deploy/README.md lists them), so the same file serves a class and the end-to-end test.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
STATE = Path(os.environ.get("HUB_STATE", ROOT / ".hub"))
EXCHANGE = Path(os.environ.get("HUB_EXCHANGE", "/srv/nbgrader/exchange"))
COURSE = os.environ.get("HUB_COURSE", str(ROOT))  # the teacher's clone of the course
TEACHERS = set(os.environ.get("HUB_TEACHERS", "teacher").split())
STUDENTS = set(os.environ.get("HUB_STUDENTS", "").split())
PYTHON = os.environ.get("HUB_PYTHON", sys.executable)  # every user must be able to run it
PREFIX = os.environ.get("HUB_PREFIX", sys.prefix)  # where JupyterLab and nbgrader are installed

c = get_config()  # noqa: F821  JupyterHub provides it

c.JupyterHub.bind_url = os.environ.get("HUB_URL", "http://127.0.0.1:8000")
c.JupyterHub.hub_connect_ip = "127.0.0.1"
c.JupyterHub.db_url = f"sqlite:///{STATE}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(STATE / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(STATE / "proxy.pid")
c.ConfigurableHTTPProxy.command = [str(STATE / "node_modules" / ".bin" / "configurable-http-proxy")]
if port := os.environ.get("HUB_PROXY_API_PORT"):
    c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{port}"
if port := os.environ.get("HUB_PORT"):
    c.JupyterHub.hub_port = int(port)

# PAM asks the system's passwords; "dummy" with one password for all is for trying out.
c.JupyterHub.authenticator_class = os.environ.get("HUB_AUTHENTICATOR", "pam")
c.Authenticator.admin_users = TEACHERS
if STUDENTS:
    c.Authenticator.allowed_users = STUDENTS | TEACHERS
else:
    c.Authenticator.allow_all = True
if password := os.environ.get("HUB_DUMMY_PASSWORD"):
    c.DummyAuthenticator.password = password

# Servers run as their own users, with nothing of the hub's environment but this.
c.Spawner.cmd = [PYTHON, "-m", "jupyterhub.singleuser"]
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = int(os.environ.get("HUB_START_TIMEOUT", "120"))
c.Spawner.env_keep = ["LANG", "LC_ALL"]
c.Spawner.environment = {
    "PATH": f"{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": os.environ.get("HUB_PYTHONPATH", ""),
    "JUPYTER_PATH": f"{PREFIX}/share/jupyter", "JUPYTERLAB_DIR": f"{PREFIX}/share/jupyter/lab",
    "NBGRADER_EXCHANGE": str(EXCHANGE), "COURSE_ROOT": COURSE,
}


def prepare(spawner):
    """Teachers get the formgrader and the course folder, students the list of assignments."""
    role = "teacher" if spawner.user.name in TEACHERS else "student"
    spawner.environment["JUPYTER_CONFIG_PATH"] = f"{HERE / role}:{PREFIX}/etc/jupyter"
    if role == "teacher":
        spawner.notebook_dir = COURSE


c.Spawner.pre_spawn_hook = prepare

# The exchange: students may go through it and add to `inbound`, nothing else.
EXCHANGE.mkdir(parents=True, exist_ok=True)
EXCHANGE.chmod(0o777)  # nbgrader insists; course folders below are the teacher's

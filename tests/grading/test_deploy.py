"""What can be checked of deploy/ without a cluster."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def yaml_text(name):
    return (DEPLOY / "kubernetes" / name).read_text("utf-8")


def test_every_yaml_file_can_be_read():
    for path in DEPLOY.rglob("*.yaml"):
        assert [document for document in yaml.safe_load_all(path.read_text("utf-8")) if document], path


def test_python_in_values_and_configs_compiles():
    values = yaml.safe_load(yaml_text("values.yaml"))
    for source in values["hub"]["extraConfig"].values():
        ast.parse(source)
    for path in DEPLOY.rglob("*.py"):
        ast.parse(path.read_text("utf-8"))


def test_the_exchange_is_reachable_and_the_gradebook_is_not():
    values = yaml.safe_load(yaml_text("values.yaml"))
    roles = values["hub"]["loadRoles"]
    assert all("access:services!service=ngshare" in roles[name]["scopes"] for name in ("user", "server"))
    assert "GRADEBOOK_URL" not in values["singleuser"]["extraEnv"]  # the teacher's server alone gets it
    assert values["singleuser"]["networkPolicy"]["egressAllowRules"]["privateIPs"] is False


def test_policies_speak_of_pods_that_there_are():
    """A selector that matches nothing shuts a way that is needed, or leaves one open that is not."""
    dask, values = yaml_text("dask.yaml"), yaml_text("values.yaml")
    documents = list(yaml.safe_load_all(dask))
    labels = {tuple(d["spec"]["template"]["metadata"]["labels"].items())[0] for d in documents if d["kind"] == "Deployment"}
    teacher = re.search(r'extra_labels = \{"([\w-]+)": "([\w-]+)"\}', values).groups()
    # Other people's charts give theirs these labels; PostgreSQL's are the reader's to fill in.
    known = labels | {teacher, ("app.kubernetes.io/name", "ngshare"), ("k8s-app", "kube-dns"), ("app", "postgres")}
    used = set(re.findall(r"podSelector: \{matchLabels: \{([\w./-]+): ([\w-]+)\}\}", values + dask))
    assert used and used <= known
    closed = {tuple(d["spec"]["podSelector"]["matchLabels"].items())[0]: set(d["spec"]["policyTypes"]) for d in documents
              if d["kind"] == "NetworkPolicy"}
    assert "Ingress" in closed["app", "grading-scheduler"] and closed["app", "grading-worker"] == {"Ingress", "Egress"}


@pytest.mark.sandbox
def test_the_grader_runs_where_it_was_copied_and_not_installed(tmp_path):
    """As in the image: the packages on the path, without what an installation would have told Jupyter."""
    code = ("import sys\nsys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in str(f).lower()]\n"
            "import importlib.metadata as m\nreal = m.entry_points\n"
            "m.entry_points = lambda **k: [e for e in real(**k) if 'grading' not in e.value]\n"
            "from grading.kernels import StudentKernel\n"
            "with StudentKernel().ready() as kernel: print(kernel.run('print(6 * 7)').outputs[0].text)")
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert run.stdout.strip() == "42", run.stderr


def test_students_images_hold_no_sources():
    student = (DEPLOY / "image" / "Dockerfile").read_text("utf-8")
    assert not re.search(r"^COPY.*\b(solutions|grading|claims)\b", student, re.M)
    copied = re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", student + (DEPLOY / "image" / "Teacher.Dockerfile").read_text("utf-8"), re.M)
    missing = [name for names in copied for name in names.split() if not (ROOT / name).exists()]
    assert not missing


def test_versions_agree():
    pins = lambda path: dict(re.findall(r"^([\w.-]+)==([\w.]+)", path.read_text("utf-8"), re.M))
    hub = pins(DEPLOY / "jupyterhub" / "requirements.txt")
    image = pins(DEPLOY / "image" / "hub-requirements.txt")
    assert hub["jupyterhub"] == image["jupyterhub"]
    assert not set(image) & set(pins(ROOT / "requirements.in"))


def test_the_workers_of_a_cluster_may_make_sandboxes_and_see_no_secrets():
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "dask.yaml").read_text("utf-8")))
    worker = next(d for d in documents if d["metadata"]["name"] == "grading-worker")["spec"]["template"]["spec"]
    assert worker["hostUsers"] is False and worker["automountServiceAccountToken"] is False
    assert worker["containers"][0]["securityContext"]["procMount"] == "Unmasked" and "env" not in worker["containers"][0]

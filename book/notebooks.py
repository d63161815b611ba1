"""Run notebooks in a fresh kernel and store what readers on GitHub and Colab see: text outputs, no pictures.

    python -m book.notebooks store chapters/04-attention.ipynb     run it, store its text outputs
    python -m book.notebooks edit  chapters/04-attention.ipynb     write 04-attention.md (MyST) beside it for editing
    python -m book.notebooks write chapters/04-attention.md        make or update the .ipynb from that .md, then delete the .md

The book build executes every notebook again; stored outputs exist for nbval and for readers without a build.
"""

import re
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# Pictures and scripts are made anew by the build; storing them would bloat the repository and hide drift.
DROPPED = ("image/png", "image/svg+xml", "image/jpeg", "application/pdf", "application/vnd.jupyter.widget-view+json")


def clean(nb):
    """Remove everything that differs from run to run or from machine to machine; keep text outputs and cell ids."""
    nb.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    for position, cell in enumerate(nb.cells):
        # jupytext makes random ids when a notebook is first written; ids by place keep the file reproducible.
        cell["id"] = f"c{position:03d}"
        cell.metadata.pop("execution", None)
        cell.metadata.pop("ExecuteTime", None)
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        kept = []
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                continue  # progress bars and warnings are not part of the text
            output.pop("execution_count", None)
            if output.output_type == "execute_result":
                output["execution_count"] = None
            for mime in DROPPED:
                output.get("data", {}).pop(mime, None)
            kept.append(output)
        cell.outputs = kept
    return nb


def store(path, timeout=600):
    """Execute the notebook where it lies and write its text outputs back."""
    nb = nbformat.read(path, as_version=4)
    nb.metadata["kernelspec"] = KERNELSPEC
    # One output a stream: where the kernel happens to flush differs from run to run.
    NotebookClient(nb, timeout=timeout, kernel_name="python3", coalesce_streams=True,
                   resources={"metadata": {"path": str(path.parent)}}).execute()
    write(nb, path)


def write(nb, path):
    clean(nb)
    nb.nbformat, nb.nbformat_minor = 4, 5
    text = nbformat.writes(nb, version=4)
    path.write_text(re.sub(r"\s+\Z", "\n", text + "\n"), encoding="utf-8")


def main(argv):
    command, *names = argv
    for path in map(Path, names):
        if command == "store":
            store(path)
        elif command == "edit":
            jupytext.write(nbformat.read(path, as_version=4), path.with_suffix(".md"), fmt="md:myst")
        elif command == "write":
            target = path.with_suffix(".ipynb")
            write(jupytext.read(path, fmt="md:myst"), target)
            store(target)
            path.unlink()
        else:
            sys.exit(__doc__)
        print(f"{command} {path}")


if __name__ == "__main__":
    main(sys.argv[1:])

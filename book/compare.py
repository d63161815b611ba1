"""python -m book.compare: this book beside plain Jupyter Book 1.x, the same notebooks in one run.

Both sites are made from the same executed notebooks, lie behind the same server (gzip), and are opened in turns by the
same Chromium with an empty cache, as a phone on a slow 4G network (1.6 Mbit/s, 150 ms, a processor four times slower).
Plain Jupyter Book gets its MathJax from that server too: the same file as from jsDelivr, without the way there.
"""

import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import yaml

from book import build, chromium, execute, node
from book.serve import serve

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "_build" / "compare"
ROUNDS = 3
LIMIT = 0.40
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8}
PLAIN = {
    "title": "Plain",
    "only_build_toc_files": True,
    "execute": {"execute_notebooks": "off"},
    "bibtex_bibfiles": ["chapters/references.bib"],
    "sphinx": {"config": {"mathjax_path": "mathjax/tex-mml-chtml.js", "html_extra_path": ["vendor"]}},
}
WATCH = "new PerformanceObserver(l => { globalThis.lcp = l.getEntries().at(-1).startTime; }).observe({type: 'largest-contentful-paint', buffered: true})"


def build_plain(report=print):
    """The same executed notebooks by Jupyter Book as it comes; warnings (it doesn't know our roles) are no matter."""
    documents = execute.run(ROOT, ROOT / "_build", report=report)
    source = OUTPUT / "source"
    shutil.rmtree(source, ignore_errors=True)
    for name, path in documents.items():
        target = source / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(ROOT / "chapters" / "references.bib", source / "chapters")
    (source / "index.md").write_text("# Plain\n", encoding="utf-8")
    (source / "_config.yml").write_text(yaml.safe_dump(PLAIN), encoding="utf-8")
    toc = {"format": "jb-book", "root": "index", "chapters": [{"file": name} for name in documents]}
    (source / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    mathjax = node.install(report, node.HERE / "plain") / "mathjax" / "es5"
    shutil.copytree(mathjax, source / "vendor" / "_static" / "mathjax")
    command = [sys.executable, "-m", "book.jupyter_book", "build", str(source), "--path-output", str(OUTPUT), "-q"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    site = OUTPUT / "_build" / "html"
    missing = [name for name in documents if not (site / f"{name}.html").exists()]
    if done.returncode or missing:
        sys.exit(f"对照用的 Jupyter Book 没有建成：{done.stderr[-2000:]}")
    return site, [name for name in documents if name.split("/")[1][:2].isdigit()]


def load(browser, url):
    """What one visit costs: {bytes, requests, milliseconds to the largest text or picture, to everything}."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="zh-CN")
    page, received = context.new_page(), []
    client = context.new_cdp_session(page)
    client.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    client.send("Network.enable")
    client.send("Network.emulateNetworkConditions", SLOW_4G)
    client.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.add_init_script(WATCH)
    start = time.perf_counter()
    page.goto(url, wait_until="networkidle", timeout=180_000)
    settled = time.perf_counter() - start - 0.5  # "idle" means half a second without traffic
    lcp = page.evaluate("globalThis.lcp ?? performance.now()")
    # Pictures further down count too, whether or not a page waits with them until they are near.
    page.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    page.wait_for_function("[...document.images].every(i => i.complete)", timeout=180_000)
    page.wait_for_timeout(1_000)  # what arrived last is still being counted
    context.close()
    return {"bytes": sum(received), "requests": len(received), "lcp": lcp, "settled": settled * 1000}


def measure(browser, sites, names, rounds=ROUNDS, report=print):
    """{page: {site: medians}}; the sites take turns, so that a busy moment hits both."""
    results = {name: {kind: [] for kind in sites} for name in names}
    for name in names:
        for _ in range(rounds):
            for kind, address in sites.items():
                results[name][kind].append(load(browser, f"{address}/{name}.html"))
        report(f"  {name}")
    return {
        name: {kind: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for kind, runs in kinds.items()}
        for name, kinds in results.items()
    }


def table(results):
    lines = ["| 页 | 本书 kB | 原样的 Jupyter Book kB | 比例 | 请求数 | 主要内容出现，秒 | 全部到齐，秒 |", "|---|---|---|---|---|---|---|"]
    for name, sites in results.items():
        ours, plain = sites["book"], sites["plain"]
        lines.append(
            f"| {name.split('/')[1]} | {ours['bytes'] / 1e3:.0f} | {plain['bytes'] / 1e3:.0f} | {ours['bytes'] / plain['bytes']:.0%} "
            f"| {ours['requests']:.0f} / {plain['requests']:.0f} | {ours['lcp'] / 1e3:.1f} / {plain['lcp'] / 1e3:.1f} "
            f"| {ours['settled'] / 1e3:.1f} / {plain['settled'] / 1e3:.1f} |"
        )
    return "\n".join(lines)


def run(rounds=ROUNDS, report=print):
    with chromium.starter() as start:  # first, as it says at once what is missing
        book = build.run(ROOT, ROOT / "_build", report=report)
        plain, names = build_plain(report)
        with serve(book) as ours, serve(plain) as theirs:
            results = measure(start(), {"book": ours, "plain": theirs}, names, rounds, report)
    (OUTPUT / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return results


def main():
    results = run()
    print("\n" + table(results))
    heavy = [name for name, sites in results.items() if sites["book"]["bytes"] > LIMIT * sites["plain"]["bytes"]]
    if heavy:
        sys.exit(f"超过 {LIMIT:.0%}：{'、'.join(heavy)}")


if __name__ == "__main__":
    main()

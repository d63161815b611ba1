// Run and change the code of a page in the page: Python in a worker, no server, nothing from another host.
// Loaded by book.js when the reader asks for it. Edits are kept in this browser (localStorage) and can be undone.
(() => {
  "use strict";
  const here = new URL(".", document.currentScript.src).href; // …/_static/pyrun/
  const T = {
    run: "运行", reset: "还原", all: "从头运行全部", stop: "停止", resetAll: "全部还原",
    loading: "正在载入 Python（第一次约 10 MB，之后由浏览器缓存）…", running: "运行中…", waiting: "排队中…",
    stopped: "已停止，变量已清空；再次运行会从本页开头重新开始。", ready: "Python 已就绪。改一改，按 Ctrl + Enter 运行。",
    edit: "可以修改的 Python 代码；按 Ctrl 加 Enter 运行，按 Esc 离开",
  };

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  // The text of an editable <pre>: what Enter inserts is a <br> in some browsers, a <div> in others.
  const textOf = (node) => [...node.childNodes].map((child) => {
    if (child.nodeType === Node.TEXT_NODE) return child.data;
    if (child.nodeName === "BR") return "\n";
    return (/^(DIV|P)$/.test(child.nodeName) && child.previousSibling ? "\n" : "") + textOf(child);
  }).join("");
  // A browser may forbid pages to keep anything; then edits last as long as the page.
  const memory = (act) => { try { return act(localStorage); } catch { return null; } };
  const button = (text, className, onclick) => element("button", { type: "button", className, textContent: text, onclick });

  // ------------------------------------------------------------------ the worker: one request at a time

  let worker, pending, sequence = 0;

  function start() {
    worker = new Worker(here + "worker.js");
    worker.onmessage = ({ data }) => {
      if (!pending || data.id !== pending.id) return;
      if (data.type === "done") { const { done } = pending; pending = undefined; done(data); } else pending.on(data);
    };
    worker.onerror = (event) => {
      if (!pending) return;
      const { done } = pending;
      pending = undefined;
      done({ error: `Python 没有载入：${event.message ?? "浏览器不允许"}` });
    };
  }

  const ask = (code, name, on) =>
    new Promise((done) => {
      if (!worker) start();
      pending = { id: ++sequence, done, on };
      worker.postMessage({ id: sequence, code, name });
    });

  // ------------------------------------------------------------------ cells

  const cells = [];
  let setup = ""; // code that the page doesn't show and that its cells need
  let status, stopButton, queue = Promise.resolve(), generation = 0;

  class Cell {
    constructor(box, index) {
      this.box = box;
      this.index = index;
      this.ran = false;
      this.pre = box.querySelector(".cell_input pre");
      this.original = this.pre.textContent.replace(/\n$/, "");
      this.markup = this.pre.innerHTML;
      this.key = `pyrun:${location.pathname}:${index}:${hash(this.original)}`;
      this.note = element("span", { className: "pyrun-note" });
      this.note.setAttribute("role", "status");
      this.resetButton = button(T.reset, "pyrun-reset", () => { this.reset(); this.pre.focus(); });
      this.runButton = button(T.run, "pyrun-run", () => run(this));
      this.runButton.setAttribute("aria-label", `${T.run}第 ${index + 1} 个单元`);
      this.resetButton.setAttribute("aria-label", `${T.reset}第 ${index + 1} 个单元的代码`);
      this.resetButton.hidden = true;
      box.querySelector(".cell_input").append(element("div", { className: "pyrun-bar" }, this.runButton, this.resetButton, this.note));
      this.makeEditable();
      const saved = memory((storage) => storage.getItem(this.key));
      if (saved !== null && saved !== this.original) this.write(saved);
    }

    makeEditable() {
      const { pre } = this;
      pre.contentEditable = "plaintext-only";
      if (pre.contentEditable !== "plaintext-only") pre.contentEditable = "true";
      pre.spellcheck = false;
      for (const [name, value] of [["role", "textbox"], ["aria-multiline", "true"], ["aria-label", T.edit], ["tabindex", "0"]]) pre.setAttribute(name, value);
      pre.addEventListener("input", () => this.changed());
      pre.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(this); }
        if (event.key === "Escape") pre.blur();
      });
    }

    get code() { return textOf(this.pre).replace(/\n$/, ""); }

    write(text) { this.pre.textContent = text; this.changed(); }

    changed() {
      const edited = this.code !== this.original;
      this.resetButton.hidden = !edited;
      this.box.classList.toggle("pyrun-edited", edited);
      memory((storage) => edited ? storage.setItem(this.key, this.code) : storage.removeItem(this.key));
    }

    reset() { this.pre.innerHTML = this.markup; this.changed(); }

    async run() {
      const mine = generation;
      let output = this.box.querySelector(".cell_output");
      if (!output) this.box.append(output = element("div", { className: "cell_output docutils container" }));
      output.replaceChildren();
      this.runButton.disabled = true;
      this.note.textContent = worker ? T.running : T.loading;
      const began = performance.now();
      if (!worker && setup) await ask(setup, "开头", () => {});
      if (mine !== generation) { this.note.textContent = ""; return false; }
      const result = await ask(this.code, `单元 ${this.index + 1}`, (message) => {
        if (message.type === "started") this.note.textContent = T.running;
        if (message.type === "text") appendText(output, message.text, message.stream);
        if (message.type === "html") output.append(element("div", { className: "output text_html", innerHTML: message.html }));
        if (message.type === "figure") {
          const alt = `第 ${this.index + 1} 个单元刚刚画出的图`;
          output.append(element("img", { className: "pyrun-figure", src: URL.createObjectURL(new Blob([message.svg], { type: "image/svg+xml" })), alt }));
        }
      });
      this.runButton.disabled = false;
      if (mine !== generation) { this.note.textContent = ""; return false; }
      if (result.error) output.append(element("pre", { className: "pyrun-error", textContent: result.error }));
      if (result.hint) output.append(element("p", { className: "pyrun-hint", textContent: result.hint }));
      this.note.textContent = result.hint ? "在这里运行不了，说明在下面" : result.error ? "出错了，见下面最后一行" : `用时 ${((performance.now() - began) / 1000).toFixed(1)} 秒`;
      // What can't run in a browser at all is passed over: the cells after it may well run.
      this.ran = !result.error || Boolean(result.hint);
      return this.ran;
    }
  }

  function appendText(output, text, stream) {
    let last = output.lastElementChild;
    if (!last || !last.matches("pre.pyrun-out") || last.dataset.stream !== stream) {
      last = element("pre", { className: "pyrun-out", tabIndex: 0 });
      last.dataset.stream = stream;
      output.append(last);
    }
    last.append(text);
  }

  const hash = (text) => { let h = 5381; for (const c of text) h = (h * 33 + c.codePointAt(0)) >>> 0; return h.toString(36); };

  // A cell needs what stands above it: whatever hasn't run since Python started runs first, in order.
  function run(cell, from = cells.findIndex((c) => !c.ran)) {
    const mine = generation;
    const first = from < 0 || from > cell.index ? cell.index : from;
    const wanted = cells.slice(first, cell.index + 1).filter((c) => c === cell || !c.ran);
    for (const c of wanted) { c.note.textContent = T.waiting; c.runButton.disabled = true; }
    stopButton.disabled = false;
    queue = queue.then(async () => {
      for (const c of wanted) {
        if (mine !== generation) break;
        status.textContent = worker ? `运行第 ${c.index + 1} 个单元（共 ${cells.length} 个）…` : T.loading;
        if (!(await c.run())) break;
        status.textContent = T.ready;
      }
      for (const c of wanted) { c.runButton.disabled = false; if (c.note.textContent === T.waiting) c.note.textContent = ""; }
      stopButton.disabled = !pending;
    });
    return queue;
  }

  // Only ending the worker stops any loop at all, on any host; its variables go with it.
  function stop() {
    generation++;
    worker?.terminate();
    worker = undefined;
    pending?.done({});
    pending = undefined;
    for (const cell of cells) { cell.ran = false; cell.runButton.disabled = false; cell.note.textContent = ""; }
    stopButton.disabled = true;
    status.textContent = T.stopped;
  }

  globalThis.pyrunStart = (panel) => {
    for (const box of document.querySelectorAll("div.cell")) if (box.querySelector(".cell_input pre")) cells.push(new Cell(box, cells.length));
    setup = JSON.parse(panel.querySelector(".pyrun-setup")?.textContent ?? '""');
    status = element("p", { className: "pyrun-status", textContent: T.ready.replace("Python 已就绪。", "") });
    status.setAttribute("role", "status");
    stopButton = button(T.stop, "pyrun-stop", stop);
    stopButton.disabled = true;
    const runAll = button(T.all, "pyrun-all", () => { if (pending) stop(); for (const c of cells) c.ran = false; run(cells.at(-1), 0); });
    const resetAll = button(T.resetAll, "pyrun-reset-all", () => cells.forEach((c) => c.reset()));
    panel.replaceChildren(element("div", { className: "pyrun-tools" }, runAll, stopButton, resetAll), status);
    document.documentElement.classList.add("pyrun-on");
    runAll.focus();
  };
})();

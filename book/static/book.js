// Small things on every page: names for assistive software, and the search, whose data are loaded only when asked for.
(() => {
  "use strict";
  const here = new URL(".", document.currentScript.src).href; // …/_static/
  const root = new URL("../", here).href;

  const loadScript = (name) =>
    new Promise((done, failed) => {
      const script = Object.assign(document.createElement("script"), { src: `${here}${name}?v=@version@`, onload: done, onerror: failed });
      document.head.append(script);
    });

  let engine;
  const search = () => (engine ??= Promise.all([loadScript("search.js"), loadScript("search-data.js")]).then(() => new BookSearch(bookSearchData)));

  const element = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text ?? "" });

  // The excerpt with the query's words marked.
  const marked = (text, words) => {
    const span = element("span", "result-text");
    const pattern = words.filter(Boolean).map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    if (!pattern) { span.textContent = text; return span; }
    text.split(new RegExp(`(${pattern})`, "i")).forEach((piece, i) => span.append(i % 2 ? element("mark", "", piece) : piece));
    return span;
  };

  async function show(query, box) {
    if (!query.trim()) { box.replaceChildren(); return; }
    const hits = (await search()).search(query);
    const summary = !hits.length ? "没有找到。换个说法，或缩短一些再试。"
      : hits[0].kind === "similar" ? "没有完全一致的内容，下面是相近的：" : `找到 ${hits.length} 处`;
    const list = document.createElement("ol");
    const words = query.trim().split(/\s+/);
    for (const hit of hits) {
      const link = Object.assign(document.createElement("a"), { href: root + hit.url });
      link.append(element("span", "result-title", hit.title));
      if (hit.page) link.append(element("span", "result-page", hit.page));
      link.append(marked(hit.text, words));
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    box.replaceChildren(element("p", "book-search-summary", summary), list);
  }

  function setUpSearch() {
    const dialog = document.getElementById("pst-search-dialog");
    const page = document.querySelector(".bd-search-container");
    for (const form of document.querySelectorAll("form.bd-search")) {
      const input = form.querySelector("input");
      let box = page?.contains(form) ? page.querySelector(".book-search-results") : null;
      if (!box) {
        box = element("div", "book-search-results");
        box.setAttribute("role", "region");
        box.setAttribute("aria-live", "polite");
        box.setAttribute("aria-label", "搜索结果");
        dialog.append(box);
      }
      let timer;
      input.addEventListener("focus", () => search());
      input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => show(input.value, box), 120); });
    }
    if (page) {
      const query = new URLSearchParams(location.search).get("q") ?? "";
      const input = page.querySelector("input");
      input.value = query;
      input.focus();
      show(query, page.querySelector(".book-search-results"));
    }
    // A hit on this very page must close the dialog.
    dialog?.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });
  }

  // Python in the page: nothing of it is loaded before the reader asks for it.
  function setUpPython() {
    for (const start of document.querySelectorAll(".pyrun-start"))
      start.addEventListener("click", async () => {
        const panel = start.closest(".pyrun");
        if (location.protocol === "file:") {
          panel.querySelector(".pyrun-about").textContent =
            "从文件夹直接打开的页面，浏览器不允许运行 Python。在这个文件夹里执行 python3 -m http.server，再打开 http://localhost:8000 即可。";
          return;
        }
        start.disabled = true;
        await loadScript("pyrun/pyrun.js");
        pyrunStart(panel);
      });
  }

  // The whole book on this device, for a train without network: offered on the first page, kept up to date from all.
  async function setUpOffline() {
    const box = document.querySelector(".offline-reading");
    const can = navigator.serviceWorker && location.protocol !== "file:";
    if (box && !can) box.textContent = "用 https 或 localhost 的地址打开时，浏览器才能替你存下来；这样打开的页面存不了。";
    if (can && (box || navigator.serviceWorker.controller)) {
      await loadScript("../offline.js");
      await bookOffline(box);
    }
  }

  // The issue form also names the section that the reader is in.
  function setUpFeedback() {
    for (const link of document.querySelectorAll(".feedback-issue"))
      link.addEventListener("click", () => {
        const place = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
        const section = place?.closest("section");
        const heading = section?.querySelector("h1, h2, h3, h4");
        if (!heading) return;
        const url = new URL(link.href);
        const name = [...heading.childNodes].filter((n) => !n.classList?.contains("headerlink")).map((n) => n.textContent).join("");
        url.searchParams.set("body", url.searchParams.get("body").replace(/小节：.*/, `小节：${name.trim()}（#${section.id}）`));
        link.href = url.href;
      });
  }

  document.addEventListener("DOMContentLoaded", () => { setUpSearch(); setUpPython(); setUpFeedback(); setUpOffline(); });
})();

// The whole book on the reader's device. As a script of a page it keeps the site's files in this browser; as the site's
// service worker the same file gives them out, with or without a network. It lies at the root, as a worker must.
(() => {
  "use strict";
  const inWorker = "ServiceWorkerGlobalScope" in globalThis;
  const root = inWorker ? registration.scope : new URL(".", document.currentScript.src).href;
  const CACHE = `book:${root}`; // one host may carry several books
  const LIST = `${root}offline.json`; // {book, python}: {file: SHA-256}; in the cache: {files, python}, what is kept
  const place = (name, digest) => `${root}${encodeURI(name)}?kept=${digest}`; // a changed file gets another place
  const find = (address) => caches.match(address, { cacheName: CACHE });
  const kept = async () => (await find(LIST))?.json();

  // ------------------------------------------------------------------ the worker

  async function answer(request, name) {
    const digest = (await kept())?.files[name];
    return (digest && (await find(place(name, digest)))) || fetch(request);
  }

  if (inWorker) {
    addEventListener("install", () => skipWaiting());
    addEventListener("activate", (event) => event.waitUntil(clients.claim()));
    addEventListener("fetch", (event) => {
      const { request } = event, address = request.url.split(/[?#]/)[0];
      // "no-store" is how `keep` asks: past everything that is kept.
      if (request.method === "GET" && address.startsWith(root) && request.cache !== "no-store")
        event.respondWith(answer(request, decodeURI(address.slice(root.length)) || "index.html"));
    });
    return;
  }

  // ------------------------------------------------------------------ the page

  async function get(url, cache) {
    const response = await fetch(url, { cache });
    if (!response.ok) throw new Error(`${url} 取不到（${response.status}）`);
    return response;
  }

  const explained = (error) => error.name === "QuotaExceededError" ? "这台设备给浏览器的空间不够" : error instanceof TypeError ? "连不上网络" : error.message;

  const sha256 = async (data) => [...new Uint8Array(await crypto.subtle.digest("SHA-256", data))].map((b) => b.toString(16).padStart(2, "0")).join("");

  // Fetch what is new, then change over, then drop what is gone: broken off anywhere, the book that was kept still stands,
  // and the next try goes on from there.
  async function keep(python, report = () => {}) {
    const list = await (await get(LIST, "no-cache")).json(); // unchanged, it isn't sent again
    const files = { ...list.book, ...(python ? list.python : {}) };
    if (JSON.stringify((await kept())?.files) === JSON.stringify(files)) return;
    const cache = await caches.open(CACHE), names = Object.keys(files), count = names.length;
    let done = 0;
    const fetchSome = async () => {
      for (let name; (name = names.pop()) !== undefined; report(++done, count)) {
        const target = place(name, files[name]);
        if (await cache.match(target)) continue;
        const response = await get(root + encodeURI(name), "no-store"), data = await response.arrayBuffer();
        // Hosts renew their copies file by file: pages and styles of different days would not fit each other.
        if ((await sha256(data)) !== files[name]) throw new Error("网站正在更新，过几分钟再试");
        await cache.put(target, new Response(data, { headers: { "Content-Type": response.headers.get("Content-Type") ?? "" } }));
      }
    };
    await Promise.all(Array.from({ length: 6 }, fetchSome));
    await cache.put(LIST, new Response(JSON.stringify({ files, python })));
    const wanted = new Set([LIST, ...Object.entries(files).map(([name, digest]) => place(name, digest))]);
    for (const { url } of await cache.keys()) if (!wanted.has(url)) await cache.delete(url);
  }

  async function drop() {
    await caches.delete(CACHE);
    await (await navigator.serviceWorker.getRegistration(root))?.unregister();
  }

  async function show(box, said = "") {
    const status = Object.assign(document.createElement("p"), { className: "offline-status", textContent: said });
    status.setAttribute("role", "status");
    const button = (text, act, after) => {
      const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
      made.addEventListener("click", async () => {
        for (const other of box.querySelectorAll("button")) other.disabled = true;
        try {
          await act();
          await show(box, after);
        } catch (error) {
          await show(box, `没有存完：${explained(error)}。已取到的还在，再按一次就接着存。`);
        }
        box.querySelector("button").focus();
      });
      return made;
    };
    const save = (text, python) => button(text, async () => {
      await navigator.serviceWorker.register(`${root}offline.js`, { scope: root });
      await navigator.storage?.persist?.(); // else a browser short of space may clear it away
      await keep(python, (done, count) => { status.textContent = `正在存：${done} / ${count} 个文件`; });
    }, "存好了。");
    const state = await kept(), { book, python } = box.dataset, total = Number(book) + Number(python ?? 0);
    const buttons = [];
    if (!state) buttons.push(save(`存下整本书（约 ${book} MB）`, false));
    if (python && !state?.python) buttons.push(save(state ? `再存下运行代码的 Python（约 ${python} MB）` : `连同运行代码的 Python 一起存（约 ${total} MB）`, true));
    if (state) buttons.push(button("从这台设备删除", drop, "已删除。"));
    status.textContent += !state ? "" : state.python ? "整本书和 Python 都在这台设备上：没有网络也能读、能运行。" : "整本书在这台设备上：没有网络也能读。";
    box.replaceChildren(...buttons, status);
  }

  // `box` is where the first page offers it; from any other page the book that is kept is only brought up to date.
  globalThis.bookOffline = async (box) => {
    if (box) await show(box);
    const state = await kept();
    if (state) await keep(state.python).catch(() => {}); // no network now: what is kept stands
  };
})();

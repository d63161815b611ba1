// The Python side of pyrun.js: Pyodide from this very site, `lib` and the book's small data unpacked beside the page.
importScripts("../pyodide/pyodide.js");
const here = new URL(".", self.location.href).href;
let ready;

async function boot() {
  const python = await loadPyodide({ indexURL: here + "../pyodide/" });
  const get = async (name) => (await fetch(here + name)).arrayBuffer();
  const [book, runner, lock] = await Promise.all(["book.zip", "runner.py", "../pyodide/pyodide-lock.json"].map(get));
  python.FS.mkdirTree("/home/book");
  python.FS.chdir("/home/book");
  python.unpackArchive(book, "zip");
  python.globals.set("LOCK", new TextDecoder().decode(lock));
  python.runPython(new TextDecoder().decode(runner));
  return python;
}

self.onmessage = async ({ data: { id, code, name } }) => {
  const send = (message) => self.postMessage({ id, ...message });
  try {
    const python = await (ready ??= boot());
    const needed = python.globals.get("needed")(code).toJs();
    if (needed.length) await python.loadPackage(needed, { messageCallback() {} });
    send({ type: "started" });
    const emit = (kind, payload) => send(kind === "figure" ? { type: "figure", svg: payload } : kind === "html" ? { type: "html", html: payload } : { type: "text", stream: kind, text: payload });
    const [error, hint] = python.globals.get("run")(code, name, emit).toJs();
    send({ type: "done", error, hint });
  } catch (error) {
    ready = undefined;
    send({ type: "done", error: `Python 没有载入：${error.message ?? error}` });
  }
};

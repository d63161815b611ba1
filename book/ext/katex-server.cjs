// One JSON line in ({tex, display}), one out ({html} or {error}). CommonJS: NODE_PATH only works for require().
const katex = require("katex");
const readline = require("node:readline");

function answer({ tex, display }) {
  try {
    return { html: katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: "error", output: "htmlAndMathml" }) };
  } catch (error) {
    return { error: error.message };
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\n");
});

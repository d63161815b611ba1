// One JSON line in ({tex, display}), one out ({html} or {error}). CommonJS: NODE_PATH only works for require().
const katex = require("katex");
const readline = require("node:readline");

// Chinese as a subscript (x_{你}) is fine; anything else that KaTeX would only warn of is an error.
const strict = (code, message, token) => (code === "unicodeTextInMathMode" && /[\u3400-\u9fff]/.test(token?.text ?? "") ? "ignore" : "error");

function answer({ tex, display }) {
  try {
    return { html: katex.renderToString(tex, { displayMode: display, throwOnError: true, strict, output: "htmlAndMathml" }) };
  } catch (error) {
    return { error: error.message };
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\n");
});

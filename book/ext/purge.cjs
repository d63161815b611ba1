// {css, content: [files]} on stdin; the style sheet without rules that can't match anything on stdout.
const { PurgeCSS } = require("purgecss");
const { css, content } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

new PurgeCSS()
  .purge({
    css: [{ raw: css }],
    content,
    keyframes: true, // not fontFace: it would not see fonts named in the `font` shorthand
    // Set by scripts or by the browser, so no page shows them.
    dynamicAttributes: ["data-theme", "data-mode", "data-bs-theme", "open", "aria-expanded", "aria-selected", "hidden", "disabled", "data-popper-placement", "data-bs-popper"],
    safelist: { standard: ["html", "body", ":root"], greedy: [/tooltip/, /pyrun/, /book-search/] },
  })
  .then(([result]) => process.stdout.write(result.css))
  .catch((error) => { console.error(error); process.exit(1); });

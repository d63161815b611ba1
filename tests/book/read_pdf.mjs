// node read_pdf.mjs MODULES FILE > {pages: [[{text, x, right, y}]], outline: [[title, depth, page]], links: {inside: [[page, page]], outside: [url]}, fonts: {name: embedded}}
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [modules, file] = process.argv.slice(2);
const base = `${modules}/pdfjs-dist/`;
const { getDocument, OPS } = await import(pathToFileURL(`${base}legacy/build/pdf.mjs`));
const pdf = await getDocument({ data: new Uint8Array(readFileSync(file)), cMapUrl: `${base}cmaps/`, cMapPacked: true, standardFontDataUrl: `${base}standard_fonts/`, verbosity: 0 }).promise;

const pages = [], fonts = {}, links = { inside: [], outside: [] };
for (let number = 1; number <= pdf.numPages; number++) {
  const page = await pdf.getPage(number);
  const { items } = await page.getTextContent({ disableNormalization: true });
  pages.push({ width: page.view[2], items: items.filter((i) => i.str).map((i) => ({ text: i.str, x: i.transform[4], y: i.transform[5], right: i.transform[4] + i.width })) });
  for (const link of await page.getAnnotations()) {
    if (link.subtype !== "Link") continue;
    if (link.url) links.outside.push(link.url);
    else {
      const dest = typeof link.dest === "string" ? await pdf.getDestination(link.dest) : link.dest;
      if (dest) links.inside.push([number, 1 + (await pdf.getPageIndex(dest[0]))]);
      else links.outside.push(`dead: ${link.unsafeUrl ?? JSON.stringify(link.dest ?? null)}`);
    }
  }
  const list = await page.getOperatorList();
  for (const name of new Set(list.fnArray.flatMap((fn, i) => (fn === OPS.setFont ? [list.argsArray[i][0]] : [])))) {
    const font = await new Promise((done) => page.commonObjs.get(name, done));
    fonts[font.name] = !font.missingFile;
  }
  page.cleanup();
}
const outline = [];
async function walk(items, depth) {
  for (const item of items ?? []) {
    const dest = typeof item.dest === "string" ? await pdf.getDestination(item.dest) : item.dest;
    outline.push([item.title, depth, dest ? await pdf.getPageIndex(dest[0]) : -1]);
    await walk(item.items, depth + 1);
  }
}
await walk(await pdf.getOutline(), 1);
process.stdout.write(JSON.stringify({ pages, outline, links, fonts }), () => process.exit(0)); // not before a pipe has taken it all

// node interactive.cjs < calls.json > answers.json : runs the very scripts of the interactive pages.
// A call is [function, …arguments]. -Infinity travels as the string "-inf"; rows of matrices (Float64Array) come back as
// {"f64": base64}, which is exact and a fraction of the work.
const path = require("node:path"), fs = require("node:fs");
const book = path.resolve(__dirname, "../../book");
const N = require(path.join(book, "explorers/numerics.js"));
const E = require(path.join(book, "journey/engine.js"));
const load = (file) => (0, eval)(fs.readFileSync(path.join(book, file), "utf8")); // as the page's <script> does

let tokenizer;
const models = new Map();
function model(name) {
  if (!globalThis.JOURNEY_DATA) load("journey/weights.js");
  tokenizer ??= new E.Tokenizer(globalThis.JOURNEY_DATA.merges);
  if (!models.has(name)) models.set(name, E.loadModel(globalThis.JOURNEY_DATA, name));
  return models.get(name);
}

const calls = {
  numerics: (name, ...args) => N[name](...args),
  uniforms: (seed, n) => { const u = N.uniforms(seed); return Array.from({ length: n }, u); },
  bpe(text, rule, count) {
    const steps = [];
    for (let words = N.bpeWords(text); steps.length < count; ) {
      const step = N.bpeStep(words, rule);
      if (!step) break;
      words = step.words;
      steps.push(step);
    }
    return steps;
  },
  encode: (text) => (model("pre-learned"), tokenizer.encode(text)),
  labels: (ids) => (model("pre-learned"), E.labels(tokenizer, ids)),
  candidate: (id, before) => (model("pre-learned"), E.candidate(tokenizer, id, before)),
  textOf: (ids) => (model("pre-learned"), E.textOf(tokenizer, ids)),
  forward: (name, ids, settings) => { const t = E.forward(model(name), ids, settings); return { ...t, loss: E.loss(t) }; },
  // The same sequence in pieces, through a cache.
  pieces(name, ids, sizes, settings) {
    const m = model(name), cache = E.newCache(m), logits = [];
    let at = 0;
    for (const size of sizes) logits.push(...E.forward(m, ids.slice(at, (at += size)), settings, cache).logits);
    return logits;
  },
  generate: (name, prompt, count, options) => [...E.generate(model(name), prompt, count, { ...options, uniform: options.us ? ((us) => () => us.shift())([...options.us]) : undefined })],
  windowStart: (n, context) => E.windowStart(n, context),
};

const plain = (key, value) => (value instanceof Float64Array ? { f64: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") }
  : value === -Infinity ? "-inf" : value);
const requests = JSON.parse(fs.readFileSync(0, "utf8"), (key, value) => (value === "-inf" ? -Infinity : value));
process.stdout.write(JSON.stringify(requests.map(([name, ...args]) => calls[name](...args)), plain));

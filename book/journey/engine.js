// The tiny GPT of the page: tokenizer, weights, forward pass with every array kept, generation with and without a cache.
// Nothing is displayed here; tests/book/test_journey.py runs this very file in Node and compares it with `lib`.
(() => {
  "use strict";
  const N = globalThis.Numerics ?? require("../explorers/numerics.js");

  // ---------------------------------------------------------------- matrices: arrays of rows (Float64Array)

  // Multiplications done so far; one multiply-add counts 2 FLOPs, as in lib.accounting.
  const work = { multiplications: 0 };

  function matmul(a, b) {
    const inner = b.length, cols = inner ? b[0].length : 0;
    work.multiplications += a.length * inner * cols;
    return a.map((row) => {
      const out = new Float64Array(cols);
      for (let k = 0; k < inner; k++) {
        const x = row[k], other = b[k];
        for (let j = 0; j < cols; j++) out[j] += x * other[j];
      }
      return out;
    });
  }

  const transpose = (a) => Array.from({ length: a[0].length }, (_, j) => Float64Array.from(a, (row) => row[j]));
  const add = (a, b) => a.map((row, i) => row.map((x, j) => x + b[i][j]));
  const addRow = (a, bias) => a.map((row) => row.map((x, j) => x + bias[j]));
  const linear = (x, W, b) => addRow(matmul(x, W), b);
  const columns = (a, start, stop) => a.map((row) => row.slice(start, stop));

  function layerNorm(x, { gain, bias }, eps) {
    return x.map((row) => {
      const mean = row.reduce((s, v) => s + v, 0) / row.length;
      const variance = row.reduce((s, v) => s + (v - mean) ** 2, 0) / row.length;
      const root = Math.sqrt(variance + eps);
      return row.map((v, j) => ((v - mean) / root) * gain[j] + bias[j]);
    });
  }

  // GPT-2's approximation, in the form of lib.functional.gelu.
  const GELU = 2 * Math.sqrt(2 / Math.PI);
  const gelu = (x) => x / (1 + Math.exp(x * (x * x * (-0.044715 * GELU) - GELU)));

  // ---------------------------------------------------------------- weights

  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const floatsOf = (text) => Float64Array.from(new Float32Array(bytesOf(text).buffer));

  function readArray({ shape, f32, scale, i8 }) {
    if (f32) return floatsOf(f32);
    const values = new Int8Array(bytesOf(i8).buffer), scales = floatsOf(scale), width = shape[1];
    return Array.from({ length: shape[0] }, (_, i) => Float64Array.from({ length: width }, (_, j) => values[i * width + j] * scales[i]));
  }

  function readTree(tree) {
    if (Array.isArray(tree)) return tree.map(readTree);
    if ("shape" in tree) return readArray(tree);
    return Object.fromEntries(Object.entries(tree).map(([name, value]) => [name, readTree(value)]));
  }

  // A trained set of weights: `name` is "pre-learned", "post-rotary", …
  function loadModel(data, name) {
    const [norm, position] = name.split("-");
    return { name, norm, position, config: data.config, params: readTree(data.models[name]) };
  }

  // ---------------------------------------------------------------- tokenizer: byte-level BPE

  // GPT-2's pre-split. White_Space and \p{…} mean the same as in Python's `regex`.
  const SPLIT = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+$|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}/gu;

  class Tokenizer {
    constructor(merges) {
      this.bytes = Array.from({ length: 256 }, (_, b) => [b]);
      this.ranks = new Map();
      merges.forEach(([left, right], rank) => {
        this.ranks.set(left * 65536 + right, rank);
        this.bytes.push([...this.bytes[left], ...this.bytes[right]]);
      });
    }

    encode(text) {
      const ids = [];
      for (const [piece] of text.matchAll(SPLIT)) ids.push(...this.encodePiece(new TextEncoder().encode(piece)));
      return ids;
    }

    encodePiece(data) {
      const parts = Array.from(data);
      for (;;) {
        let best = Infinity, at = -1;
        for (let i = 0; i + 1 < parts.length; i++) {
          const rank = this.ranks.get(parts[i] * 65536 + parts[i + 1]) ?? Infinity;
          if (rank < best) [best, at] = [rank, i];
        }
        if (at < 0) return parts;
        parts.splice(at, 2, 256 + best);
      }
    }
  }

  // ---------------------------------------------------------------- bytes, shown sensibly

  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const expected = (lead) => (lead < 0x80 ? 1 : lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xc2 && lead < 0xe0 ? 2 : 0);

  // Bytes → whole characters and what is left over: [{text, bytes, at}]; text is null where the bytes are no whole character.
  function characters(bytes) {
    const found = [];
    for (let at = 0; at < bytes.length; ) {
      let length = expected(bytes[at]), text = null;
      const slice = bytes.slice(at, at + length);
      if (length && slice.length === length) {
        try { text = utf8.decode(Uint8Array.from(slice)); } catch { text = null; }
      }
      // A byte that starts nothing stands alone; the beginning of a character takes the continuation bytes it has.
      if (text === null) {
        length = 1;
        const wanted = expected(bytes[at]);
        while (length < wanted && at + length < bytes.length && bytes[at + length] >> 6 === 2) length++;
      }
      found.push({ text, bytes: bytes.slice(at, at + length), at });
      at += length;
    }
    return found;
  }

  const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).toUpperCase().padStart(2, "0")).join(" ");
  const NAMES = new Map([[" ", "␣"], ["\n", "↵"], ["\t", "⇥"], ["\r", "␍"], ["\u3000", "□"]]);
  const visible = (text) => Array.from(text, (c) => NAMES.get(c) ?? (/[\p{C}\p{Z}\p{M}]/u.test(c) ? `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}` : c)).join("");
  const SUPERSCRIPT = ["⁰", "¹", "²", "³", "⁴"];

  // Each token of a sequence, by the characters that its bytes belong to: `short` for tables, `long` to read out.
  function labels(tokenizer, ids) {
    const bytes = ids.flatMap((id) => tokenizer.bytes[id]);
    const owner = characters(bytes).flatMap((c) => c.bytes.map((_, i) => ({ c, i })));
    let at = 0;
    return ids.map((id) => {
      const own = owner.slice(at, (at += tokenizer.bytes[id].length));
      const parts = [...new Set(own.map(({ c }) => c))].map((c) => {
        const places = own.filter((o) => o.c === c).map((o) => o.i + 1);
        const raw = hex(places.map((i) => c.bytes[i - 1]));
        if (c.text === null) return { short: raw, long: `字节 ${raw}（还凑不成一个字）` };
        if (places.length === c.bytes.length) return { short: visible(c.text), long: visible(c.text) };
        return { short: visible(c.text) + places.map((i) => SUPERSCRIPT[i]).join(""),
                 long: `「${visible(c.text)}」的第 ${places.join("、")} 个字节（共 ${c.bytes.length} 个）` };
      });
      return { id, bytes: tokenizer.bytes[id], short: parts.map((p) => p.short).join(""), long: parts.map((p) => p.long).join("，") };
    });
  }

  // A candidate of the vocabulary, after a sequence whose last bytes may be the beginning of a character.
  function candidate(tokenizer, id, before = []) {
    const bytes = tokenizer.bytes[id];
    const alone = characters(bytes);
    if (alone.every((c) => c.text !== null)) return visible(alone.map((c) => c.text).join(""));
    const tail = before.length ? characters(before.slice(-24).flatMap((i) => tokenizer.bytes[i])).at(-1) : null;
    if (tail && tail.text === null) {
      const joined = characters([...tail.bytes, ...bytes]);
      if (joined.every((c) => c.text !== null)) return `${hex(bytes)}，凑成「${visible(joined.map((c) => c.text).join(""))}」`;
    }
    return alone.map((c) => (c.text === null ? `${hex(c.bytes)}${" ··".repeat(Math.max(0, expected(c.bytes[0]) - c.bytes.length))}` : visible(c.text))).join(" ");
  }

  // Text of a sequence; bytes that are no character are named in brackets.
  const textOf = (tokenizer, ids) => characters(ids.flatMap((id) => tokenizer.bytes[id])).map((c) => c.text ?? `〈${hex(c.bytes)}〉`).join("");

  // ---------------------------------------------------------------- the forward pass

  const SETTINGS = { scale: true, mask: true, position: true };

  // Attention of one block. Every array stays in `t`; `memory` holds the keys and values of earlier tokens.
  function attend(t, h, p, model, settings, start, memory) {
    const { n_heads, d_head, rope_base } = model.config;
    t.q = linear(h, p.W_Q, p.b_Q);
    t.k = linear(h, p.W_K, p.b_K);
    t.v = linear(h, p.W_V, p.b_V);
    t.rotated = model.position === "rotary" && settings.position;
    const turn = (rows) => rows.map((row, i) => {
      const heads = Array.from({ length: n_heads }, (_, a) => N.rotate(row.slice(a * d_head, (a + 1) * d_head), start + i, rope_base));
      return Float64Array.from(heads.flatMap((head) => Array.from(head)));
    });
    t.qUsed = t.rotated ? turn(t.q) : t.q;
    t.kNew = t.rotated ? turn(t.k) : t.k;
    if (memory) { memory.k.push(...t.kNew); memory.v.push(...t.v); }
    t.kUsed = memory ? memory.k.slice() : t.kNew;
    t.vUsed = memory ? memory.v.slice() : t.v;
    const scale = settings.scale ? 1 / Math.sqrt(d_head) : 1;
    t.heads = Array.from({ length: n_heads }, (_, a) => {
      const part = (rows) => columns(rows, a * d_head, (a + 1) * d_head);
      const scores = matmul(part(t.qUsed), transpose(part(t.kUsed)));
      const scaled = scores.map((row) => row.map((x) => x * scale));
      const masked = settings.mask ? scaled.map((row, i) => row.map((x, j) => (j <= start + i ? x : -Infinity))) : scaled;
      const weights = masked.map((row) => N.softmax(row));
      return { scores, scaled, masked, weights, output: matmul(weights, part(t.vUsed)) };
    });
    t.concat = h.map((_, i) => Float64Array.from(t.heads.flatMap((head) => Array.from(head.output[i]))));
    t.attention = linear(t.concat, p.W_O, p.b_O);
    return t.attention;
  }

  function feedForward(t, h, p) {
    t.hidden = linear(h, p.W_1, p.b_1);
    t.activated = t.hidden.map((row) => row.map(gelu));
    t.ffn = linear(t.activated, p.W_2, p.b_2);
    return t.ffn;
  }

  // Pre: x + f(norm(x)). Post: norm(x + f(x)). Names are the same in both, so a page can show either.
  function block(x, p, model, settings, start, memory) {
    const t = { input: x };
    const pre = model.norm === "pre";
    const norm = (rows, which) => layerNorm(rows, which, model.config.norm_eps);
    const around = (stream, f, which, side) => {
      t[`${side}Read`] = pre ? norm(stream, which) : stream; // what the sublayer reads
      t[`${side}Sum`] = add(stream, f(t[`${side}Read`])); // the residual addition
      t[`${side}Out`] = pre ? t[`${side}Sum`] : norm(t[`${side}Sum`], which);
      t[`${side}Norm`] = pre ? { from: stream, to: t[`${side}Read`] } : { from: t[`${side}Sum`], to: t[`${side}Out`] };
      return t[`${side}Out`];
    };
    const middle = around(x, (h) => attend(t, h, p.attention, model, settings, start, memory), p.norm_1, "attention");
    t.output = around(middle, (h) => feedForward(t, h, p.ffn), p.norm_2, "ffn");
    return t;
  }

  const newCache = (model) => ({ length: 0, layers: model.params.blocks.map(() => ({ k: [], v: [] })) });

  // ids → every array on the way. With a cache only the new ids are computed. `lastOnly`: logits of the last row alone.
  function forward(model, ids, settings = SETTINGS, cache = null, lastOnly = false) {
    const { params, config } = model, start = cache?.length ?? 0;
    if (!ids.length || start + ids.length > config.context_length) throw new RangeError(`1…${config.context_length} tokens, got ${start + ids.length}`);
    const before = work.multiplications;
    const t = { ids, start, embedding: ids.map((id) => params.wte[id]), position: null };
    t.input = t.embedding;
    if (model.position === "learned" && settings.position) {
      t.position = ids.map((_, i) => params.wpe[start + i]);
      t.input = add(t.embedding, t.position);
    }
    let x = t.input;
    t.blocks = params.blocks.map((p, l) => {
      const trace = block(x, p, model, settings, start, cache?.layers[l]);
      x = trace.output;
      return trace;
    });
    if (cache) cache.length += ids.length;
    if (lastOnly) x = x.slice(-1);
    t.final = params.norm_f ? layerNorm(x, params.norm_f, config.norm_eps) : x;
    model.unembedding ??= transpose(params.wte); // the output layer is the embedding table, transposed
    t.logits = matmul(t.final, model.unembedding);
    t.multiplications = work.multiplications - before;
    return t;
  }

  // ---------------------------------------------------------------- generation

  // From which token on the model looks when n are there (lib.generation.window_start).
  function windowStart(n, context) {
    if (n <= context) return 0;
    const hop = Math.max(1, Math.floor(context / 2));
    return Math.ceil((n - context) / hop) * hop;
  }

  // Yields one record a new token: what was computed for it and what was chosen.
  function* generate(model, prompt, count, { settings = SETTINGS, sampling = {}, useCache = true, uniform = Math.random } = {}) {
    const ids = prompt.slice();
    let cache = useCache ? newCache(model) : null, start = 0;
    for (let step = 0; step < count; step++) {
      const previous = start;
      start = windowStart(ids.length, model.config.context_length);
      if (cache && start !== previous) cache = newCache(model); // positions changed: old keys are void
      const fresh = ids.slice(start + (cache?.length ?? 0));
      const t = forward(model, fresh, settings, cache, true);
      const logits = Array.from(t.logits[0]);
      const probabilities = N.softmax(N.filtered(logits, sampling));
      const id = sampling.T === 0 ? N.greedy(logits) : N.draw(probabilities, uniform());
      ids.push(id);
      yield { id, ids: ids.slice(), processed: fresh.length, multiplications: t.multiplications, probability: probabilities[id], logits,
              candidates: probabilities.filter((x) => x > 0).length };
    }
  }

  // Mean cross-entropy of predicting each next token of the sequence.
  function loss(t) {
    if (t.ids.length < 2) return null;
    const terms = t.ids.slice(1).map((id, i) => {
      const row = t.logits[i], peak = Math.max(...row);
      return peak + Math.log(row.reduce((s, x) => s + Math.exp(x - peak), 0)) - row[id];
    });
    return terms.reduce((s, x) => s + x, 0) / terms.length;
  }

  globalThis.JourneyEngine = {
    SETTINGS, Tokenizer, loadModel, forward, generate, newCache, windowStart, loss, labels, candidate, textOf, characters, visible, hex, work,
  };
  if (typeof module !== "undefined") module.exports = globalThis.JourneyEngine;
})();

// The arithmetic of the interactive pieces, without any display: plain functions over arrays, equal to `lib` (tests/book).
// A classic script: a page opened from a folder can't load modules. In Node: require().
(() => {
  "use strict";

  // ---------------------------------------------------------------- softmax and sampling (lib.functional, lib.sampling)

  const sum = (row) => row.reduce((total, x) => total + x, 0);

  function softmax(row) {
    let peak = Math.max(...row);
    if (peak === -Infinity) peak = 0; // nothing may be looked at: all weights 0
    const e = row.map((x) => Math.exp(x - peak));
    const total = sum(e) || 1;
    return e.map((x) => x / total);
  }

  const entropy = (p) => -sum(p.map((x) => (x > 0 ? x * Math.log(x) : 0)));

  const greedy = (logits) => logits.reduce((best, x, i) => (x > logits[best] ? i : best), 0);

  function temperature(logits, T) {
    const best = greedy(logits);
    if (T === 0) return logits.map((x, i) => (i === best ? x : -Infinity)); // greedy by convention: the formula divides by 0
    return logits.map((x) => x / T);
  }

  // Indices from the largest value down; among equals the smaller index first.
  const ranking = (row) => Array.from(row, (_, i) => i).sort((a, b) => row[b] - row[a] || a - b);

  const keepOnly = (logits, kept) => {
    const set = new Set(kept);
    return logits.map((x, i) => (set.has(i) ? x : -Infinity));
  };

  const topK = (logits, k) => keepOnly(logits, ranking(logits).slice(0, k));

  function topP(logits, p) {
    if (p >= 1) return logits.slice();
    const probabilities = softmax(logits);
    const kept = [];
    let before = 0;
    for (const i of ranking(logits)) {
      if (before >= p) break;
      kept.push(i); // the one that crosses p stays
      before += probabilities[i];
    }
    return keepOnly(logits, kept);
  }

  // Temperature, then top-k, then top-p: what is left to draw from.
  function filtered(logits, { T = 1, k = null, p = null } = {}) {
    let z = temperature(logits, T);
    if (T === 0) return z;
    if (k !== null) z = topK(z, k);
    if (p !== null) z = topP(z, p);
    return z;
  }

  // The index that a uniform number u in [0, 1) falls on.
  function draw(probabilities, u) {
    const total = sum(probabilities);
    let acc = 0;
    for (let i = 0; i < probabilities.length; i++) {
      acc += probabilities[i];
      if (u < acc / total) return i;
    }
    return probabilities.findLastIndex((x) => x > 0); // only rounding leads here
  }

  // Small seeded generator (mulberry32), so that a draw can be repeated.
  function uniforms(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  // ---------------------------------------------------------------- positions (lib.position)

  const frequencies = (d, base = 10000) => Array.from({ length: d / 2 }, (_, i) => base ** ((-2 * i) / d));

  function sinusoid(position, d, base = 10000) {
    return frequencies(d, base).flatMap((w) => [Math.sin(position * w), Math.cos(position * w)]);
  }

  // Rotate pairs (i, i + d/2) of one row by position · ω_i (Llama's layout).
  function rotate(row, position, base = 10000) {
    const half = row.length / 2, out = row.slice();
    frequencies(row.length, base).forEach((w, i) => {
      const c = Math.cos(position * w), s = Math.sin(position * w);
      out[i] = row[i] * c - row[i + half] * s;
      out[i + half] = row[i + half] * c + row[i] * s;
    });
    return out;
  }

  // ---------------------------------------------------------------- BPE over characters (lib.tokenizer.BPE)

  const END_OF_WORD = "</w>";
  const JOIN = "\u0000"; // no symbol contains it

  // Strings by code point, as Python compares them; JavaScript's own order goes by UTF-16 units.
  function compareStrings(a, b) {
    const x = Array.from(a, (c) => c.codePointAt(0)), y = Array.from(b, (c) => c.codePointAt(0));
    for (let i = 0; i < Math.min(x.length, y.length); i++) if (x[i] !== y[i]) return x[i] - y[i];
    return x.length - y.length;
  }
  const comparePairs = (a, b) => compareStrings(a[0], b[0]) || compareStrings(a[1], b[1]);

  const TIE_RULES = {
    first: (pairs) => pairs[0],
    lexicographic: (pairs) => pairs.reduce((best, pair) => (comparePairs(pair, best) < 0 ? pair : best)),
    largest: (pairs) => pairs.reduce((best, pair) => (comparePairs(pair, best) > 0 ? pair : best)),
  };

  // Text → [{symbols, count}], words in the order in which they first appear.
  function bpeWords(text) {
    const counts = new Map();
    for (const word of text.split(/\p{White_Space}+/u)) if (word) counts.set(word, (counts.get(word) ?? 0) + 1);
    return Array.from(counts, ([word, count]) => ({ symbols: [...word, END_OF_WORD], count }));
  }

  // Neighbouring pairs and how often each could be merged: overlapping ones (a a a) count once.
  function countPairs(words) {
    const counts = new Map();
    for (const { symbols, count } of words) {
      let overlaps = false;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const [left, right] = [symbols[i], symbols[i + 1]];
        overlaps = i > 0 && symbols[i - 1] === left && left === right && !overlaps;
        if (overlaps) continue;
        const key = left + JOIN + right;
        counts.set(key, (counts.get(key) ?? 0) + count);
      }
    }
    return Array.from(counts, ([key, count]) => ({ pair: key.split(JOIN), count }));
  }

  function mergePair(symbols, [left, right]) {
    const merged = [];
    for (let i = 0; i < symbols.length; i++) {
      if (symbols[i] === left && symbols[i + 1] === right) { merged.push(left + right); i++; } else merged.push(symbols[i]);
    }
    return merged;
  }

  // One step: which pair is merged, which were tied with it; null when nothing is left to merge.
  function bpeStep(words, rule = "first") {
    const counts = countPairs(words);
    if (!counts.length) return null;
    const most = Math.max(...counts.map((entry) => entry.count));
    const tied = counts.filter((entry) => entry.count === most).map((entry) => entry.pair);
    const pair = TIE_RULES[rule](tied);
    return { pair, count: most, tied, counts, words: words.map(({ symbols, count }) => ({ symbols: mergePair(symbols, pair), count })) };
  }

  // Cut a word by the learnt merges: always the one learnt first.
  function bpeTokenize(word, merges) {
    const ranks = new Map(merges.map((pair, rank) => [pair.join(JOIN), rank]).reverse());
    let symbols = [...word, END_OF_WORD];
    for (;;) {
      let best = null, lowest = Infinity;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const rank = ranks.get(symbols[i] + JOIN + symbols[i + 1]) ?? Infinity;
        if (rank < lowest) [lowest, best] = [rank, [symbols[i], symbols[i + 1]]];
      }
      if (!best) return symbols;
      symbols = mergePair(symbols, best);
    }
  }

  // ---------------------------------------------------------------- accounting (lib.accounting)

  const cacheBytes = ({ layers, kvHeads, dHead, window = null }, tokens, batch = 1, bytesPerValue = 2) =>
    2 * layers * batch * (window === null ? tokens : Math.min(tokens, window)) * kvHeads * dHead * bytesPerValue;

  globalThis.Numerics = {
    softmax, entropy, greedy, temperature, ranking, topK, topP, filtered, draw, uniforms, frequencies, sinusoid, rotate,
    END_OF_WORD, TIE_RULES, bpeWords, countPairs, mergePair, bpeStep, bpeTokenize, cacheBytes,
  };
  if (typeof module !== "undefined") module.exports = globalThis.Numerics;
})();

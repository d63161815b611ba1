// Search of the book. Works in the page (search.html and the search dialog) and in Node, where the tests ask it.
// Data: {pages: [{url, sections: [[anchor, title, text], ...]}], terms: [[names, meaning, url], ...]}
(() => {
  "use strict";
  const CJK = /[\u3400-\u9fff]/;

  // Letter case, full-width forms and runs of white space make no difference; neither do spaces beside Chinese.
  const fold = (text) =>
    text.normalize("NFKC").toLowerCase().replace(/[\s\-_‐–—]+/g, " ").replace(/ ?([\u3400-\u9fff]) ?/g, "$1").trim();

  // The query as the parts that a hit must contain: "KV 缓存" -> ["kv", "缓存"]; quotation marks keep spaces.
  const split = (query) => {
    const parts = [];
    for (const [, quoted, word] of query.normalize("NFKC").matchAll(/["“]([^"”]+)["”]|([^\s"“”]+)/g)) {
      const part = fold(quoted ?? word);
      if (part) parts.push(part);
    }
    return parts;
  };

  const count = (text, part) => {
    let n = 0;
    for (let i = text.indexOf(part); i >= 0 && n < 20; i = text.indexOf(part, i + part.length)) n++;
    return n;
  };

  // A Latin part must begin a word ("mha" is not in "alphamha"), a Chinese one may stand anywhere.
  const contains = (text, part) => {
    if (CJK.test(part[0])) return text.includes(part);
    for (let i = text.indexOf(part); i >= 0; i = text.indexOf(part, i + 1))
      if (i === 0 || !/[a-z0-9]/.test(text[i - 1])) return true;
    return false;
  };

  class BookSearch {
    constructor(data) {
      this.entries = [];
      for (const [pageNumber, page] of data.pages.entries())
        for (const [anchor, title, text] of page.sections)
          this.entries.push({
            url: page.url + (anchor ? "#" + anchor : ""), page: page.sections[0][1], pageNumber, title, text,
            isPage: !anchor, foldedTitle: fold(title), foldedText: fold(text),
          });
      this.terms = data.terms.map(([names, meaning, url]) => ({ names, folded: names.map(fold), meaning, url }));
    }

    // Every wording of a part: itself, and the other names of a term that it names exactly.
    wordings(part) {
      const all = new Set([part]);
      for (const term of this.terms) if (term.folded.includes(part)) for (const name of term.folded) all.add(name);
      return [...all];
    }

    // Glossary entries come first: exact name, then names that contain the query.
    termHits(whole) {
      const hits = [];
      for (const term of this.terms) {
        const exact = term.folded.includes(whole);
        if (exact || term.folded.some((name) => contains(name, whole)))
          hits.push({ kind: "term", url: term.url, title: `${term.names[0]}（${term.names[1]}）`, page: "术语表", text: term.meaning, score: exact ? 1000 : 300 });
      }
      return hits.filter((hit) => hit.url);
    }

    score(entry, part) {
      let best = 0;
      for (const wording of this.wordings(part)) {
        const weight = wording === part ? 1 : 0.6;
        let score = 0;
        if (entry.foldedTitle === wording) score += 200;
        else if (contains(entry.foldedTitle, wording)) score += entry.isPage ? 120 : 80;
        if (contains(entry.foldedText, wording)) score += 5 + 3 * Math.log2(1 + count(entry.foldedText, wording));
        best = Math.max(best, score * weight);
      }
      return best;
    }

    // All parts must be there. If nothing has them all and the query is long Chinese, sections that share most of
    // its neighbouring characters are better than nothing.
    search(query, limit = 60) {
      const parts = split(query);
      if (!parts.length) return [];
      const hits = this.termHits(fold(query));
      for (const entry of this.entries) {
        const scores = parts.map((part) => this.score(entry, part));
        if (scores.every((score) => score > 0))
          hits.push({ kind: "section", ...this.shown(entry, parts), score: scores.reduce((a, b) => a + b), pageNumber: entry.pageNumber });
      }
      if (!hits.length) hits.push(...this.similar(parts));
      return hits.sort((a, b) => b.score - a.score || (a.pageNumber ?? 0) - (b.pageNumber ?? 0)).slice(0, limit);
    }

    similar(parts) {
      const pairs = parts.flatMap((part) => (CJK.test(part) ? Array.from({ length: part.length - 1 }, (_, i) => part.slice(i, i + 2)) : [part]));
      if (pairs.length < 2) return [];
      const hits = [];
      for (const entry of this.entries) {
        const found = pairs.filter((pair) => entry.foldedTitle.includes(pair) || entry.foldedText.includes(pair));
        if (found.length * 2 > pairs.length)
          hits.push({ kind: "similar", ...this.shown(entry, found), score: found.length / pairs.length, pageNumber: entry.pageNumber });
      }
      return hits;
    }

    shown(entry, parts) {
      return { url: entry.url, title: entry.title, page: entry.isPage ? "" : entry.page, text: this.excerpt(entry.text, parts) };
    }

    // Some 90 characters around the first place where a part (or another name of it) stands.
    excerpt(text, parts) {
      const lower = text.toLowerCase();
      const places = parts.flatMap((part) => this.wordings(part)).map((w) => lower.indexOf(w)).filter((i) => i >= 0);
      const start = Math.max(0, (places.length ? Math.min(...places) : 0) - 30);
      return (start ? "…" : "") + text.slice(start, start + 90) + (start + 90 < text.length ? "…" : "");
    }
  }

  globalThis.BookSearch = BookSearch;
  if (typeof module !== "undefined") module.exports = { BookSearch, fold, split };
})();

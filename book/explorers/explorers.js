// Small explorers inside chapters. Each is an element whose content, a short table, stays where scripts don't run.
(() => {
  "use strict";
  const N = globalThis.Numerics, { h, number, percent, integer, picture, bars, slider, button, facts, redrawAll } = globalThis.JourneyParts;
  const table = (heads, rows, label) => h("div", { className: "journey-bars", tabIndex: 0, role: "group", "aria-label": label },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), ...rest.map((text) => h("td", {}, text)))))));

  class Explorer extends HTMLElement {
    connectedCallback() {
      if (this.root) return;
      this.root = h("div", { className: "journey", role: "group", "aria-label": this.constructor.label });
      this.replaceChildren(this.root);
      this.start(this.root);
    }
  }

  // ---------------------------------------------------------------- BPE: step, undo, own corpus, tie rule

  class BpeExplorer extends Explorer {
    static label = "一步步合并";

    start(root) {
      this.corpus = h("textarea", { rows: 3, value: this.getAttribute("corpus") ?? "", spellcheck: false });
      this.rule = h("select", {}, ...[["first", "先见到的"], ["lexicographic", "字典序最小的"], ["largest", "字典序最大的"]].map(([value, text]) => h("option", { value }, text)));
      this.word = h("input", { type: "text", value: this.getAttribute("word") ?? "", spellcheck: false, autocomplete: "off" });
      this.status = h("p", { className: "journey-facts", role: "status" });
      this.words = h("div", { className: "journey-pictures" });
      this.learnt = h("div");
      this.cut = h("p", { role: "status" });
      this.buttons = { step: button("合并一次", () => this.step(1)), undo: button("退一步", () => this.undo()), end: button("合并到底", () => this.step(Infinity)), reset: button("从头来", () => this.reset()) };
      root.append(h("label", { className: "journey-sentence" }, "语料（空格分词）", this.corpus),
        h("div", { className: "journey-row" }, h("label", {}, "次数并列时取", this.rule), ...Object.values(this.buttons)),
        this.status, this.words, this.learnt, h("label", {}, "用学到的规则切一个词", this.word), this.cut);
      this.corpus.addEventListener("input", () => this.reset());
      this.rule.addEventListener("change", () => this.reset());
      this.word.addEventListener("input", () => this.showWord());
      this.reset();
    }

    reset() {
      this.history = []; // one record a merge; undo drops the last
      this.first = N.bpeWords(this.corpus.value.slice(0, 5000));
      this.show();
    }

    get now() { return this.history.at(-1)?.words ?? this.first; }

    step(times) {
      for (let i = 0; i < Math.min(times, 2000); i++) {
        const step = N.bpeStep(this.now, this.rule.value);
        if (!step) break;
        this.history.push(step);
      }
      this.show();
    }

    undo() { this.history.pop(); this.show(); }

    show() {
      const base = new Set(this.first.flatMap((w) => w.symbols)), vocabulary = new Set([...base, ...this.history.map(({ pair }) => pair.join(""))]);
      const next = N.bpeStep(this.now, this.rule.value), last = this.history.at(-1);
      const named = ([left, right]) => `${left} + ${right}`;
      this.buttons.step.disabled = this.buttons.end.disabled = !next;
      this.buttons.undo.disabled = this.buttons.reset.disabled = !this.history.length;
      this.status.textContent = (!this.first.length ? "语料里还没有词。" : !last ? `还没有合并。初始词表 ${base.size} 个符号。`
        : `第 ${this.history.length} 次合并：${named(last.pair)} → ${last.pair.join("")}，${last.count} 次${last.tied.length > 1 ? `，并列的有 ${last.tied.length} 对：${last.tied.map(named).join("，")}` : ""}。词表 ${vocabulary.size} 个。`)
        + (this.first.length && !next ? "再没有可以合并的对。" : "");
      this.words.replaceChildren(
        table(["词", "次数"], this.now.map(({ symbols, count }) => [symbols.join(" | "), String(count)]), "语料现在的样子"),
        next ? bars(["下一步的候选", "次数"], next.counts.toSorted((a, b) => b.count - a.count).slice(0, 10).map(({ pair, count }) => ({ name: named(pair) + (pair.join("\n") === next.pair.join("\n") ? "（会选它）" : ""), values: [String(count)], share: count / next.count }))) : "");
      this.learnt.replaceChildren(h("p", {}, this.history.length ? `学到的规则，按先后：${this.history.map(({ pair }) => named(pair)).join("；")}。` : ""));
      this.showWord();
    }

    showWord() {
      const word = this.word.value.trim().split(/\s+/)[0];
      this.cut.textContent = word ? `${word} → ${N.bpeTokenize(word, this.history.map(({ pair }) => pair)).join(" | ")}` : "";
    }
  }

  // ---------------------------------------------------------------- positions

  class PositionExplorer extends Explorer {
    static label = "正弦位置编码";

    start(root) {
      this.state = { half: 8, p: 3, shift: 2, power: 4 };
      const set = (name) => (value) => { this.state[name] = value; this.show(); };
      this.image = picture({ title: "前 32 个位置的编码", size: 16 });
      this.words = h("div");
      root.append(h("fieldset", {}, h("legend", {}, "设置"),
        slider("宽度 d", { min: 2, max: 32, step: 1, value: 8 }, (x) => String(2 * x), set("half")),
        slider("位置 p", { min: 0, max: 31, step: 1, value: 3 }, String, set("p")),
        slider("往后移", { min: 0, max: 31, step: 1, value: 2 }, (x) => `${x} 位`, set("shift")),
        slider("底数", { min: 1, max: 6, step: 0.5, value: 4 }, (x) => integer(10 ** x), set("power"))), this.words, this.image);
      this.show();
    }

    show() {
      const { half, p, shift, power } = this.state, d = 2 * half, base = 10 ** power;
      const rows = Array.from({ length: 32 }, (_, i) => N.sinusoid(i, d, base));
      const dot = (a, b) => a.reduce((s, x, i) => s + x * b[i], 0);
      const dots = rows.map((row, i) => dot(row, N.sinusoid(i + shift, d, base)));
      const gap = Math.max(...dots) - Math.min(...dots);
      this.image.columnText = (j) => `第 ${j} 维（${j % 2 ? "cos" : "sin"}，第 ${Math.floor(j / 2)} 对）`;
      this.image.show({ rows, labels: rows.map((_, i) => ({ short: String(i), long: `位置 ${i}` })), row: p });
      const w = N.frequencies(d, base);
      this.words.replaceChildren(
        facts(`PE[${p}] · PE[${p + shift}] = ${number(dots[p], 4)}。换成别的位置、仍然相隔 ${shift}，${rows.length} 个点积最多只差 ${gap === 0 ? "0" : gap.toExponential(0)}：它只取决于距离。`,
          `波长从 ${number(2 * Math.PI, 2)} 到 ${integer((2 * Math.PI) / w.at(-1))} 个位置。`),
        table(["对", "每步转过（弧度）", "波长（位置）", "sin", "cos"], w.slice(0, 6).map((f, i) => [`第 ${i} 对`, f.toPrecision(3), number((2 * Math.PI) / f, 2), number(Math.sin(p * f)), number(Math.cos(p * f))]), `位置 ${p} 的前几对`));
    }
  }

  // ---------------------------------------------------------------- temperature and sampling

  class SamplingExplorer extends Explorer {
    static label = "温度、Top-k、Top-p";

    start(root) {
      this.logits = JSON.parse(this.getAttribute("logits") ?? "[2, 1, 0.5, 0, -1]");
      this.settings = { T: 1, k: this.logits.length, p: 1 };
      this.counts = this.logits.map(() => 0);
      this.uniform = N.uniforms(1);
      const set = (name) => (value) => { this.settings[name] = value; this.clear(); };
      const inputs = this.logits.map((z, i) => {
        const input = h("input", { type: "number", step: 0.5, value: z, className: "journey-number" });
        input.addEventListener("input", () => { if (Number.isFinite(input.valueAsNumber)) { this.logits[i] = input.valueAsNumber; this.clear(); } });
        return h("label", {}, `z${i}`, input);
      });
      this.words = h("div");
      root.append(h("fieldset", {}, h("legend", {}, "得分"), ...inputs), h("fieldset", {}, h("legend", {}, "采样"),
        slider("温度 T", { min: 0, max: 5, step: 0.05, value: 1 }, (x) => (x === 0 ? "0（贪心）" : x.toFixed(2)), set("T")),
        slider("Top-k", { min: 1, max: this.logits.length, step: 1, value: this.logits.length }, (x) => (x >= this.logits.length ? "不限" : String(x)), set("k")),
        slider("Top-p", { min: 0.05, max: 1, step: 0.05, value: 1 }, (x) => (x >= 1 ? "不限" : x.toFixed(2)), set("p"))),
        this.words, h("div", { className: "journey-row" }, button("抽 1 次", () => this.draw(1)), button("抽 200 次", () => this.draw(200)), button("清零", () => this.clear())));
      this.show();
    }

    clear() { this.counts.fill(0); this.show(); }

    get probabilities() { return N.softmax(N.filtered(this.logits, this.settings)); }

    draw(times) {
      const p = this.probabilities;
      for (let i = 0; i < times; i++) this.counts[N.draw(p, this.uniform())]++;
      this.show();
    }

    show() {
      const before = N.softmax(this.logits), after = this.probabilities, total = this.counts.reduce((s, x) => s + x, 0);
      this.words.replaceChildren(
        bars(["候选", "得分", "原来", "现在", "抽中"], this.logits.map((z, i) => ({ name: `z${i}`, values: [String(z), percent(before[i]), percent(after[i]), total ? `${this.counts[i]}（${percent(this.counts[i] / total)}）` : "–"], share: after[i], off: after[i] === 0 }))),
        h("p", { className: "journey-facts", role: "status" }, `留下 ${after.filter((x) => x > 0).length} 个，熵 ${number(N.entropy(before))} → ${number(N.entropy(after))}${total ? `，抽了 ${total} 次` : ""}。`));
    }
  }

  // ---------------------------------------------------------------- memory of the key-value cache

  const UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const bytes = (x) => { const [size, unit] = UNITS.find(([size]) => x >= size) ?? [1, "B"]; return `${(x / size).toPrecision(3).replace(/e\+?(\d+)/, "×10^$1")} ${unit}`; };

  class CacheExplorer extends Explorer {
    static label = "缓存要多少内存";

    start(root) {
      const models = globalThis.EXPLORER_PRESETS;
      this.state = { model: models.find((m) => m.name === this.getAttribute("model")) ?? models[0], power: 13, batch: 0, size: 2 };
      const choose = h("select", {}, ...models.map((m) => h("option", { value: m.name, selected: m === this.state.model }, m.name)));
      choose.addEventListener("change", () => { this.state.model = models.find((m) => m.name === choose.value); this.show(); });
      const size = h("select", {}, ...[[4, "4 字节（FP32）"], [2, "2 字节（FP16、BF16）"], [1, "1 字节（FP8）"]].map(([value, text]) => h("option", { value, selected: value === 2 }, text)));
      size.addEventListener("change", () => { this.state.size = Number(size.value); this.show(); });
      const set = (name) => (value) => { this.state[name] = value; this.show(); };
      this.words = h("div");
      root.append(h("fieldset", {}, h("legend", {}, "设置"), h("label", {}, "模型", choose), h("label", {}, "每个数", size),
        slider("词元数", { min: 7, max: 20, step: 1, value: 13 }, (x) => integer(2 ** x), set("power")),
        slider("同时几句", { min: 0, max: 8, step: 1, value: 0 }, (x) => integer(2 ** x), set("batch"))), this.words);
      this.show();
    }

    show() {
      const { model, power, batch, size } = this.state, tokens = 2 ** power, several = 2 ** batch;
      const need = (kvHeads) => N.cacheBytes({ ...model, kvHeads }, tokens, several, size);
      const own = need(model.kvHeads), weights = model.parameters * size;
      const divisors = Array.from({ length: model.heads }, (_, i) => i + 1).filter((k) => model.heads % k === 0).reverse();
      const kind = (k) => (k === model.heads ? "MHA" : k === 1 ? "MQA" : "GQA");
      this.words.replaceChildren(
        h("p", { className: "journey-facts", role: "status" }, `${model.name}：2 × ${model.layers} 层 × ${integer(several)} 句 × ${integer(model.window ? Math.min(tokens, model.window) : tokens)} 个词元 × ${model.kvHeads} 个键值头 × ${model.dHead} × ${size} 字节 = ${bytes(own)}。参数 ${integer(model.parameters)} 个，同样精度是 ${bytes(weights)}，缓存是它的 ${own / weights < 0.01 ? percent(own / weights) : number(own / weights, 2)}${own / weights < 0.01 ? "" : " 倍"}。`,
          model.window && tokens > model.window ? `它只看最近 ${integer(model.window)} 个，更早的不必留。` : "",
          tokens > model.context ? `它公布的上下文是 ${integer(model.context)} 个词元，这里超过了。` : ""),
        bars(["键值头", "写法", "缓存"], divisors.map((k) => ({ name: String(k) + (k === model.kvHeads ? "（它自己）" : ""), values: [kind(k), bytes(need(k))], share: need(k) / need(model.heads) }))));
    }
  }

  for (const [name, kind] of Object.entries({ "bpe-explorer": BpeExplorer, "position-explorer": PositionExplorer, "sampling-explorer": SamplingExplorer, "cache-explorer": CacheExplorer }))
    if (!customElements.get(name)) customElements.define(name, kind);
  new MutationObserver(redrawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
})();

// The page 「跟着一句话走」: what the reader sets, and what each station shows of the arrays that engine.js computed.
// Every number and every claim in a caption is taken from those arrays at that moment.
(() => {
  "use strict";
  const E = globalThis.JourneyEngine, N = globalThis.Numerics, DATA = globalThis.JOURNEY_DATA;
  const { h, number, percent, integer, picture, bars, slider, button, facts, redrawAll } = globalThis.JourneyParts;

  const config = DATA.config;
  const tokenizer = new E.Tokenizer(DATA.merges);
  const models = new Map();
  const modelNamed = (name) => { if (!models.has(name)) models.set(name, E.loadModel(DATA, name)); return models.get(name); };

  const state = {
    text: DATA.facts.examples[0], norm: "pre", position: "learned", scale: true, mask: true, keepPosition: true,
    T: 1, k: config.vocab_size, p: 1, cache: true, seed: 1, layer: 0, head: 0, row: null,
  };
  const NORMS = { pre: "Pre-LN", post: "Post-LN" };
  const POSITIONS = { learned: "可学习的", rotary: "旋转（RoPE）", none: "没有" };

  // ---------------------------------------------------------------- small numbers about rows

  const mean = (row) => row.reduce((s, x) => s + x, 0) / row.length;
  const deviation = (row) => { const m = mean(row); return Math.sqrt(mean(row.map((x) => (x - m) ** 2))); };
  const length = (row) => Math.hypot(...row);
  const dot = (a, b) => a.reduce((s, x, i) => s + x * b[i], 0);
  const cosine = (a, b) => dot(a, b) / (length(a) * length(b));
  const difference = (a, b) => Math.max(...a.map((row, i) => Math.max(...row.map((x, j) => Math.abs(x - b[i][j])))));
  const say = (label) => `「${label.short}」`;
  const rowText = (name, row, places = 2) => h("p", { className: "journey-numbers" }, `${name} = [${Array.from(row, (x) => number(x, places)).join(", ")}]`);
  const sentence = (...parts) => h("p", {}, ...parts);
  const warning = (...parts) => h("p", { className: "journey-warning" }, ...parts);

  // Everything the stations read, computed once a change.
  function compute() {
    const all = tokenizer.encode(state.text);
    const ids = all.slice(0, config.context_length);
    const model = modelNamed(`${state.norm}-${state.position}`);
    const settings = { scale: state.scale, mask: state.mask, position: state.keepPosition };
    const t = E.forward(model, ids, settings);
    const labels = E.labels(tokenizer, ids);
    const row = state.row === null ? ids.length - 1 : Math.min(state.row, ids.length - 1);
    const block = t.blocks[state.layer], head = block.heads[state.head];
    const part = (rows) => rows.map((r) => r.slice(state.head * config.d_head, (state.head + 1) * config.d_head));
    return { all, ids, model, settings, t, labels, row, block, head, part, name: labels[row], params: model.params.blocks[state.layer] };
  }

  const place = () => `第 ${state.layer} 层第 ${state.head} 头`;

  // ---------------------------------------------------------------- stations: build(root) → update(context)

  const stations = {};
  // Pictures stay in place when numbers change (a focused one keeps the focus); words around them are made anew.
  const station = (name, pictures, render) => {
    stations[name] = (root) => {
      const made = pictures.map(picture), words = h("div"), group = h("div", { className: pictures.length > 1 ? `journey-pictures journey-${name}` : "" }, ...made);
      root.append(words, group);
      return (c) => words.replaceChildren(...render(c, ...made).filter(Boolean));
    };
  };

  stations.tokens = (root) => {
    const words = h("div"), list = h("ul", { className: "journey-tokens" });
    root.append(words, h("p", {}, "每块是一个词元，下面是它的字节（十六进制）。按一块，就跟着它走："), list);
    return (c) => {
      const characters = E.characters(c.ids.flatMap((id) => tokenizer.bytes[id]));
      const bytes = c.ids.reduce((s, id) => s + tokenizer.bytes[id].length, 0);
      const whole = c.labels.filter((l) => !/[⁰¹²³⁴]/.test(l.short) && E.characters(l.bytes).every((x) => x.text !== null)).length;
      words.replaceChildren(...[
        facts(`${characters.length} 个字符，${bytes} 个字节，切成 ${c.ids.length} 个词元，其中 ${whole} 个是完整的字（或几个字）。`),
        whole < c.ids.length ? sentence("右上角的小数字说明它是那个字的第几个字节：一个词元不一定是一个完整的字。") : null,
        c.all.length > c.ids.length ? warning(`模型一次最多看 ${config.context_length} 个词元，这句话有 ${c.all.length} 个，后面 ${c.all.length - c.ids.length} 个没有送进去。`) : null,
      ].filter(Boolean));
      const focused = list.contains(document.activeElement);
      list.replaceChildren(...c.labels.map((label, i) => h("li", {}, h("button", { type: "button", "aria-pressed": String(i === c.row), "aria-label": readOut(i, label), onclick: () => set({ row: i }) },
        h("span", { className: "journey-glyph", "aria-hidden": "true" }, label.short), " ", h("small", { "aria-hidden": "true" }, E.hex(label.bytes))))));
      if (focused) list.querySelectorAll("button")[c.row].focus();
    };
  };

  // What is read out for a token begins with what is seen (WCAG 2.5.3: label in name).
  function readOut(i, label) {
    return `${label.short} ${E.hex(label.bytes)}，第 ${i} 个词元${label.long === label.short ? "" : `：${label.long}`}`;
  }

  // How a token was made: merge number, left and right part, down to bytes.
  function recipe(id) {
    const steps = [];
    const walk = (i) => {
      if (i < 256) return;
      const [left, right] = DATA.merges[i - 256];
      walk(left); walk(right);
      steps.push(`${i} = 第 ${i - 255} 次合并：${left} + ${right}（${E.candidate(tokenizer, left)} 与 ${E.candidate(tokenizer, right)} 粘成 ${E.candidate(tokenizer, i)}）`);
    };
    walk(id);
    return steps;
  }

  station("ids", [], (c) => [
    facts(`词表有 ${integer(config.vocab_size)} 个词元：256 个字节，加 ${DATA.merges.length} 次合并。模型收到的是 [${c.ids.join(", ")}]。`),
    sentence(`编号 ${c.ids[c.row]}，${say(c.name)}，`, recipe(c.ids[c.row]).length ? "是这样粘成的：" : "就是一个字节，没有经过合并。"),
    recipe(c.ids[c.row]).length ? h("ol", {}, ...recipe(c.ids[c.row]).map((text) => h("li", {}, text))) : null,
  ]);

  station("embedding", [{ title: "嵌入" }], (c, image) => {
    image.show({ rows: c.t.embedding, labels: c.labels, row: c.row });
    const twin = c.ids.findIndex((id, i) => c.ids.indexOf(id) < i);
    const near = N.ranking(c.model.params.wte.map((row) => cosine(row, c.t.embedding[c.row]))).filter((id) => id !== c.ids[c.row]).slice(0, 5);
    return [
      facts(`嵌入表是 [${config.vocab_size}, ${config.d_model}]；取出 ${c.ids.length} 行。`,
        twin > 0 ? `第 ${c.ids.indexOf(c.ids[twin])} 个和第 ${twin} 个词元都是 ${say(c.labels[twin])}，两行完全相同。` : ""),
      rowText(`第 ${c.ids[c.row]} 行，${say(c.name)}`, c.t.embedding[c.row]),
      sentence(`方向与它最接近的词元（余弦）：${near.map((id) => `「${E.candidate(tokenizer, id)}」${number(cosine(c.model.params.wte[id], c.t.embedding[c.row]), 2)}`).join("，")}。模型只读过 ${integer(DATA.facts.training_tokens)} 个词元，不必当真。`),
    ];
  });

  station("position", [{ title: "位置编码" }, { title: "进入第 0 层的输入" }], (c, table, sum) => {
    table.hidden = !c.t.position;
    if (c.t.position) table.show({ rows: c.t.position, labels: c.labels, row: c.row });
    sum.show({ rows: c.t.input, labels: c.labels, row: c.row });
    const words = {
      learned: c.t.position ? `位置表是 [${config.context_length}, ${config.d_model}]，取前 ${c.ids.length} 行，与嵌入相加。${say(c.name)} 在位置 ${c.row}；它的嵌入长 ${number(length(c.t.embedding[c.row]), 2)}，位置那一行长 ${number(length(c.t.position[c.row]), 2)}。` : "位置表没有加上去：输入就是嵌入本身。",
      rotary: state.keepPosition ? "旋转位置编码在这一站什么也不加，输入就是嵌入本身；转动在下一站，对 Q 和 K。" : "旋转位置编码被拿掉了：下一站的 Q 和 K 不会转动。",
      none: "这组权重从头到尾没有位置编码，输入就是嵌入本身。它只能靠因果掩码泄漏的次序。",
    };
    const twin = c.ids.findIndex((id, i) => c.ids.indexOf(id) < i), first = c.ids.indexOf(c.ids[twin]);
    return [
      facts(words[state.position]),
      twin > 0 ? sentence(`两个 ${say(c.labels[twin])}（位置 ${first} 与 ${twin}）的输入${difference([c.t.input[first]], [c.t.input[twin]]) ? `不再相同，最大差 ${number(difference([c.t.input[first]], [c.t.input[twin]]))}` : "仍然相同"}。`) : null,
      !state.keepPosition && state.position !== "none" ? warning("位置是拿掉的，权重还是原来那组，没有重新训练。要看“训练时就没有位置”的，把“位置”选成“没有”。") : null,
      rowText(`${say(c.name)} 的输入`, c.t.input[c.row]),
    ];
  });

  station("qkv", [{ title: "Q" }, { title: "K" }, { title: "V" }], (c, q, k, v) => {
    const { block } = c, [qq, kk, vv] = [block.qUsed, block.kUsed, block.vUsed].map(c.part);
    const turned = block.rotated ? "转动之后" : "";
    q.show({ rows: qq, labels: c.labels, row: c.row, note: turned });
    k.show({ rows: kk, labels: c.labels, row: c.row, note: turned });
    v.show({ rows: vv, labels: c.labels, row: c.row });
    const plain = c.part(block.q)[c.row];
    return [
      facts(`${place()}。W_Q、W_K、W_V 都是 [${config.d_model}, ${config.d_model}]，乘出来每行 ${config.d_model} 个数，第 ${state.head} 头用第 ${state.head * config.d_head} 到 ${(state.head + 1) * config.d_head - 1} 维。`,
        c.model.norm === "pre" ? "Pre-LN：它们读的是归一化之后的那一行（第 12 站的第二张图）。" : "Post-LN：它们直接读残差流。"),
      block.rotated ? sentence(`RoPE 把 ${say(c.name)} 的 q 按位置 ${c.row} 转动：长度转前 ${number(length(plain), 4)}，转后 ${number(length(qq[c.row]), 4)}，转动不改变长度。`) : null,
      rowText(`${say(c.name)} 的 q`, qq[c.row]), rowText(`${say(c.name)} 的 k`, kk[c.row]), rowText(`${say(c.name)} 的 v`, vv[c.row]),
    ];
  });

  const spread = (rows) => deviation(rows.flatMap((row, i) => Array.from(row.slice(0, i + 1))));

  station("scores", [{ title: "q · k", size: 40, places: 2 }, { title: "缩放之后", size: 40, places: 2 }], (c, raw, scaled) => {
    raw.show({ rows: c.head.scores, labels: c.labels, columns: c.labels, row: c.row });
    scaled.show({ rows: c.head.scaled, labels: c.labels, columns: c.labels, row: c.row, title: state.scale ? "除以 √d_head" : "没有除" });
    return [
      facts(state.scale ? `${place()}：除以 √${config.d_head} ≈ ${number(Math.sqrt(config.d_head), 3)}。看得见的得分，标准差从 ${number(spread(c.head.scores), 2)} 变成 ${number(spread(c.head.scaled), 2)}。`
        : `${place()}：没有除以 √${config.d_head}，得分原样送下去，标准差 ${number(spread(c.head.scores), 2)}。`),
      sentence(`${say(c.name)} 对自己：q · k = ${number(c.head.scores[c.row][c.row], 3)}；展开是 ${Array.from(c.part(c.block.qUsed)[c.row], (x, i) => `(${number(x, 2)})(${number(c.part(c.block.kUsed)[c.row][i], 2)})`).join(" + ")}。`),
      state.scale ? null : warning("权重是在除以 √d 的算法里训练的，现在没有重新训练，只是不除。看第 8 站的权重变尖了多少，以及上面那句话的损失。"),
    ];
  });

  station("mask", [{ title: "掩码之后的得分", size: 40, places: 2 }], (c, image) => {
    image.show({ rows: c.head.masked, labels: c.labels, columns: c.labels, row: c.row });
    const blocked = c.head.masked.flatMap((row) => Array.from(row)).filter((x) => x === -Infinity).length, n = c.ids.length;
    return [
      facts(state.mask ? `${n} × ${n} = ${n * n} 个得分，${blocked} 个换成了负无穷。${say(c.name)} 看得到 ${c.row + 1} 个词元（含自己）。`
        : `掩码关掉了：${n * n} 个得分全部留下，${say(c.name)} 看得到全部 ${n} 个词元，包括它后面的 ${n - 1 - c.row} 个。`),
      state.mask ? null : warning("这组权重训练时从没看过后面的词元，现在让它看，没有重新训练。第 17 站会看到，缓存也因此不再成立。"),
    ];
  });

  station("softmax", [{ title: "注意力权重", size: 40, places: 3 }], (c, image) => {
    image.show({ rows: c.head.weights, labels: c.labels, columns: c.labels, row: c.row });
    const weights = c.head.weights, row = Array.from(weights[c.row]), sums = weights.map((r) => r.reduce((s, x) => s + x, 0));
    const peak = Math.max(...row), visible = row.filter((x) => x > 0).length;
    return [
      facts(`${place()}：${Math.max(...sums.map((x) => Math.abs(x - 1))) < 1e-9 ? "每行之和都是 1" : `每行之和从 ${Math.min(...sums)} 到 ${Math.max(...sums)}`}，最小的权重 ${number(Math.min(...weights.flatMap((r) => Array.from(r))))}，最大的 ${number(Math.max(...weights.flatMap((r) => Array.from(r))))}。`),
      sentence(`${say(c.name)} 给 ${say(c.labels[row.indexOf(peak)])} 最多，${percent(peak)}。这一行的熵是 ${number(N.entropy(row))}；平分给 ${visible} 个是 ${number(Math.log(visible))}。`),
      bars(["它看谁", "得分", "权重"], row.map((w, j) => ({ name: `${j} ${c.labels[j].short}`, values: [number(c.head.masked[c.row][j], 2), percent(w)], share: w, off: c.head.masked[c.row][j] === -Infinity }))),
    ];
  });

  station("heads", [...Array.from({ length: config.n_heads }, (_, a) => ({ title: `第 ${a} 头的权重`, size: 24 })), { title: "四个头的输出接在一起" }], (c, ...images) => {
    c.block.heads.forEach((head, a) => images[a].show({ rows: head.weights, labels: c.labels, columns: c.labels, row: c.row }));
    images.at(-1).columnText = (j) => `第 ${Math.floor(j / config.d_head)} 头的第 ${j % config.d_head} 维`;
    images.at(-1).show({ rows: c.block.concat, labels: c.labels, row: c.row });
    const looks = c.block.heads.map((head, a) => { const row = Array.from(head.weights[c.row]); return `第 ${a} 头最看重 ${say(c.labels[row.indexOf(Math.max(...row))])}（${percent(Math.max(...row))}）`; });
    return [facts(`第 ${state.layer} 层，${say(c.name)}：${looks.join("，")}。`), rowText(`${say(c.name)} 的 4 × ${config.d_head} 个数`, c.block.concat[c.row])];
  });

  station("output", [{ title: "W_O" }, { title: "乘 W_O 之后" }], (c, weight, image) => {
    weight.columnText = (j) => `列 ${j}`;
    weight.show({ rows: c.params.attention.W_O, labels: c.params.attention.W_O.map((_, i) => ({ short: `${i}`, long: `${i}，来自第 ${Math.floor(i / config.d_head)} 头` })) });
    image.show({ rows: c.block.attention, labels: c.labels, row: c.row });
    // The product is a sum over heads: what each contributes to this row.
    const shares = c.block.heads.map((head, a) => {
      const rows = c.params.attention.W_O.slice(a * config.d_head, (a + 1) * config.d_head);
      return length(Array.from({ length: config.d_model }, (_, j) => rows.reduce((s, r, i) => s + head.output[c.row][i] * r[j], 0)));
    });
    return [
      facts(`W_O 是 [${config.d_model}, ${config.d_model}]。乘它等于各头各乘自己那 ${config.d_head} 行再相加：${say(c.name)} 这一行里，四个头各自那一份的长度是 ${shares.map((x) => number(x, 2)).join("、")}。`),
      rowText(`${say(c.name)} 的注意力输出`, c.block.attention[c.row]),
    ];
  });

  const residualFacts = (c, stream, delta, sum, name) => facts(`${say(c.name)}：原来的一行长 ${number(length(stream[c.row]), 2)}，${name}写上去的长 ${number(length(delta[c.row]), 2)}，相加之后长 ${number(length(sum[c.row]), 2)}，与原来的夹角余弦 ${number(cosine(stream[c.row], sum[c.row]), 2)}。`);

  station("residual", [{ title: "原来的残差流" }, { title: "注意力写上去的" }, { title: "相加" }], (c, before, delta, sum) => {
    before.show({ rows: c.block.input, labels: c.labels, row: c.row });
    delta.show({ rows: c.block.attention, labels: c.labels, row: c.row });
    sum.show({ rows: c.block.attentionSum, labels: c.labels, row: c.row });
    return [residualFacts(c, c.block.input, c.block.attention, c.block.attentionSum, "注意力"), rowText(`${say(c.name)} 相加之后`, c.block.attentionSum[c.row])];
  });

  station("norm", [{ title: "归一化之前" }, { title: "归一化之后" }, { title: "第二次之前" }, { title: "第二次之后" }], (c, ...images) => {
    const pre = c.model.norm === "pre", pairs = [c.block.attentionNorm, c.block.ffnNorm];
    const titles = pre ? ["残差流", "给注意力读的", "加过注意力的残差流", "给前馈读的"] : ["加过注意力", "归一化之后的残差流", "加过前馈", "归一化之后的残差流"];
    pairs.flatMap(({ from, to }) => [from, to]).forEach((rows, i) => images[i].show({ rows, labels: c.labels, row: c.row, title: titles[i] }));
    const row = pairs[0].from[c.row], out = pairs[0].to[c.row], p = c.params.norm_1;
    const plain = out.map((x, j) => (x - p.bias[j]) / p.gain[j]);
    return [
      facts(pre ? "Pre-LN：归一化的是子层读到的那一份，残差流原样通过。" : "Post-LN：相加之后整条残差流被归一化。",
        `${say(c.name)} 第一次归一化：均值 ${number(mean(row))}、标准差 ${number(deviation(row))}；乘增益、加偏置之前，均值 ${number(Math.abs(mean(plain)) < 1e-9 ? 0 : mean(plain))}、标准差 ${number(deviation(plain))}。`),
      rowText(`${say(c.name)} 第一次归一化之后`, out),
    ];
  });

  station("ffn", [{ title: "升到 128 维" }, { title: "过 GELU" }, { title: "回到 32 维" }], (c, hidden, activated, out) => {
    hidden.show({ rows: c.block.hidden, labels: c.labels, row: c.row, title: `升到 ${config.d_ff} 维` });
    activated.show({ rows: c.block.activated, labels: c.labels, row: c.row });
    out.show({ rows: c.block.ffn, labels: c.labels, row: c.row, title: `回到 ${config.d_model} 维` });
    const all = c.block.hidden.flatMap((r) => Array.from(r)), row = c.block.activated[c.row];
    const lowest = c.block.activated.reduce((low, r) => Math.min(low, ...r), 0);
    return [
      facts(`${config.d_ff} × ${c.ids.length} 个数里，${percent(all.filter((x) => x < 0).length / all.length)} 在激活之前是负的；GELU 把它们压到接近 0，最小的是 ${number(lowest)}。${say(c.name)} 有 ${row.filter((x) => x > 0.1).length} 个大于 0.1。`),
      rowText(`${say(c.name)} 的前馈输出`, c.block.ffn[c.row]),
    ];
  });

  station("block", [{ title: "相加：前馈加回残差流" }, { title: "这一层的输出" }], (c, sum, image) => {
    sum.show({ rows: c.block.ffnSum, labels: c.labels, row: c.row });
    image.show({ rows: c.block.output, labels: c.labels, row: c.row, title: `第 ${state.layer} 层的输出` });
    const lengths = [c.t.input, ...c.t.blocks.map((b) => b.output)].map((rows) => number(mean(rows.map((r) => length(r))), 2));
    return [
      residualFacts(c, c.block.attentionOut, c.block.ffn, c.block.ffnSum, "前馈"),
      sentence(`残差流一行的平均长度，从入口起：${lengths.join(" → ")}。`, c.model.norm === "pre" ? "" : "（Post-LN 每层都归一化，所以长度由增益决定。）"),
      rowText(`${say(c.name)} 这一层的输出`, c.block.output[c.row]),
    ];
  });

  station("logits", [{ title: "出口：乘嵌入表之前" }, { title: "logits", size: 3, places: 2 }], (c, final, image) => {
    final.show({ rows: c.t.final, labels: c.labels, row: c.row });
    image.columnText = (j) => `${j} ${E.candidate(tokenizer, j)}`;
    image.show({ rows: c.t.logits, labels: c.labels, row: c.row });
    const row = Array.from(c.t.logits[c.row]), p = N.softmax(row), order = N.ranking(row).slice(0, 10);
    const next = c.ids[c.row + 1];
    return [
      facts(`${say(c.name)} 之后接谁：${config.vocab_size} 个得分，从 ${number(Math.min(...row), 2)} 到 ${number(Math.max(...row), 2)}，最高的是 ${E.candidate(tokenizer, order[0], c.ids.slice(0, c.row + 1))}。`,
        next === undefined ? "" : `句子里真正接着的是 ${say(c.labels[c.row + 1])}，排第 ${N.ranking(row).indexOf(next) + 1}，概率 ${percent(p[next])}。`),
      bars(["前十名", "得分", "概率"], order.map((id) => ({ name: E.candidate(tokenizer, id, c.ids.slice(0, c.row + 1)), values: [number(row[id], 2), percent(p[id])], share: p[id] }))),
      c.model.norm === "pre" ? sentence("Pre-LN 在出口再归一化一次，再去乘嵌入表。") : sentence("Post-LN 的最后一层刚归一化过，出口不再加一次。"),
    ];
  });

  // ---------------------------------------------------------------- sampling and cache

  const samplingNow = () => ({ T: state.T, k: state.k < config.vocab_size ? state.k : null, p: state.p < 1 ? state.p : null });

  const KS = [...Array.from({ length: 20 }, (_, i) => i + 1), 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, config.vocab_size];

  stations.sampling = (root) => {
    const words = h("div"), output = h("p", { className: "journey-text", role: "status" });
    let given = null;
    const write = (count) => {
      const run = E.generate(context.model, given ?? context.all, count, { settings: context.settings, sampling: samplingNow(), useCache: false, uniform: draws });
      const from = given ?? context.all;
      for (const step of run) given = step.ids;
      output.replaceChildren(E.textOf(tokenizer, from), h("mark", {}, E.textOf(tokenizer, given).slice(E.textOf(tokenizer, from).length) || `〈${given.length - from.length} 个词元，还没凑成字〉`));
    };
    let draws = N.uniforms(state.seed);
    const back = () => { given = null; draws = N.uniforms(state.seed); output.replaceChildren(state.text); };
    root.append(
      h("fieldset", {}, h("legend", {}, "采样"),
        slider("温度 T", { min: 0, max: 3, step: 0.05, value: state.T }, (x) => (x === 0 ? "0（贪心）" : x.toFixed(2)), (T) => set({ T })),
        // Fine steps where they matter: 1, 2, …, 20, then coarser, at last no limit.
        slider("Top-k", { min: 0, max: KS.length - 1, step: 1, value: KS.length - 1 }, (i) => (KS[i] >= config.vocab_size ? "不限" : String(KS[i])), (i) => set({ k: KS[i] })),
        slider("Top-p", { min: 0.05, max: 1, step: 0.05, value: state.p }, (x) => (x >= 1 ? "不限" : x.toFixed(2)), (p) => set({ p }))),
      words,
      h("div", { className: "journey-row" }, button("抽一个", () => write(1)), button("抽 12 个", () => write(12)), button("回到原句", back),
        button("换种子", () => { state.seed += 1; back(); })),
      output);
    let seen = null;
    return (c) => {
      const key = JSON.stringify([state.text, c.model.name, c.settings]);
      if (key !== seen) { seen = key; back(); }
      // A sentence longer than the window is continued from its end, as generate does it.
      const seenIds = c.all.slice(E.windowStart(c.all.length, config.context_length));
      const last = c.all.length > c.ids.length ? E.forward(c.model, seenIds, c.settings, null, true).logits[0] : c.t.logits.at(-1);
      const logits = Array.from(last), before = N.softmax(logits), after = N.softmax(N.filtered(logits, samplingNow()));
      const order = N.ranking(logits).slice(0, 12), kept = after.filter((x) => x > 0).length;
      words.replaceChildren(
        facts(`接在句尾 ${say(E.labels(tokenizer, c.all).at(-1))} 之后：留下 ${integer(kept)} 个候选，熵 ${number(N.entropy(before))} → ${number(N.entropy(after))}。`,
          state.T === 0 ? "T = 0 约定为贪心：只留得分最高的一个。" : ""),
        bars(["候选", "原来的概率", "现在的概率"], order.map((id) => ({ name: E.candidate(tokenizer, id, c.all), values: [percent(before[id]), percent(after[id])], share: after[id], off: after[id] === 0 }))));
    };
  };

  stations.cache = (root) => {
    const words = h("div"), box = h("input", { type: "checkbox", checked: state.cache });
    box.addEventListener("change", () => set({ cache: box.checked }));
    root.append(h("fieldset", {}, h("legend", {}, "缓存"), h("label", {}, box, "用键值缓存")), words);
    return (c) => {
      const count = 8, prompt = c.ids;
      const run = (useCache) => [...E.generate(c.model, prompt, count, { settings: c.settings, sampling: { T: 0 }, useCache })];
      const [plain, cached] = [run(false), run(true)];
      const shown = state.cache ? cached : plain, total = (steps) => steps.reduce((s, x) => s + x.multiplications, 0);
      const most = Math.max(...plain.map((s) => s.multiplications));
      const same = plain.every((s, i) => s.id === cached[i].id);
      const gap = Math.max(...plain.map((s, i) => Math.max(...s.logits.map((x, j) => Math.abs(x - cached[i].logits[j])))));
      const moved = prompt.length + count - 1 > config.context_length;
      words.replaceChildren(...[
        facts(`从原句起贪心写 ${count} 个词元，${state.cache ? "带" : "不带"}缓存：${integer(total(shown))} 次乘法，算了 ${shown.reduce((s, x) => s + x.processed, 0)} 个词元。另一种做法是 ${integer(total(state.cache ? plain : cached))} 次，不带缓存是带缓存的 ${number(total(plain) / total(cached), 1)} 倍。`),
        state.mask ? sentence(`两种做法写出的词元${same ? "逐个相同" : "不同"}，logits 最大差 ${gap === 0 ? "0" : gap.toExponential(0)}。${state.cache ? `缓存里现在存着 2 × ${config.n_layers} 层 × ${E.windowStart(prompt.length + count - 1, config.context_length) ? "窗口内的" : prompt.length + count - 1} 个词元 × ${config.d_model} 个数。` : ""}`)
          : warning(`掩码关着，旧词元会看到新词元，它们的 K、V 每步都在变，存下来的就过期了：两种做法的 logits 最大差 ${number(gap)}，写出的词元${same ? "碰巧仍相同" : "不同"}。`),
        moved ? sentence(`写到超过 ${config.context_length} 个词元时，最旧的半个窗口被让出，位置从 0 重排，缓存清空重算：表里有一步因此特别大。`) : null,
        bars(["新词元", "这一步算的词元", "乘法次数"], shown.map((s) => ({ name: E.candidate(tokenizer, s.id, s.ids.slice(0, -1)), values: [String(s.processed), integer(s.multiplications)], share: s.multiplications / most }))),
      ].filter(Boolean));
    };
  };

  station("origin", [], () => {
    const f = DATA.facts, names = Object.keys(f.held_out_loss);
    const label = (name) => { const [n, p] = name.split("-"); return `${NORMS[n]}，位置：${POSITIONS[p]}`; };
    return [
      facts(`${integer(f.poems)} 首唐诗，留出 ${integer(f.held_out_poems)} 首不训练；${integer(f.training_tokens)} 个词元，每组 ${integer(f.steps)} 步，每步 ${f.batch} 段 ${config.context_length} 个词元。`),
      bars(["权重", "参数", "交叉熵"], names.map((name) => ({ name: label(name), values: [integer(f.parameters[name]), number(f.held_out_loss[name])], share: f.held_out_loss[name] / Math.log(config.vocab_size) }))),
      sentence(`交叉熵在留出的 ${integer(f.held_out_tokens)} 个词元上量，条长是与均匀乱猜的比：乱猜是 ln ${integer(config.vocab_size)} ≈ ${number(Math.log(config.vocab_size))}。训练很短，只有一个种子，六组的名次说明不了大模型里谁好谁坏。`),
    ];
  });

  // ---------------------------------------------------------------- controls

  function choice(legend, name, options) {
    return h("fieldset", {}, h("legend", {}, legend), ...Object.entries(options).map(([value, text]) =>
      h("label", {}, h("input", { type: "radio", name: `journey-${name}`, value, checked: state[name] === value, onchange: () => set({ [name]: value }) }), text)));
  }
  const check = (name, text) => h("label", {}, h("input", { type: "checkbox", checked: state[name], onchange: (e) => set({ [name]: e.target.checked }) }), text);

  stations.controls = (root) => {
    root.replaceChildren();
    const input = h("input", { type: "text", value: state.text, spellcheck: false, autocomplete: "off", id: "journey-text", maxLength: 200 });
    const problem = h("p", { className: "journey-warning", role: "alert", hidden: true }, "至少写一个字。");
    let timer;
    const typed = (event) => {
      if (event.isComposing) return; // pinyin on its way to becoming characters
      clearTimeout(timer);
      problem.hidden = input.value !== "";
      if (input.value) timer = setTimeout(() => set({ text: input.value, row: null }), 200);
    };
    input.addEventListener("input", typed);
    input.addEventListener("compositionend", typed);
    const examples = [...DATA.facts.examples, "人工智能 AI 🍓"];
    const summary = h("p", { className: "journey-facts", role: "status" });
    const position = check("keepPosition", "用上位置编码");
    root.append(
      h("label", { className: "journey-sentence" }, "写一句话", input), problem,
      h("div", { className: "journey-row" }, "换一句：", ...examples.map((text) => h("button", { type: "button", onclick: () => { input.value = text; problem.hidden = true; set({ text, row: null }); } }, text))),
      choice("归一化（换一组权重）", "norm", NORMS), choice("位置（换一组权重）", "position", POSITIONS),
      h("fieldset", {}, h("legend", {}, "改坏算法（不重新训练）"), check("scale", "除以 √d"), check("mask", "因果掩码"), position), summary);
    return (c) => {
      position.firstChild.disabled = state.position === "none";
      const loss = E.loss(c.t), altered = !state.mask || !state.scale || (!state.keepPosition && state.position !== "none");
      const usual = altered ? E.loss(E.forward(c.model, c.ids)) : null;
      summary.replaceChildren(...[`${integer(DATA.facts.parameters[c.model.name])} 个参数，${c.ids.length} 个词元。`,
        loss === null ? "只有一个词元，还没有可以预测的。" : `按这个模型，这句话平均每个词元的交叉熵是 ${number(loss)}，乱猜是 ${number(Math.log(config.vocab_size))}。`,
        loss !== null && usual !== null ? `三个算法开关都开着时是 ${number(usual)}。` : null,
        state.mask ? null : "掩码关着时，模型看得到答案，这个数不能当作预测得好不好。"].filter(Boolean));
    };
  };

  // The bar at the lower edge: previous and next station, what is followed, which layer and head is shown.
  function walk(article) {
    const stops = Array.from(article.querySelectorAll(".journey[data-station]")).map((box) => box.closest("section")).filter((s, i, all) => all.indexOf(s) === i);
    const headingOf = (i) => stops[i].querySelector(":is(h1, h2)");
    const title = (section) => section.querySelector(":is(h1, h2)").firstChild.textContent.trim();
    const select = h("select", { "aria-label": "去哪一站" }, ...stops.map((s, i) => h("option", { value: i }, title(s))));
    const spoken = h("span", { className: "journey-quiet", role: "status" });
    let at = 0, quietUntil = 0;
    const choose = (i) => { at = Math.min(stops.length - 1, Math.max(0, i)); select.value = String(at); };
    // The focus stays on the button, so that a keyboard can step on; 「进入」 takes it to the station itself.
    const go = (i) => {
      choose(i);
      quietUntil = performance.now() + 400; // the last stations can't scroll up to where the observer looks
      headingOf(at).scrollIntoView({ behavior: "instant" });
      spoken.textContent = title(stops[at]);
    };
    const enter = () => {
      go(at);
      headingOf(at).tabIndex = -1;
      headingOf(at).focus({ preventScroll: true });
    };
    select.addEventListener("change", () => go(Number(select.value)));
    const step = (text, name, action) => h("button", { type: "button", "aria-label": name, onclick: action }, text);
    const token = h("select", { onchange: () => set({ row: Number(token.value) }) });
    const numbered = (name, count, text) => h("select", { onchange: (e) => set({ [name]: Number(e.target.value) }) }, ...Array.from({ length: count }, (_, i) => h("option", { value: i }, text(i))));
    const named = (text, control) => h("label", {}, text, control);
    const bar = h("div", { className: "journey journey-walk", role: "region", "aria-label": "走到哪一站，跟着谁走" },
      h("span", { className: "journey-stops" }, step("‹", "上一站", () => go(at - 1)), select, step("›", "下一站", () => go(at + 1)), step("进入", "进入这一站", enter), spoken),
      named("跟着", token), named("层", numbered("layer", config.n_layers, String)), named("头", numbered("head", config.n_heads, String)));
    article.append(bar);
    // Scrolling by hand moves the selection along.
    const seen = new IntersectionObserver((entries) => entries.forEach((e) => { if (e.isIntersecting && performance.now() > quietUntil) choose(stops.indexOf(e.target)); }), { rootMargin: "-15% 0px -75% 0px" });
    stops.slice(1).forEach((s) => seen.observe(s));
    return (c) => {
      token.replaceChildren(...c.labels.map((l, i) => h("option", { value: i }, `${i} ${l.short}`)));
      token.value = String(c.row);
    };
  }

  // ---------------------------------------------------------------- start

  let context, updates = [], scheduled = false;

  function update() {
    scheduled = false;
    context = compute();
    for (const refresh of updates) refresh(context);
  }

  function set(changes) {
    Object.assign(state, changes);
    if (!scheduled) { scheduled = true; requestAnimationFrame(update); }
  }

  function start() {
    const boxes = document.querySelectorAll(".journey[data-station]");
    if (!boxes.length) return;
    updates = Array.from(boxes, (box) => stations[box.dataset.station](box));
    updates.push(walk(boxes[0].closest("section")));
    update();
    new MutationObserver(redrawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    document.documentElement.dataset.journey = "ready";
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();

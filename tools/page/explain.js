// The page of generate --explain: pieces, search, likeliest tokens, attention, the stack.
const search = data.search, output = data.outputs[0];
const LIVE = 0, ENDED = 1, WORSE = 2, STOPPED = 3, BANNED = 4;
const fateNames = ["live", "ended", "worse", "stopped", "banned"];
const nodes = search.nodes.map(([parent, token, logProb, total, fate, score, cut, row, rank], index) =>
  ({ index, parent, token, logProb, total, fate, score, cut, row, rank, depth: 0, path: false }));
for (const node of nodes.slice(1)) node.depth = nodes[node.parent].depth + 1;
for (const node of nodes) {
  for (let at = node; node.rank && at; at = nodes[at.parent]) at.path = true;
}

function labelOf(token) {
  if (token < 0) return "start";
  return token === data.end_id ? data.end_piece : data.labels[token] ?? String(token);
}

function percent(p) {
  return (100 * p).toFixed(p >= 0.0995 ? 0 : p >= 0.00995 ? 1 : 2) + " %";
}

function section(title, ...lines) {
  main.append(element("h2", null, title), ...lines.map(line => element("p", { class: "dim" }, line)));
}

// The nodes from the beginning to this one, without the beginning.
function pathTo(node) {
  const path = [];
  for (let at = node; at && at.index > 0; at = nodes[at.parent]) path.unshift(at);
  return path;
}

// ---- the model, the texts and their pieces

function chips(pieces, ids, make) {
  return element("div", { class: "pieces" }, pieces.map((piece, i) =>
    make(i, [piece, element("small", null, ids[i])])));
}

const outputChips = [];
function drawPieces() {
  main.append(element("p", { class: "lead" }, data.source || "(nothing)", element("span", { class: "dim" },
    data.in_one_row ? "  goes on as  " : "  becomes  "), output.text || "(nothing)"));
  main.append(element("p", { class: "dim" }, data.file, ": ", data.model, ", ",
    data.parameters.toLocaleString("en"), " parameters."));
  section("Pieces", "The tokenizer cuts text into pieces, each with a number: the model sees only these. " +
    "Click a piece of the output to see how it was chosen; its share is what the model gave it.");
  main.append(element("h3", null, data.in_one_row ? "Prompt" : "Source"),
    data.source_ids.length
      ? chips(data.source_pieces, data.source_ids, (i, inner) => element("span", { class: "piece" }, inner))
      : element("p", { class: "dim" }, "(no pieces)"));
  const pieces = [...output.output_pieces, data.end_piece], ids = [...output.output_ids, data.end_id];
  main.append(element("h3", null, "Output"), chips(pieces, ids, (i, inner) => {
    const p = Math.exp(output.log_probs[i]);
    const chip = element("button", { class: "piece", style: `background: rgba(var(--ink), ${(0.4 * p).toFixed(3)})`,
      onclick: () => choose(best[i + 1] ?? best[best.length - 1]) }, inner, element("small", null, percent(p)));
    outputChips.push(chip);
    return chip;
  }));
}

// ---- the search as a tree

const best = [nodes[0], ...pathTo(nodes.find(node => node.rank === 1))];
let chosen = best[Math.min(1, best.length - 1)];
let showCut = true;
const treeBox = element("div", { class: "wide panel" }), nodeBox = element("p");

function why(node) {
  const ended = nodes.filter(other => other.fate === ENDED).length;
  const wide = search.sample ? search.nbest : search.beam;
  if (node.index === 0) return "The beginning: nothing is written yet.";
  if (node.fate === LIVE)
    return search.sample ? "Drawn at random." : wide === 1 ? "Kept: the likeliest of this step."
      : `Kept: its total is among the ${wide} best of this step.`;
  if (node.fate === ENDED)
    return (node.cut ? "Ended, because the maximum length was reached" : "Ended") +
      ` with score ${short(node.score)}` + (node.rank ? `: output ${node.rank}.`
        : `: not among the ${search.nbest} best score${search.nbest > 1 ? "s" : ""} in the end.`);
  if (node.fate === STOPPED)
    return ended >= wide ? `Cut: the search stopped, since ${ended} outputs had ended.`
      : "Cut: the search stopped, since no longer output could score more than the best that ended.";
  if (node.fate === WORSE)
    return node.token === data.end_id ? `Cut: ending here was not among the ${wide} best of this step.`
      : `Cut: its total is worse than the ${wide} best of this step.`;
  return "Cut although likely: " + whyBanned(node.depth - 1, node.token, nodes[node.parent]);
}

function repeatText() {
  return search.no_repeat_ngram === 1 ? "no token twice" : `no ${search.no_repeat_ngram} tokens twice in the same order`;
}

function whyBanned(length, token, parent) {
  if (length < search.forced) return "an output must begin with another token.";
  if (nodes.some(node => node.parent === parent.index && node.fate === ENDED && node.cut))
    return "the maximum length was reached.";
  if (token === data.end_id && length < search.min_len) return `an output has at least ${search.min_len} tokens.`;
  if (search.banned.includes(token)) return "the token stands for no text.";
  if (length === search.forced && search.begin_banned.includes(token)) return "no output may begin with it.";
  return search.no_repeat_ngram ? repeatText() + "." : "a rule bans the token.";
}

function describe(node) {
  const text = pathTo(node).map(at => labelOf(at.token)).join(" ");
  const figures = node.index === 0 ? "" : `  log-probability ${short(node.logProb)}, total ${short(node.total)}. `;
  return `${text || "(start)"}\n${figures}${why(node)}`;
}

// Live hypotheses stand on top in their order, below them what ended, below that what was cut.
function layTree() {
  const columns = [];
  for (const node of nodes) (columns[node.depth] ??= []).push(node);
  const order = [0, 1, 3, 4, 2];
  for (const column of columns) {
    let lane = 0;
    column.sort((a, b) => order[a.fate] - order[b.fate] || b.total - a.total);
    for (const node of column) {
      node.shown = showCut || node.path || node.fate <= ENDED;
      node.lane = node.shown ? lane++ : -1;
    }
  }
  return columns.map(column => column.filter(node => node.shown));
}

function drawTree() {
  const columns = layTree(), wide = 116, high = 33, box = 92;
  const lanes = Math.max(...columns.map(column => column.length));
  const x = node => 6 + node.depth * wide, y = node => 6 + node.lane * high;
  const svg = shape("svg", { class: "tree", width: columns.length * wide, height: lanes * high + 8,
    role: "img", "aria-label": "the search as a tree" });
  const drawn = columns.flat().sort((a, b) => a.path - b.path);
  for (const node of drawn.filter(node => node.parent >= 0)) {
    const from = nodes[node.parent], x0 = x(from) + box, x1 = x(node), middle = (x0 + x1) / 2;
    svg.append(shape("path", { class: node.path ? "path" : "",
      d: `M${x0} ${y(from) + 12}C${middle} ${y(from) + 12} ${middle} ${y(node) + 12} ${x1} ${y(node) + 12}` }));
  }
  for (const node of drawn) {
    const label = labelOf(node.token), text = label.length > 13 ? label.slice(0, 12) + "\u2026" : label;
    const names = ["node", fateNames[node.fate], node.path ? "path" : "", node === chosen ? "chosen" : ""];
    const group = shape("g", { class: names.join(" "), tabindex: 0, onclick: () => choose(node),
      onkeydown: event => { if (event.key === "Enter") choose(node); } },
      shape("rect", { x: x(node), y: y(node), width: box, height: 27, rx: 4 }),
      shape("text", { x: x(node) + 5, y: y(node) + 12 }, text),
      shape("text", { class: "share", x: x(node) + 5, y: y(node) + 23 }, node.index === 0 ? "" :
        `${percent(Math.exp(node.logProb))}  \u03a3 ${node.total.toFixed(2)}`));
    svg.append(tip(group, () => describe(node)));
  }
  treeBox.replaceChildren(svg);
  nodeBox.textContent = describe(chosen);
  nodeBox.style.whiteSpace = "pre-line";
}

function penaltyText() {
  if (search.penalty === "none") return "the total itself";
  return search.penalty === "gnmt" ? `the total divided by ((5 + n) / 6)^${search.alpha}`
    : `the total divided by n^${search.alpha}`;
}

function rulesText() {
  const rules = [];
  if (search.min_len) rules.push(`at least ${search.min_len} tokens`);
  if (search.forced) rules.push(`${search.forced} forced at the beginning, without a cost`);
  if (search.no_repeat_ngram) rules.push(repeatText());
  if (search.repetition_penalty !== 1) rules.push(`a repetition penalty of ${search.repetition_penalty}`);
  if (search.decay !== 1) rules.push(`a length decay of ${search.decay}`);
  return rules.length ? ` Rules: ${rules.join(", ")}.` : "";
}

function drawnText() {
  return `Every token is drawn at random at temperature ${search.temperature}` +
    (search.top_k ? `, of the ${search.top_k} likeliest` : "") +
    (search.top_p < 1 ? `, of the fewest that hold ${percent(search.top_p)}` : "") + ". ";
}

function drawSearch() {
  const cut = element("input", { type: "checkbox", onchange: () => { showCut = cut.checked; drawTree(); } });
  cut.checked = true;
  section("Search", search.sample
    ? drawnText() + "A box is a token: its probability at temperature 1, and \u03a3, the sum of the log-probabilities so far." + rulesText()
    : (search.beam === 1 ? "A greedy search: at each step the likeliest token goes on. "
      : `A beam search: at each step the ${search.beam} likeliest beginnings go on. `) + "A box is a token: its probability " +
      `after what is before it, and \u03a3, the sum of the log-probabilities so far. The score of an ended one is ${penaltyText()}, ` +
      "for n tokens with the end." + rulesText());
  const key = (style, text) => [element("span", { class: "key", style }), " " + text + "  "];
  main.append(element("p", null,
    key("border-color: var(--accent)", "output"), key("", "kept"), key("border-color: var(--good)", "ended"),
    key("border-style: dashed", "worse than the best"), key("border-style: dashed; border-color: var(--warm)", "search was over"),
    key("border-style: dashed; border-color: var(--bad)", "banned by a rule")),
    element("label", null, cut, " show what was cut"), treeBox, nodeBox);
  drawTree();
}

// ---- the likeliest tokens of a step

const likelyBox = element("div", { class: "panel steps" });
let temperature = search.temperatures.indexOf(1);

// The hypothesis whose next tokens are shown: the one before the chosen one, or that itself where the page has no
// distribution of the other; null: of neither.
function rowNode() {
  const before = chosen.index > 0 ? nodes[chosen.parent] : chosen;
  return before.row >= 0 ? before : chosen.row >= 0 ? chosen : null;
}

function likelyRow(at, name, p, logProb, note, classes) {
  return element("tr", { class: classes, "data-p": p },
    element("td", { class: "at dim" }, at), element("td", { class: "name" }, name),
    element("td", { class: "bar" }, element("div", { style: `width: ${(100 * p).toFixed(2)}%` })),
    element("td", { class: "number value" }, percent(p)),
    element("td", { class: "number value dim" }, logProb === null ? "" : short(logProb)),
    element("td", { class: "dim note" }, note));
}

function drawLikely() {
  const node = rowNode();
  if (!node) {
    likelyBox.replaceChildren(element("p", { class: "dim" }, "The page has no distribution for this step."));
    return;
  }
  const row = search.rows[node.row], T = search.temperatures[temperature];
  let rest = 1;
  const lines = row.tokens.map((token, i) => {
    const logProb = row.logits[i] / T - row.normalisers[temperature], p = Math.exp(logProb);
    const taken = chosen.parent === node.index && token === chosen.token;
    rest -= p;
    const line = likelyRow(i + 1, labelOf(token), p, logProb, row.banned[i] ? "banned" : taken ? "chosen" : "",
      taken ? "taken" : row.banned[i] ? "banned" : "");
    line.dataset.id = token;
    return line;
  });
  const drawn = search.sample && chosen.parent === node.index && !row.tokens.includes(chosen.token);
  if (drawn) {
    const logit = chosen.logProb + row.normalisers[search.temperatures.indexOf(1)];
    const logProb = logit / T - row.normalisers[temperature];
    rest -= Math.exp(logProb);
    lines.push(likelyRow("", labelOf(chosen.token), Math.exp(logProb), logProb, "chosen", "taken"));
  }
  const left = data.vocabulary - lines.length;
  if (left > 0) lines.push(likelyRow("", `${left.toLocaleString("en")} others`, Math.max(rest, 0), null, "", "dim"));
  likelyBox.replaceChildren(
    element("p", null, element("span", { class: "dim" }, `After ${node.depth} token${node.depth === 1 ? "" : "s"}: `),
      pathTo(node).map(at => labelOf(at.token)).join(" ") || "(start)"),
    element("table", { class: "likely" }, element("tbody", null, lines)));
}

const temperatureLabel = element("output", { class: "number" });
const slider = element("input", { type: "range", min: 0, max: search.temperatures.length - 1, "aria-label": "temperature",
  oninput: () => setTemperature(Number(slider.value)) });

function setTemperature(index) {
  temperature = index;
  slider.value = index;
  temperatureLabel.textContent = `temperature ${search.temperatures[index]}`;
  drawLikely();
}

function drawSteps() {
  const move = by => {
    const at = best.indexOf(chosen), next = best[Math.min(Math.max((at < 0 ? 0 : at) + by, 1), best.length - 1)];
    choose(next);
  };
  section("Step by step", "The ten likeliest tokens, and their probabilities: softmax(logits / temperature) over the whole " +
    "vocabulary. A temperature below 1 sharpens them, above 1 flattens them.");
  main.append(element("div", { class: "row" },
    element("button", { onclick: () => move(-1) }, "\u2190 before"), element("button", { onclick: () => move(1) }, "next \u2192"),
    slider, temperatureLabel), likelyBox);
}

function choose(node) {
  if (!node) return;
  chosen = node;
  const at = best.indexOf(node);
  outputChips.forEach((chip, i) => chip.setAttribute("aria-pressed", i + 1 === at));
  drawTree();
  drawLikely();
  const left = node.depth * 116;
  if (left < treeBox.scrollLeft || left + 116 > treeBox.scrollLeft + treeBox.clientWidth)
    treeBox.scrollLeft = left - treeBox.clientWidth / 2;
}

// ---- attention

const mapTitles = { encoder_self: "encoder self-attention", decoder_self: "decoder self-attention",
  cross: "cross-attention", self: "self-attention" };
const view = { map: Math.max(data.attention.length - 1, 0), layer: 0, head: 0 };
const thumbBox = element("div", { class: "wide" }), arcBox = element("div"), mapBox = element("div"), mapNote = element("p", { class: "dim" });

function weightsOf(map, layer) {
  if (typeof map.layers[layer] === "string") {
    const bytes = atob(map.layers[layer]), weights = new Float32Array(bytes.length / 2);
    for (let i = 0; i < weights.length; i++)
      weights[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
    map.layers[layer] = weights;
  }
  return map.layers[layer];
}

function weight(map, layer, head, row, column) {
  return weightsOf(map, layer)[(head * map.rows + row) * map.columns + column];
}

// The piece that is written at a position that the model was fed; "" before the last of a prompt.
function written(row) {
  const at = row - data.fed_before;
  return at < 0 ? "" : output.output_pieces[at] ?? data.end_piece;
}

function rowLabels(map) {
  const all = map.source_queries ? data.source_pieces
    : map.source_keys ? data.fed_pieces.map((piece, i) => written(i)) : data.fed_pieces;
  return all.slice(map.first_row);
}

function columnLabels(map) {
  return map.source_keys ? data.source_pieces : data.fed_pieces;
}

function weightText(map, row, column) {
  const w = weight(map, view.layer, view.head, row, column);
  const writing = map.source_queries || map.source_keys ? "" : `, writing ${written(map.first_row + row) || "nothing yet"}`;
  return `${rowLabels(map)[row]}${writing} \u2192 ${columnLabels(map)[column]}: ${w.toFixed(4)}`;
}

function headName(map, layer, head) {
  return `layer ${map.first_layer + layer + 1}, head ${head + 1}`;
}

function thumb(map, layer, head) {
  const canvas = element("canvas", { width: map.columns, height: map.rows });
  const context = canvas.getContext("2d"), ink = getComputedStyle(document.body).getPropertyValue("--ink");
  for (let i = 0; i < map.rows; i++)
    for (let k = 0; k < map.columns; k++) {
      context.fillStyle = `rgba(${ink}, ${weight(map, layer, head, i, k)})`;
      context.fillRect(k, i, 1, 1);
    }
  return element("button", { "aria-pressed": view.layer === layer && view.head === head,
    "aria-label": headName(map, layer, head), title: headName(map, layer, head),
    onclick: () => { view.layer = layer; view.head = head; drawAttention(); } }, canvas);
}

function drawThumbs(map) {
  const grid = element("div", { class: "thumbs", style: `grid-template-columns: auto repeat(${map.heads}, auto)` }, "");
  grid.append(element("span"));
  for (let head = 0; head < map.heads; head++) grid.append(element("span", { class: "dim" }, `head ${head + 1}`));
  map.layers.forEach((unused, layer) => {
    grid.append(element("span", { class: "dim" }, `layer ${map.first_layer + layer + 1}`));
    for (let head = 0; head < map.heads; head++) grid.append(thumb(map, layer, head));
  });
  thumbBox.replaceChildren(grid);
}

function cutLabel(label, most) {
  return label.length > most ? label.slice(0, most - 1) + "\u2026" : label;
}

function drawArcs(map) {
  const rows = rowLabels(map), columns = columnLabels(map), high = 21, left = 110, right = 250;
  const tall = Math.max(map.rows, map.columns) * high + 24;
  const y = i => 30 + i * high;
  const svg = shape("svg", { class: "arcs", width: right + 110, height: tall });
  const lines = [];
  svg.append(shape("text", { x: left - 6, y: 12, "text-anchor": "end", class: "dim" }, "looks"),
    shape("text", { x: right + 6, y: 12, class: "dim" }, "at"));
  for (let i = 0; i < map.rows; i++)
    for (let k = 0; k < map.columns; k++) {
      const w = weight(map, view.layer, view.head, i, k);
      if (w < 0.02) continue;
      const line = shape("line", { x1: left, y1: y(i) - 4, x2: right, y2: y(k) - 4, "stroke-width": 0.5 + 3.5 * w, opacity: Math.max(w, 0.06) });
      lines.push({ i, k, line });
      svg.append(tip(line, () => weightText(map, i, k)));
    }
  const light = (key, at) => lines.forEach(l => l.line.classList.toggle("faint", at >= 0 && l[key] !== at));
  const label = (text, x, at, key, anchor) => shape("text", { x, y: y(at), "text-anchor": anchor,
    onpointerenter: () => light(key, at), onpointerleave: () => light(key, -1) }, cutLabel(text, 14));
  rows.forEach((text, i) => svg.append(label(text, left - 6, i, "i", "end")));
  columns.forEach((text, k) => svg.append(label(text, right + 6, k, "k", "start")));
  arcBox.replaceChildren(svg);
}

function drawMap(map) {
  const rows = rowLabels(map), columns = columnLabels(map);
  const cell = Math.max(7, Math.min(22, Math.floor((Math.min(main.clientWidth - 32, 640) - 116) / map.columns))), left = 110, top = 92;
  const svg = shape("svg", { class: "map", style: `font-size: ${Math.min(12, cell + 1)}px`, width: left + map.columns * cell + 4, height: top + map.rows * cell + 4 });
  for (let i = 0; i < map.rows; i++)
    for (let k = 0; k < map.columns; k++) {
      const w = weight(map, view.layer, view.head, i, k);
      if (w >= 0.004) svg.append(shape("rect", { class: "cell", x: left + k * cell, y: top + i * cell,
        width: cell - 0.5, height: cell - 0.5, "fill-opacity": w.toFixed(3) }));
    }
  const frame = shape("rect", { class: "frame", x: left, y: top, width: map.columns * cell, height: map.rows * cell });
  svg.append(frame);
  tip(svg, event => {
    const box = frame.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top) / box.height * map.rows), k = Math.floor((event.clientX - box.left) / box.width * map.columns);
    return i >= 0 && k >= 0 && i < map.rows && k < map.columns ? weightText(map, i, k) : "";
  });
  if (cell >= 9) {
    rows.forEach((text, i) => svg.append(shape("text", { x: left - 5, y: top + i * cell + cell / 2 + 4, "text-anchor": "end" }, cutLabel(text, 14))));
    columns.forEach((text, k) => svg.append(shape("text", { transform: `translate(${left + k * cell + cell / 2 + 4} ${top - 5}) rotate(-60)` }, cutLabel(text, 13))));
  }
  mapBox.replaceChildren(svg);
}

function drawAttention() {
  const map = data.attention[view.map];
  view.layer = Math.min(view.layer, map.layers.length - 1);
  view.head = Math.min(view.head, map.heads - 1);
  drawThumbs(map);
  drawArcs(map);
  drawMap(map);
  const rows = map.source_queries ? "a source piece" : map.source_keys ? "the piece that is written there" : "a piece that the model was fed";
  mapNote.textContent = `${mapTitles[map.name] ?? map.name}, ${headName(map, view.layer, view.head)}. A row is ${rows}; its weights sum to 1. Lines below 0.02 are not drawn.`;
}

function drawAttentionSection() {
  if (data.attention.length === 0) return;
  section("Attention", "Each head of each layer mixes the values of the positions that it looks at, by these weights. " +
    "Choose a head in the grid; the lines and the map show the same numbers.");
  const buttons = data.attention.map((map, i) => element("button", { "aria-pressed": i === view.map, onclick: () => {
    view.map = i;
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", k === i));
    drawAttention();
  } }, mapTitles[map.name] ?? map.name));
  main.append(element("div", { class: "row" }, buttons), thumbBox, mapNote, element("div", { class: "views" }, arcBox, mapBox));
  view.layer = data.attention[view.map].layers.length - 1;
  drawAttention();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAttention);
  addEventListener("resize", drawAttention);
}

// ---- the stack

const meanings = {
  layer_norm: "(x - mean) / sqrt(variance + eps) * weight + bias, over the last axis",
  rms_norm: "x / sqrt(mean(x\u00b2) + eps) * weight, over the last axis",
  softmax: "exp(x) / sum of exp(x), over the last axis", log_softmax: "x - log(sum of exp(x)), over the last axis",
  relu: "max(x, 0)", gelu: "x * \u03a6(x)", silu: "x / (1 + exp(-x))", add: "a + b", mul: "a * b", sub: "a - b", div: "a / b",
  matmul: "the matrix product of the first two operands (plus the third)", embedding: "rows of a table, by their ids",
  attention: "softmax(q k\u1d40 / sqrt(d)) v: the weights above, applied to the values, in one fused op",
  affine: "a x + b, by constants", arange: "0, 1, 2, ...", less: "a < b", permute: "axes in another order",
  reshape: "axes split or merged", slice: "a part of an axis", cache: "where a step of decoding keeps its rows",
};
const modules = {
  self_attn: "self-attention: positions look at positions of the same text",
  multihead_attn: "cross-attention: positions of the output look at the source",
  linear1: "feed-forward, widening", linear2: "feed-forward, narrowing", linear3: "feed-forward, the gate", out_proj: "heads mixed",
  norm: "the last norm", output: "logits: a score of every token", scores: "log-probabilities",
  encoder: "reads the source", decoder: "reads the output so far, and the source", memory_mask: "which positions there are",
};
const places = new Map();

function moduleTree() {
  const root = { name: "", parts: [], modules: new Map(), count: 0 };
  data.stack.forEach((node, index) => {
    let at = root;
    root.count++;
    for (const name of node.path ? node.path.split(".") : []) {
      if (!at.modules.has(name)) {
        const inner = { name, parts: [], modules: new Map(), count: 0 };
        at.modules.set(name, inner);
        at.parts.push(inner);
      }
      at = at.modules.get(name);
      at.count++;
    }
    at.parts.push(index);
  });
  return root;
}

function operand(name) {
  if (typeof name === "string") return element("code", null, name);
  const node = data.stack[name];
  return element("a", { href: "#", onclick: event => { event.preventDefault(); reveal(name); } }, `#${name} ${node.label ?? node.op}`);
}

function joined(parts) {
  return parts.flatMap((part, i) => i ? [", ", part] : [part]);
}

// The pieces along an axis of positions.
function piecesOf(axis) {
  return axis === "S" ? data.source_pieces : axis === "T" ? data.fed_pieces : null;
}

function valueTable(node) {
  const largest = Math.max(...node.values.flat().map(x => Math.abs(x ?? 0)), 1e-30);
  const columns = node.shape.length ? node.shape[node.shape.length - 1] : 1;
  const rows = node.shape.slice(0, -1).reduce((a, b) => a * b, 1);
  const axes = node.axes.slice(1, -1).split(","), names = piecesOf(axes[axes.length - 2]), across = piecesOf(axes[axes.length - 1]);
  const length = names ? names.length : 1, many = rows > length;
  const nameOf = i => rows === 1 ? "" : !names ? `row ${i}` : (many ? `head ${Math.floor(i / length) + 1}: ` : "") + names[i % length];
  const wide = (node.values[0] ?? []).length;
  const head = across ? element("tr", null, element("td"), across.slice(0, wide).map(piece => element("td", { class: "dim" }, piece))) : null;
  const cell = x => element("td", { style: `background: rgba(var(--ink), ${(0.6 * Math.abs(x ?? 0) / largest).toFixed(3)})` }, short(x));
  const left = rows > node.values.length || columns > wide;
  return [element("div", { class: "wide" }, element("table", null, head, node.values.map((row, i) =>
    element("tr", null, element("td", null, nameOf(i)), row.map(cell))))),
    left ? element("p", { class: "dim" }, `The first ${node.values.length} of ${rows} rows, and the first ${wide} of ${columns} columns.`) : null];
}

function drawNode(index) {
  const node = data.stack[index];
  const details = element("details", null, element("summary", null, `#${index} `,
    element("span", null, node.label ? `${node.op}: ${node.label}` : node.op), element("span", { class: "dim" }, node.function ? ` (of ${node.function})` : ""), " ",
    element("span", { class: "shape" }, `${node.axes} = [${node.shape.join(", ")}]`)));
  places.set(index, details);
  details.addEventListener("toggle", () => {
    if (!details.open || details.dataset.drawn) return;
    details.dataset.drawn = 1;
    if (meanings[node.op]) details.append(element("p", { class: "dim" }, meanings[node.op]));
    if (node.in.length) details.append(element("p", null, element("span", { class: "dim" }, "of "), joined(node.in.map(operand))));
    if (node.values) details.append(...valueTable(node).filter(part => part));
    else details.append(element("p", { class: "dim" }, "The numbers of its operand, seen in another shape or order."));
  });
  return details;
}

function drawModule(module) {
  const details = element("details", null, element("summary", null, element("span", { class: "module" }, module.name),
    element("span", { class: "dim" }, `  ${modules[module.name] ? modules[module.name] + ", " : ""}${module.count} node${module.count === 1 ? "" : "s"}`)));
  module.open = () => {
    if (details.dataset.drawn) return;
    details.dataset.drawn = 1;
    details.append(...module.parts.map(part => typeof part === "number" ? drawNode(part) : drawModule(part)));
  };
  module.details = details;
  details.addEventListener("toggle", () => { if (details.open) module.open(); });
  return details;
}

let stackRoot;
function reveal(index) {
  let at = stackRoot;
  for (const name of data.stack[index].path ? data.stack[index].path.split(".") : []) {
    at = at.modules.get(name);
    at.open();
    at.details.open = true;
  }
  document.querySelectorAll(".stack .found").forEach(old => old.classList.remove("found"));
  const details = places.get(index);
  details.open = true;
  details.classList.add("found");
  details.scrollIntoView({ block: "center" });
}

function drawStack() {
  section("Stack", "Every node that the model computed for the source and the first output, in the order of its graph, by module. " +
    "Open one for its operands, its shape and its numbers.");
  stackRoot = moduleTree();
  main.append(element("div", { class: "stack" },
    stackRoot.parts.map(part => typeof part === "number" ? drawNode(part) : drawModule(part))));
}

function drawOmissions() {
  const left = [];
  for (const map of data.attention) {
    const of = ` of the ${mapTitles[map.name] ?? map.name}`;
    if (map.heads < map.all_heads) left.push(`${map.all_heads - map.heads} of ${map.all_heads} heads${of}`);
    if (map.first_layer) left.push(`the first ${map.first_layer} layers${of}`);
    if (map.first_row) left.push(`the first ${map.first_row} rows${of}`);
  }
  if (search.nodes_left_out) left.push(`${search.nodes_left_out} boxes of the tree`);
  if (search.rows_left_out) left.push(`the likeliest tokens of ${search.rows_left_out} boxes`);
  section("Left out", (left.length ? `So that the page stays small it is without ${left.join(", ")}. ` : "") +
    "Attention weights are rounded to 1/65535. The stack shows at most 8 columns and a few rows of each node, to 4 digits, " +
    "and of parameters their names and shapes.");
}

drawPieces();
drawSearch();
drawSteps();
drawAttentionSection();
drawStack();
drawOmissions();

// page.html#step=3&temperature=0.5&node=12 opens the page at a step, a temperature, a node of the stack.
function follow() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const at = search.temperatures.indexOf(Number(wanted.get("temperature") ?? 1));
  if (at >= 0) setTemperature(at);
  choose(best[wanted.get("step") ?? 1] ?? chosen);
  if (data.stack[wanted.get("node") ?? -1]) reveal(Number(wanted.get("node")));
}
addEventListener("hashchange", follow);
follow();

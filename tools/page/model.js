// The page of graph --emit-html: lines through a model, which is WebAssembly in the page's data, and how it comes to each
// token. Its data: tools/emit/emit_page.c; what the module exports: tools/emit/plain_page.c.
//
// The model runs in a worker, so that the page answers while it computes. The worker is made of the functions of the first
// part of this script; `data` is the page's there too.

// ---- the model, in the worker

// Starts the module. Its exports are what answer() and explain() call.
async function openModel() {
  const bytes = Uint8Array.from(atob(data.wasm), character => character.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes, {});
  instance.exports.start();
  return instance.exports;
}

// The output for a line: { text, score }, or { refused }, a sentence.
function answer(model, line) {
  const refusals = {
    "-1": data.ids ? "These are no ids of the vocabulary." : "This is no line of text.",
    "-2": "This line is too long.",
    "-3": "The output is too long.",
    "-4": "The model finds no output.",
  };
  const bytes = new TextEncoder().encode(line);
  if (bytes.length > model.line_size()) return { refused: refusals[-2] };
  new Uint8Array(model.memory.buffer, model.line(), bytes.length).set(bytes);
  const n = model.translate(bytes.length);
  if (n < 0) return { refused: refusals[n] };
  const text = new Uint8Array(model.memory.buffer, model.text(), n);
  return { text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(text), score: model.score() };
}

// The likeliest ids of a row of log-probabilities, with their probabilities.
function likeliest(row, most) {
  const best = [];
  for (let id = 0; id < row.length; id++) {
    if (best.length === most && row[id] <= row[best[most - 1]]) continue;
    let at = best.length;
    while (at > 0 && row[id] > row[best[at - 1]]) at--;
    best.splice(at, 0, id);
    if (best.length > most) best.pop();
  }
  return best.map(id => ({ id, p: Math.exp(row[id]) }));
}

// How the last output came to be; null if there is none:
//   source, tokens   ids of the source and of the row that the decoder reads; the output begins after tokens[begin]
//   widths           tokens of a padded source and of a padded row
//   maps             [map][layer]: weights of all heads, [heads, queries, keys], padded
//   steps            for each token of the output, and its end: the likeliest tokens there, and the one it is
function explain(model) {
  const n = model.attend();
  if (n < 0) return null;
  const ids = (at, count) => Array.from(new Int32Array(model.memory.buffer, at, count));
  const widths = [model.most_source(), model.most_tokens()], vocabulary = model.vocabulary(), begin = model.begin();
  const tokens = ids(model.tokens(), n), next = [...tokens.slice(begin + 1), data.end_id], steps = [];
  for (let i = 0; i < next.length; i++) {
    const row = new Float32Array(model.memory.buffer, model.log_probs() + 4 * (begin + i) * vocabulary, vocabulary);
    steps.push({ id: next[i], p: Math.exp(row[next[i]]), likeliest: likeliest(row, 5) });
  }
  const maps = data.maps.map(([, layers, heads, queries, keys], map) => Array.from({ length: layers }, (_, layer) =>
    new Float32Array(model.memory.buffer, model.weights(map, layer), heads * widths[queries] * widths[keys]).slice()));
  return { source: ids(model.source(), model.source_size()), tokens, begin, widths, maps, steps };
}

// What the worker does with a message: the page's data first, then lines.
async function work(message) {
  if (message.wasm) {
    self.data = message;
    self.model = await openModel();
    return { ready: true };
  }
  const begin = performance.now(), result = answer(self.model, message.line), milliseconds = performance.now() - begin;
  return { result, milliseconds, reasons: result.refused === undefined ? explain(self.model) : null };
}

// A function of the page that asks the worker and waits for what it says.
async function startWorker() {
  const code = [openModel, answer, likeliest, explain, work].join("\n") +
    "\nonmessage = event => work(event.data).then(postMessage, error => postMessage({ failed: String(error) }));";
  const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const ask = message => new Promise((resolve, reject) => {
    worker.onmessage = event => event.data.failed ? reject(new Error(event.data.failed)) : resolve(event.data);
    worker.onerror = event => reject(new Error(event.message || "no worker"));
    worker.postMessage(message);
  });
  await ask({ wasm: data.wasm, ids: data.ids, maps: data.maps, end_id: data.end_id });
  return ask;
}

// ---- what is drawn: an output and its reasons

const sides = ["source", "output so far"];
const mapTitles = { encoder_self: "encoder self-attention", decoder_self: "decoder self-attention", cross: "cross-attention",
  self: "self-attention" };

function pieceOf(id, side) {
  if (id === data.end_id) return "(end)";
  return (data.pieces[side] ?? data.pieces[1])?.[id] ?? String(id);
}

function percent(p) {
  return (100 * p).toFixed(p >= 0.0995 ? 0 : 1) + " %";
}

// A list for each token: what it is, and what else was likely there.
function drawSteps(reasons) {
  return element("div", { class: "steps" }, reasons.steps.map(step => element("div", { class: "step" },
    element("strong", null, pieceOf(step.id, 1)), element("span", { class: "dim" }, percent(step.p)),
    step.likeliest.map(other => element("div", { class: other.id === step.id ? "bar taken" : "bar",
      style: `--share: ${(100 * other.p).toFixed(1)}%` }, element("span", null, pieceOf(other.id, 1)),
      element("span", { class: "dim" }, percent(other.p)))))));
}

// One head: a row for each token that looks, a column for each that is looked at.
function drawHead(reasons, map, layer, head) {
  const [, , , queries, keys] = data.maps[map], cell = 18, left = 120, top = 96;
  const start = !data.start_first ? reasons.begin : data.start_if_empty && reasons.source.length ? -1 : 0;
  const names = side => (side ? reasons.tokens : reasons.source).map((id, i) =>
    side && i === start ? "(start)" : pieceOf(id, side));
  const rows = names(queries), columns = names(keys), weights = reasons.maps[map][layer];
  const at = (i, j) => weights[(head * reasons.widths[queries] + i) * reasons.widths[keys] + j];
  const cut = text => text.length > 16 ? text.slice(0, 15) + "\u2026" : text;
  const drawing = shape("svg", { class: "head", width: left + columns.length * cell + 40, height: top + rows.length * cell + 4,
    role: "img", "aria-label": "attention weights" });
  columns.forEach((name, j) => drawing.append(shape("text",
    { transform: `translate(${left + j * cell + 13} ${top - 6}) rotate(-60)` }, cut(name))));
  rows.forEach((name, i) => {
    drawing.append(shape("text", { x: left - 6, y: top + i * cell + 13, "text-anchor": "end" }, cut(name)));
    columns.forEach((other, j) => drawing.append(tip(shape("rect", { x: left + j * cell, y: top + i * cell, width: cell - 1,
      height: cell - 1, "fill-opacity": Math.max(at(i, j), 0.03).toFixed(3) }), `${name} looks at ${other}: ${percent(at(i, j))}`)));
  });
  return drawing;
}

function choice(label, count, chosen, choose) {
  return element("label", null, `${label} `, element("select", { onchange: event => choose(Number(event.target.value)) },
    Array.from({ length: count }, (_, i) => element("option", { value: i, selected: i === chosen },
      String(i + 1)))));
}

const view = { map: data.maps.length - 1, layer: 0, head: 0 };
view.layer = Math.max(data.maps[view.map]?.[1] - 1, 0);

function drawAttention(reasons) {
  const box = element("div");
  const draw = () => {
    const [name, layers, heads, queries, keys] = data.maps[view.map];
    view.layer = Math.min(view.layer, layers - 1);
    view.head = Math.min(view.head, heads - 1);
    box.replaceChildren(
      element("p", { class: "choices" }, data.maps.map(([title], i) => element("button", { "aria-pressed": i === view.map,
        onclick: () => { view.map = i; draw(); } }, mapTitles[title] ?? title)),
        choice("layer", layers, view.layer, i => { view.layer = i; draw(); }),
        choice("head", heads, view.head, i => { view.head = i; draw(); })),
      element("p", { class: "dim" }, `${mapTitles[name] ?? name}: each row is a token of the ${sides[queries]} and looks at tokens ` +
        `of the ${sides[keys]}; its weights sum to 1.`),
      element("div", { class: "wide" }, drawHead(reasons, view.map, view.layer, view.head)));
  };
  if (data.maps.length && data.maps[view.map][1]) draw();
  return box;
}

function drawReasons(reasons) {
  return element("details", { open: true }, element("summary", null, "Why"),
    element("p", { class: "dim" }, "What the model found likely at each token of this output, computed here:"),
    drawSteps(reasons), drawAttention(reasons));
}

function drawAnswer(line, { result, milliseconds, reasons }) {
  return element("div", { class: result.refused ? "panel answer failed" : "panel answer" },
    element("div", { class: "dim" }, line || "(an empty line)"),
    element("div", { class: "output" }, result.refused ?? (result.text || "(an empty output)")),
    result.refused ? null
      : element("div", { class: "dim" }, `score ${short(result.score)}, ${milliseconds.toFixed(0)} ms`),
    reasons ? drawReasons(reasons) : null);
}

// ---- the page

const input = element("textarea", { "aria-label": data.ids ? "Token ids" : "Text", spellcheck: "false", autofocus: true,
  onkeydown: event => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    answerAll();
  } });
const button = element("button", { disabled: true, onclick: () => answerAll() }, "Loading the model ...");
const answers = element("div", { "aria-live": "polite" });
let ask = null;

// Each line has its answer.
async function answerAll() {
  if (!ask || button.disabled) return;
  button.disabled = true;
  answers.replaceChildren();
  try {
    for (const line of input.value.replace(/\n$/, "").split("\n"))
      answers.append(drawAnswer(line, await ask({ line })));
  } catch (error) {
    answers.append(element("p", null, `The model stopped: ${error.message}`));
  }
  button.disabled = false;
}

// What stands behind # in the page's address is answered at once.
async function begin() {
  try {
    ask = await startWorker();
  } catch (error) {
    answers.append(element("p", null, `This browser cannot run the model: ${error.message}`));
    return;
  }
  button.textContent = "Run the model";
  button.disabled = false;
  input.value = decodeURIComponent(location.hash.slice(1));
  if (input.value) answerAll();
}

main.append(
  element("p", { class: "dim" }, `${data.file}: ${data.model}. It runs in this page, and its outputs are those of generate, `,
    "to the byte. Nothing is sent anywhere."),
  element("p", null, data.ids ? "Write token ids with spaces between them, a sequence in each line."
    : "Write a text; each line has its own output. Enter runs the model, Shift and Enter begin a line."),
  input, element("p", null, button), answers);
begin();

// The page of a training. Its data: tools/history/run_page.c.
const colours = ["var(--accent)", "var(--warm)", "var(--good)", "var(--bad)"];
const level = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function seconds(s) {
  const minutes = Math.floor(s / 60);
  if (s < 60) return `${s.toFixed(1)} s`;
  return minutes < 60 ? `${minutes} min ${Math.round(s % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function bytes(n) {
  const units = ["bytes", "kB", "MB", "GB"];
  let k = 0;
  for (; n >= 1000 && k < 3; k++) n /= 1000;
  return `${k ? n.toPrecision(3) : n} ${units[k]}`;
}

// Draws at the width of an element of the page, now and whenever the width is another.
function drawAtWidth(node, draw) {
  let width = node.clientWidth;
  draw();
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (node.clientWidth === width) return;
    width = node.clientWidth;
    draw();
  })).observe(node);
}

// ---- the run ---------------------------------------------------------------------------------

function header() {
  const share = data.total ? Math.min(1, data.step / data.total) : 1;
  const state = data.ended ? "ended" : "running when this was written";
  main.append(
    element("p", null, `Step ${data.step.toLocaleString("en")} of ${data.total.toLocaleString("en")}, `,
      `${seconds(data.elapsed)} since it was started, ${state}. Reload the page to see it as it is now.`),
    element("div", { class: "bar", role: "img", "aria-label": `${Math.round(100 * share)} % of the steps` },
      element("i", { style: `width:${100 * share}%` })),
    element("details", null, element("summary", null, "The model and the training"),
      element("div", { class: "wide" }, element("table", null,
        data.facts.map(([name, text]) => element("tr", null, element("th", null, name), element("td", null, text)))))));
}

// ---- curves ----------------------------------------------------------------------------------

const charts = [
  ["Loss", ["train/loss", "valid/loss"], true],
  ["Accuracy of tokens, exact outputs", ["train/accuracy", "valid/accuracy", "valid/exact"]],
  ["BLEU and chrF", ["valid/bleu_13a", "valid/bleu", "valid/chrf"]],
  ["Error rates", ["valid/cer", "valid/wer"]],
  ["Bits per byte", ["valid/bits_per_byte"]],
  ["Learning rate", ["train/rate"]],
  ["Norm of the gradient", ["train/gradient_norm"], true],
  ["Target tokens per second", ["train/tokens_per_second"]],
];

// About four round values in a range.
function ticks(low, high) {
  const raw = (high - low) / 4 || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * size).find(k => k >= raw);
  const values = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) values.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return values;
}

function plain(number) {
  const size = Math.abs(number);
  if (size >= 1e6) return `${+(number / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(number / 1e3).toPrecision(3)}k`;
  return number && size < 1e-3 ? number.toExponential(0) : String(+number.toPrecision(4));
}

// The index of the point of a curve that is nearest to a step.
function nearest(curve, step) {
  let best = 0;
  curve.x.forEach((x, i) => { if (Math.abs(x - step) < Math.abs(curve.x[best] - step)) best = i; });
  return best;
}

function drawChart(box, curves, logarithmic) {
  const width = Math.max(box.clientWidth, 200), height = 190;
  const left = 46, right = width - 8, top = 8, bottom = height - 20;
  const scale = v => logarithmic ? Math.log10(Math.max(v, 1e-12)) : v;
  const all = curves.flatMap(c => c.y.map(scale));
  let low = Math.min(...all), high = Math.max(...all);
  if (!logarithmic && low > 0 && low < high / 2) low = 0;
  if (high === low) { high += Math.abs(high) / 10 || 1; low -= Math.abs(low) / 10 || 0; }
  const last = Math.max(data.step, ...curves.flatMap(c => c.x));
  const X = x => left + (right - left) * x / last;
  const Y = y => bottom - (bottom - top) * (scale(y) - low) / (high - low);
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const t of ticks(low, high)) {
    const value = logarithmic ? 10 ** t : t, y = bottom - (bottom - top) * (t - low) / (high - low);
    svg.append(shape("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }),
      shape("text", { class: "tick", x: left - 5, y: y + 4, "text-anchor": "end" }, plain(value)));
  }
  for (const t of ticks(0, last).filter(t => Number.isInteger(t)))
    svg.append(shape("text", { class: "tick", x: X(t), y: height - 5, "text-anchor": t ? X(t) > right - 20 ? "end" : "middle" : "start" }, plain(t)));
  curves.forEach((curve, i) => {
    const points = curve.x.map((x, k) => `${X(x).toFixed(1)},${Y(curve.y[k]).toFixed(1)}`);
    svg.append(shape("polyline", { class: "curve", points: points.join(" "), style: `stroke:${colours[i]}` }));
    if (points.length < 60) curve.x.forEach((x, k) =>
      svg.append(shape("circle", { cx: X(x), cy: Y(curve.y[k]), r: 2, style: `fill:${colours[i]}` })));
  });
  const cursor = shape("line", { class: "cursor", y1: top, y2: bottom, x1: -9, x2: -9 });
  svg.append(cursor);
  tip(svg, event => {
    const frame = svg.getBoundingClientRect();
    const step = (event.clientX - frame.left - left) / (right - left) * last;
    const at = curves[0].x[nearest(curves[0], step)];
    cursor.setAttribute("x1", X(at));
    cursor.setAttribute("x2", X(at));
    return [`step ${at}`, ...curves.map(c => `${c.group} ${c.name.replaceAll("_", " ")}: ${short(c.y[nearest(c, at)])}`)].join("\n");
  });
  svg.addEventListener("pointerleave", () => cursor.setAttribute("x1", cursor.setAttribute("x2", -9) || -9));
  return svg;
}

function chart([title, names, positive]) {
  const curves = names.map(name => data.curves.find(c => `${c.group}/${c.name}` === name)).filter(Boolean);
  if (!curves.length) return null;
  const box = element("div");
  let logarithmic = false;
  const draw = () => box.replaceChildren(drawChart(box, curves, logarithmic));
  const button = positive && curves.every(c => c.y.every(v => v > 0)) && element("button", {
    "aria-pressed": "false",
    onclick: event => {
      logarithmic = !logarithmic;
      event.target.setAttribute("aria-pressed", String(logarithmic));
      draw();
    } }, "log");
  const legend = element("div", { class: "legend" }, curves.map((c, i) => element("span", null,
    element("i", { style: `background:${colours[i]}` }), `${c.group === "train" ? "training" : "held out"}: ${c.unit}`)));
  const panel = element("div", { class: "panel" },
    element("div", { class: "row", style: "justify-content:space-between" }, element("h3", null, title), button || null), box, legend);
  return { panel, box, draw };
}

function curves() {
  if (!data.curves.length) return;
  const drawn = charts.map(chart).filter(Boolean);
  main.append(element("h2", null, "Curves"), element("div", { class: "charts" }, drawn.map(c => c.panel)));
  drawn.forEach(c => drawAtWidth(c.box, c.draw));
}

// ---- outputs and attention over the run ------------------------------------------------------

function samples(frame) {
  if (data.sources[0] === null)
    return element("div", { class: "panel written" }, frame.outputs[0] || "");
  const rows = data.sources.map((source, i) => source === null ? null : element("tr", null,
    element("td", null, source), element("td", null, data.references[i]),
    element("td", { class: frame.outputs[i] === data.references[i] ? "same" : "other" }, frame.outputs[i] ?? "")));
  return element("div", { class: "wide" }, element("table", { class: "samples" },
    element("tr", null, ["source", "reference", "output"].map(t => element("th", null, t))), rows.filter(Boolean)));
}

// The weights of one head as numbers from 0 to 1, or the mean of all.
function weightsOf(frame, head) {
  const { heads, rows, columns } = data.attention, n = rows.length * columns.length;
  const sum = new Float64Array(n);
  const from = head < 0 ? 0 : head, to = head < 0 ? heads : head + 1;
  for (let h = from; h < to; h++)
    for (let i = 0; i < n; i++) sum[i] += level.indexOf(frame.weights[h * n + i]) / 63 / (to - from);
  return sum;
}

// The beginning of a word: the whole of it is in the tip.
function clip(text, most) {
  const letters = [...text];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
}

function heatMap(frame, head, labels) {
  const { rows, columns } = data.attention, w = weightsOf(frame, head);
  const cell = 14, left = labels ? 78 : 0, top = labels ? 66 : 0;
  const width = left + cell * columns.length + (labels ? 36 : 1), height = top + cell * rows.length + 1;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
    ...(labels ? { width: Math.min(width * 1.5, 900) } : {}) });
  if (labels) {
    rows.forEach((text, i) => svg.append(shape("text", { x: left - 5, y: top + cell * i + 11, "text-anchor": "end" }, clip(text, 11))));
    columns.forEach((text, j) => svg.append(shape("text", { transform: `translate(${left + cell * j + 10},${top - 5}) rotate(-60)` }, clip(text, 10))));
  }
  rows.forEach((row, i) => columns.forEach((column, j) => {
    const value = w[i * columns.length + j];
    svg.append(tip(shape("rect", { x: left + cell * j, y: top + cell * i, width: cell, height: cell,
      style: `fill:rgba(var(--ink),${value.toFixed(3)});stroke:var(--line);stroke-width:.5` }),
      `${row} looks at ${column}: ${value.toFixed(2)}`));
  }));
  return svg;
}

function attention(frame) {
  if (!data.attention || !frame.weights) return [];
  const { title, heads, row_axis, column_axis } = data.attention;
  const whole = element("div", { class: "panel wide" }, heatMap(frame, -1, true));
  const each = Array.from({ length: heads }, (_, h) =>
    element("div", null, element("h3", null, `head ${h + 1}`), heatMap(frame, h, false)));
  return [element("h3", null, `${title[0].toUpperCase()}${title.slice(1)}, mean of its heads`),
    element("p", { class: "dim" }, `Rows: ${row_axis}. Columns: ${column_axis}. One held-out example, with its reference as output.`),
    whole, heads > 1 ? element("div", { class: "maps" }, each) : null];
}

function overTheRun() {
  if (!data.frames.length) return;
  const n = data.frames.length;
  let at = n - 1, timer = 0;
  const shown = element("div"), label = element("span", { class: "number" });
  const show = i => {
    at = i;
    slider.value = String(i);
    label.textContent = `step ${data.frames[i].step}`;
    shown.replaceChildren(samples(data.frames[i]), ...attention(data.frames[i]).filter(Boolean));
  };
  const slider = element("input", { type: "range", class: "slider", min: 0, max: n - 1, step: 1, "aria-label": "validation",
    oninput: event => show(Number(event.target.value)) });
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "play";
  };
  const play = element("button", { onclick: () => {
    if (timer) return stop();
    if (at === n - 1) show(0);
    play.textContent = "stop";
    timer = setInterval(() => at < n - 1 ? show(at + 1) : stop(), 600);
  } }, "play");
  main.append(element("h2", null, data.sources[0] === null ? "What it writes, over the run" : "Outputs for held-out data, over the run"),
    element("div", { class: "row" }, play, slider, label), shown);
  show(n - 1);
}

// ---- time and memory -------------------------------------------------------------------------

function timeByOp() {
  const total = data.ops.reduce((sum, row) => sum + row.seconds, 0);
  if (!total) return;
  const row = r => element("tr", null, element("td", null, r.op), element("td", { class: "number" }, r.calls.toLocaleString("en")),
    element("td", { class: "number" }, seconds(r.seconds)), element("td", { class: "number" }, `${(100 * r.seconds / total).toFixed(1)} %`),
    element("td", { class: "number" }, (r.flops / Math.max(r.seconds, 1e-9) / 1e9).toFixed(2)),
    element("td", null, element("div", { class: "share", style: `width:${100 * r.seconds / data.ops[0].seconds}%` })));
  const head = element("tr", null, ["op", "calls", "time", "share", "GFLOP/s", ""].map((t, i) => element("th", { class: i && i < 5 ? "number" : null }, t)));
  const most = data.ops.slice(0, 12), rest = data.ops.slice(12);
  main.append(element("h2", null, "Time by op"), element("p", { class: "dim" }, "Of the training steps since the program was started."),
    element("div", { class: "wide" }, element("table", { class: "ops" }, head, most.map(row))),
    rest.length ? element("details", null, element("summary", null, `${rest.length} more, ${(100 * rest.reduce((s, r) => s + r.seconds, 0) / total).toFixed(1)} % of the time`),
      element("div", { class: "wide" }, element("table", { class: "ops" }, rest.map(row)))) : null);
}

// The bytes in use at each operation. A result may take the place of an operand that it is computed from:
// bytes count once.
function bytesInUse() {
  const { steps, blocks } = data.memory;
  const sorted = [...blocks].sort((a, b) => a[0] - b[0]);
  const end = new Float64Array(steps), used = new Float64Array(steps);
  for (const [offset, size, first, last] of sorted)
    for (let i = first; i <= last; i++) {
      used[i] += Math.max(0, offset + size - Math.max(offset, end[i]));
      end[i] = Math.max(end[i], offset + size);
    }
  return used;
}

function drawMemory(canvas) {
  const { steps, blocks, bytes: all } = data.memory;
  const width = canvas.clientWidth, height = 300, sharp = window.devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement);
  const fills = ["--accent", "--warm", "--good"].map(name => style.getPropertyValue(name));
  canvas.width = width * sharp;
  canvas.height = height * sharp;
  canvas.style.height = `${height}px`;
  const draw = canvas.getContext("2d");
  draw.scale(sharp, sharp);
  for (const [offset, size, first, last, , part] of blocks) {
    const x = width * first / steps, w = Math.max(width * (last + 1 - first) / steps, 0.7);
    const h = Math.max(height * size / all, 0.7), y = height - height * offset / all - h;
    draw.globalAlpha = 0.75;
    draw.fillStyle = fills[part];
    draw.fillRect(x, y, w, h);
    if (w > 3 && h > 3) {
      draw.globalAlpha = 1;
      draw.strokeStyle = style.getPropertyValue("--back");
      draw.lineWidth = 0.5;
      draw.strokeRect(x, y, w, h);
    }
  }
}

function memory() {
  if (!data.memory || !data.memory.blocks.length) return;
  const { steps, blocks, bytes: all } = data.memory;
  const canvas = element("canvas", { role: "img", "aria-label": "memory of a training step" });
  const used = bytesInUse();
  main.append(element("h2", null, "Memory over a training step"),
    element("p", { class: "dim" }, `The arena of ${bytes(all)} from left to right as its ${steps} operations run. A block is a result, from the operation that `,
      `writes it to the last that reads it; later results take its place. At most ${bytes(Math.max(...used))} are in use at once.`),
    element("div", { class: "legend" }, ["forward", "backward", "update"].map((t, i) => blocks.some(b => b[5] === i)
      ? element("span", null, element("i", { style: `background:${colours[i]}` }), t) : null)),
    element("div", null, canvas));
  tip(canvas, event => {
    const frame = canvas.getBoundingClientRect();
    const step = Math.floor((event.clientX - frame.left) / frame.width * steps);
    const at = (1 - (event.clientY - frame.top) / frame.height) * all;
    const hit = blocks.filter(([offset, size, first, last]) => first <= step && step <= last && offset <= at && at < offset + size).pop();
    return hit ? `${hit[4]}\n${hit[6]}\n${bytes(hit[1])}, operations ${hit[2]} to ${hit[3]}` : `operation ${step}: ${bytes(used[step] || 0)} in use`;
  });
  drawAtWidth(canvas, () => drawMemory(canvas));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawMemory(canvas));
}

header();
curves();
overTheRun();
timeByOp();
memory();

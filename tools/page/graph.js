// The page of `graph --html`. `data` has nodes, ops, steps and the size of the arena: see tools/draw/graph_page.c.
const colours = {
  attention: "#4aa8d8", matmul: "#5b8fcc", index: "#9aa825", norm: "#2f9e7e", reduce: "#2f9e7e", loss: "#d9694a",
  update: "#dd7f92", elementwise: "#c9a92c", random: "#c9a92c", shape: "#9a9a9a", constant: "#9a9a9a",
};
const nodes = new Map(data.nodes.map(node => [node.id, node]));
const total = data.steps.reduce((sum, step) => sum + (step.seconds || 0), 0);
const rows = new Map();    // by id: the rows of a node, in all columns, and its rectangle
const fillers = new Map(); // by row: the function that fills it, until it has
data.steps.forEach((step, place) => {
  step.place = place;
  const node = nodes.get(step.id);
  if (node && node.step === undefined) node.step = place;
});

// ---- numbers and names ----

function time(seconds) {
  if (!seconds) return "0 s";
  const [unit, name] = seconds < 1e-6 ? [1e-9, "ns"] : seconds < 1e-3 ? [1e-6, "us"] : seconds < 1 ? [1e-3, "ms"] : [1, "s"];
  return `${Number((seconds / unit).toPrecision(3))} ${name}`;
}

function size(bytes) {
  const [unit, name] = bytes < 1e4 ? [1, "B"] : bytes < 1e7 ? [1e3, "kB"] : [1e6, "MB"];
  return `${Number((bytes / unit).toPrecision(4))} ${name}`;
}

function colour(op) {
  return op && data.ops[op] && colours[data.ops[op].family] || "#888888";
}

// The names of the modules that a node is in, from the outermost on: its path, without the own name of a leaf.
function pathOf(node) {
  const parts = node.path ? node.path.split(".") : [];
  return node.op ? parts : parts.slice(0, -1);
}

function nameOf(node) {
  if (node.value !== undefined) return node.value;
  if (node.op && !node.label) return "";
  const parts = (node.label || node.path).split(".");
  return parts.slice(/^[0-9]+$/.test(parts[parts.length - 1]) ? -2 : -1).join(".");
}

function titleOf(id) {
  const node = nodes.get(id);
  if (!node) return `#${id}`;
  return `#${id} ${node.op || ""}${node.op && nameOf(node) ? " " : ""}${nameOf(node)}`;
}

// ---- the memory of the plan ----

// The earlier steps whose bytes step k takes over, the most recent first.
function overlaid(k) {
  const step = data.steps[k];
  if (!step.size) return [];
  let free = [[step.offset, step.offset + step.size]];
  const found = [];
  for (let j = k - 1; j >= 0 && free.length; j--) {
    const other = data.steps[j];
    if (!other.size) continue;
    const from = other.offset, to = from + other.size;
    if (!free.some(([a, b]) => a < to && from < b)) continue;
    found.push(j);
    free = free.flatMap(([a, b]) => [[a, Math.min(b, from)], [Math.max(a, to), b]]).filter(([a, b]) => a < b);
  }
  return found;
}

function stepTitle(k) {
  const step = data.steps[k];
  return `step ${k + 1}: ${step.id === undefined ? "copy" : titleOf(step.id)}`;
}

// ---- a node's facts ----

function link(id) {
  return element("button", { type: "button", onclick: () => pick(id) }, titleOf(id));
}

function shapes(node) {
  const of = other => other ? `${other.shape} ${other.type}` : "none";
  const operands = (node.in || []).filter(id => id !== null).map(id => of(nodes.get(id)));
  return operands.length ? `${operands.join(", ")} \u2192 ${of(node)}` : of(node);
}

function planFacts(node) {
  if (node.computedIn !== undefined) return [["in the plan", ["computed in ", link(node.computedIn)]]];
  if (node.step === undefined) return node.op ? [["in the plan", [node.absent ? "not needed" : "a view: nothing is computed"]]] : [];
  const step = data.steps[node.step];
  const rate = step.seconds > 0 ? `, ${short(step.flops / step.seconds / 1e9)} GFLOP/s` : "";
  const share = total > 0 ? ` (${(100 * step.seconds / total).toFixed(1)} % of the plan)` : "";
  const facts = [
    ["in the plan", [`step ${node.step + 1} of ${data.steps.length}`, node.runsAs ? `, runs as ${node.runsAs}` : ""]],
    ["time", [`${time(step.seconds)}${share}`]],
    ["work", [`${size(step.bytes)} read and written, ${short(step.flops)} operations${rate}, ${step.tasks} task${step.tasks === 1 ? "" : "s"}`]],
  ];
  if (step.size) {
    const last = step.last >= data.steps.length ? "the end" : stepTitle(step.last);
    facts.push(["memory", [`${size(step.size)} at ${step.offset}, until ${last}`]]);
    const over = overlaid(node.step);
    if (over.length)
      facts.push(["overlays", over.slice(0, 6).map(k => {
        const id = data.steps[k].id;
        const how = data.steps[k].last === node.step ? ", in place" : "";
        return id === undefined ? `a copy of step ${k + 1} ` : [link(id), how, " "];
      }).flat().concat(over.length > 6 ? [`and ${over.length - 6} more`] : [])]);
  }
  return facts;
}

function facts(node) {
  const op = node.op ? data.ops[node.op] : null;
  const list = [];
  if (op) list.push(["formula", [op.formula]]);
  if (node.attributes) list.push(["with", [node.attributes]]);
  list.push(["shape rule", [shapes(node)]]);
  const operands = (node.in || []).flatMap((id, i) => id === null ? [] : [` ${op.operands[i] || i} `, link(id)]);
  if (operands.length) list.push(["operands", operands]);
  if (op) list.push(["gradient rule", [op.gradient]]);
  if (node.forward !== undefined) list.push(["gradient of", [link(node.forward)]]);
  if (node.function) list.push(["recorded by", [node.function]]);
  list.push(["module", [node.path || "the graph itself"]]);
  return element("dl", { class: "facts" },
    list.concat(planFacts(node)).flatMap(([name, value]) => [element("dt", null, name), element("dd", null, ...value)]));
}

// ---- rows ----

function remember(id, row) {
  if (!rows.has(id)) rows.set(id, []);
  rows.get(id).push(row);
}

function onFirstOpen(row, fill) {
  fillers.set(row, fill);
  row.addEventListener("toggle", () => { if (row.open) fillIn(row); });
  return row;
}

function fillIn(row) {
  const fill = fillers.get(row);
  fillers.delete(row);
  if (fill) row.append(fill());
}

function nodeRow(node, note, gone) {
  const row = element("details", { class: gone ? "node gone" : "node" },
    element("summary", { style: `border-left-color: ${colour(node.op)}` },
      element("span", { class: "dim" }, `#${node.id} `), element("span", { class: "op" }, node.op || node.kind), ` ${nameOf(node)} `,
      element("span", { class: "number dim" }, node.shape), note ? element("span", { class: "note" }, ` ${note}`) : null));
  remember(node.id, row);
  return onFirstOpen(row, () => facts(node));
}

function rewritten(node) {
  if (node.computedIn !== undefined) return nodeRow(node, `computed in ${titleOf(node.computedIn)}`, true);
  if (node.op && node.absent) return nodeRow(node, "not needed", true);
  return nodeRow(node, node.runsAs ? `runs as ${node.runsAs}` : "", false);
}

// ---- modules ----

function tree() {
  const root = { name: "", modules: new Map(), nodes: [], n: 0, seconds: 0 };
  for (const node of data.nodes) {
    let at = root;
    const seconds = node.step === undefined ? 0 : data.steps[node.step].seconds;
    for (const part of pathOf(node)) {
      if (!at.modules.has(part)) at.modules.set(part, { name: part, modules: new Map(), nodes: [], n: 0, seconds: 0 });
      at = at.modules.get(part);
      at.n++;
      at.seconds += seconds;
    }
    at.nodes.push(node);
  }
  return root;
}

// Rows are made when their module opens: a graph may have thousands.
function moduleRow(module, makeRow, modulesOf) {
  const row = element("details", { class: "module" },
    element("summary", null, module.name, element("span", { class: "dim" }, ` ${module.n} nodes${module.seconds ? ", " + time(module.seconds) : ""}`)));
  return onFirstOpen(row, () => element("div", null, inside(module, makeRow, modulesOf)));
}

function inside(module, makeRow, modulesOf) {
  const children = [];
  for (const child of module.modules.values()) {
    const row = moduleRow(child, makeRow, modulesOf);
    modulesOf.set(child, row);
    children.push(row);
  }
  return children.concat(module.nodes.map(makeRow));
}

function treeColumn(title, about, makeRow) {
  const modulesOf = new Map(), made = new Map();
  const keepRow = node => {
    made.set(node.id, makeRow(node));
    return made.get(node.id);
  };
  const list = element("div", { class: "list" }, inside(root, keepRow, modulesOf));
  const reveal = node => {
    let at = root;
    for (const part of pathOf(node)) {
      at = at.modules.get(part);
      const row = modulesOf.get(at);
      fillIn(row);
      row.open = true;
    }
  };
  return { reveal, rows: made, section: element("section", { class: "column" }, element("h2", null, title), element("p", { class: "dim" }, about), list) };
}

function planColumn() {
  const most = Math.max(...data.steps.map(step => step.seconds || 0), 1e-12);
  const list = element("div", { class: "list" }, data.steps.map((step, k) => {
    const node = nodes.get(step.id);
    const row = element("details", { class: "node" },
      element("summary", { style: `border-left-color: ${colour(step.op)}` },
        element("span", { class: "dim" }, `${k + 1} `), element("span", { class: "op" }, step.op),
        ` ${node ? titleOf(step.id) : "copy of the planner"} `,
        element("span", { class: "number dim" }, `${time(step.seconds)} ${step.size ? size(step.size) : ""} `),
        element("span", { class: "bar", style: `width: ${Math.max(1, 70 * step.seconds / most)}px` })));
    if (node) remember(node.id, row);
    return node ? onFirstOpen(row, () => facts(node)) : row;
  }));
  return element("section", { class: "column" }, element("h2", null, "As planned"),
    element("p", { class: "dim" }, "The steps in their order, with time and the memory of each result."), list);
}

function memoryMap() {
  const width = 1200, height = 420, n = Math.max(data.steps.length, 1), bytes = Math.max(data.arena, 1);
  const map = shape("svg", { viewBox: `0 0 ${width} ${height + 24}`, class: "memory", role: "img", "aria-label": "memory of the plan over its steps" });
  data.steps.forEach((step, k) => {
    if (!step.size) return;
    const last = Math.min(step.last, n - 1);
    const box = shape("rect", {
      x: k / n * width, width: Math.max((last - k + 1) / n * width, 1), y: height - (step.offset + step.size) / bytes * height,
      height: Math.max(step.size / bytes * height, 1), fill: colour(step.op), onclick: () => { if (step.id !== undefined) pick(step.id); },
    });
    if (step.id !== undefined) remember(step.id, box);
    tip(box, () => `${stepTitle(k)}\n${size(step.size)} at ${step.offset}\n` +
      `until ${step.last >= n ? "the end" : stepTitle(step.last)}` +
      overlaid(k).slice(0, 4).map(j => `\nover ${stepTitle(j)}${data.steps[j].last === k ? ", in place" : ""}`).join(""));
    map.append(box);
  });
  map.append(shape("text", { x: 0, y: height + 16 }, "step 1"), shape("text", { x: width, y: height + 16, "text-anchor": "end" }, `step ${n}`));
  return element("section", null, element("h2", null, "Memory of the plan"),
    element("p", null, `From left to right the steps, from bottom to top the ${size(data.arena)} of the arena. A box is a result, from the step that makes it to the last that reads it; what lies in one height one after the other shares bytes.`),
    element("div", { class: "wide" }, map));
}

// ---- choosing a node ----

function pick(id) {
  const node = nodes.get(id);
  if (!node) return;
  columns.forEach(column => column.reveal(node));
  document.querySelectorAll(".picked").forEach(row => row.classList.remove("picked"));
  for (const row of rows.get(id) || []) {
    row.classList.add("picked");
    const list = row.closest(".list");
    if (list) list.scrollTop += row.getBoundingClientRect().top - list.getBoundingClientRect().top - 40;
  }
  const first = columns[0].rows.get(id);
  if (first) first.open = true;
  picked = id;
}

function search(word) {
  const matches = node => `#${node.id} ${node.op || node.kind} ${node.path} ${node.label || ""}`.includes(word);
  const found = data.nodes.filter(matches);
  said.textContent = word ? `${found.length} of ${data.nodes.length} nodes` : "";
  const next = found.find(node => node.id > picked) || found[0];
  if (word && next) pick(next.id);
}

let picked = -1;
const root = tree();
const columns = [
  treeColumn("As recorded", "Every call of an op is a node, in the module that called it.", node => nodeRow(node, "", false)),
  treeColumn("As rewritten", "A plan fuses nodes: those struck out are computed inside another.", rewritten),
];
const said = element("span", { class: "dim" });
const box = element("input", { type: "search", placeholder: "op, module or #id", "aria-label": "search for a node",
  onkeydown: event => { if (event.key === "Enter") search(event.target.value.trim()); } });
const used = [...new Set(data.nodes.map(node => node.op && data.ops[node.op] && data.ops[node.op].family).filter(Boolean))];
const fused = data.nodes.filter(node => node.computedIn !== undefined).length;
main.append(
  element("p", null, `${data.nodes.length} nodes recorded, ${fused ? `${fused} fused into others, ` : ""}` +
    `${data.steps.length} steps in ${time(total)}, ${size(data.arena)} of memory.`),
  element("div", { class: "row" }, box,
    element("button", { type: "button", onclick: () => search(box.value.trim()) }, "next"), said),
  element("p", { class: "families row" }, used.map(family => element("span", null,
    element("span", { class: "swatch", style: `background: ${colours[family] || "#888888"}` }), family))),
  element("div", { class: "columns" }, columns[0].section, columns[1].section, planColumn()),
  memoryMap());

// tests/targets/page.js - answers the lines of stdin with a page of graph --emit-html, by its own scripts.
//
// usage: node page.js page.html < lines > got
//
// The page's scripts run here without a browser: whatever they draw goes into an object that takes everything. An answer is
// its text with line breaks escaped, as generate escapes them, or ! and the sentence that refuses the line.
"use strict";
const fs = require("fs");

const page = fs.readFileSync(process.argv[2], "utf8");
const json = page.match(/<script type="application\/json" id="data">([^]*?)<\/script>/)[1];
const script = page.match(/<script>([^]*?)<\/script>/)[1];
if (/(src|href)="(?!data:,)|url\(|@import/.test(page)) throw new Error("the page asks for something elsewhere");

const anything = new Proxy(function () {}, { get: (_, key) => key === Symbol.toPrimitive ? () => "" : anything, apply: () => anything, set: () => true });
const document = { getElementById: () => ({ textContent: json }), querySelector: () => anything, body: anything,
  createElement: () => anything, createElementNS: () => anything };

// Probabilities and attention weights of an answer are numbers from 0 to 1, and the rows of weights add up to 1.
function checkReasons(reasons, maps) {
  const share = x => x >= 0 && x < 1 + 1e-5;
  if (!reasons) throw new Error("there is no attention");
  if (!reasons.steps.every(step => share(step.p))) throw new Error("a probability is none");
  reasons.maps.forEach((layers, map) => layers.forEach(weights => {
    const [, , heads, queries, keys] = maps[map], width = reasons.widths[keys];
    const rows = (queries ? reasons.tokens : reasons.source).length;
    for (let head = 0; head < heads; head++)
      for (let i = 0; i < rows; i++) {
        const from = (head * reasons.widths[queries] + i) * width, row = weights.subarray(from, from + width);
        const sum = row.reduce((a, b) => a + b, 0);
        if (!row.every(share) || Math.abs(sum - 1) > 1e-4) throw new Error(`row ${i} of a head adds up to ${sum}`);
      }
  }));
}

async function main() {
  const tools = new Function("document", "location", `${script}\nreturn { openModel, answer, explain };`)(document, { hash: "" });
  const model = await tools.openModel();
  const input = fs.readFileSync(0, "utf8");
  for (const line of input.replace(/\n$/, "").split("\n")) {
    const result = tools.answer(model, line);
    const reasons = result.refused === undefined && line.trim() ? tools.explain(model) : undefined;
    if (reasons !== undefined) checkReasons(reasons, JSON.parse(json).maps);
    const text = result.refused === undefined ? result.text : `!${result.refused}`;
    fs.writeSync(1, text.replaceAll("\n", "\\n").replaceAll("\r", "\\r") + "\n");
  }
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});

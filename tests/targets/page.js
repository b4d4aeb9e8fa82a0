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

async function main() {
  const tools = new Function("document", "location", `${script}\nreturn { openModel, answer };`)(document, { hash: "" });
  const model = await tools.openModel();
  const input = fs.readFileSync(0, "utf8");
  for (const line of input.replace(/\n$/, "").split("\n")) {
    const result = tools.answer(model, line);
    const text = result.refused === undefined ? result.text : `!${result.refused}`;
    fs.writeSync(1, text.replaceAll("\n", "\\n").replaceAll("\r", "\\r") + "\n");
  }
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});

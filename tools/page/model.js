// The page of graph --emit-html: lines through a model, which is WebAssembly in the page's data. Its data:
// tools/emit/emit_page.c; what the module exports: tools/emit/plain_page.c.
const refusals = {
  "-1": data.ids ? "These are no ids of the vocabulary." : "This is no line of text.",
  "-2": "This line is too long.",
  "-3": "The output is too long.",
  "-4": "The model finds no output.",
};

// Starts the module. Its exports are what answer() calls.
async function openModel() {
  const bytes = Uint8Array.from(atob(data.wasm), character => character.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes, {});
  instance.exports.start();
  return instance.exports;
}

// The output for a line: { text, score }, or { refused }, a sentence.
function answer(model, line) {
  const bytes = new TextEncoder().encode(line);
  if (bytes.length > model.line_size()) return { refused: refusals[-2] };
  new Uint8Array(model.memory.buffer, model.line(), bytes.length).set(bytes);
  const n = model.translate(bytes.length);
  if (n < 0) return { refused: refusals[n] };
  const text = new Uint8Array(model.memory.buffer, model.text(), n);
  return { text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(text), score: model.score() };
}

// ---- what is drawn

const input = element("textarea", { "aria-label": data.ids ? "Token ids" : "Text", spellcheck: "false", autofocus: true,
  onkeydown: event => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    answerAll();
  } });
const button = element("button", { disabled: true, onclick: () => answerAll() }, "Loading the model ...");
const answers = element("div", { "aria-live": "polite" });
let model = null;

function drawAnswer(line, result, milliseconds) {
  return element("div", { class: result.refused ? "panel answer failed" : "panel answer" },
    element("div", { class: "dim" }, line || "(an empty line)"),
    element("div", { class: "output" }, result.refused ?? (result.text || "(an empty output)")),
    result.refused ? null
      : element("div", { class: "dim" }, `score ${short(result.score)}, ${milliseconds.toFixed(0)} ms`));
}

// Each line has its answer. Between two the browser draws.
async function answerAll() {
  if (!model || button.disabled) return;
  button.disabled = true;
  answers.replaceChildren();
  for (const line of input.value.replace(/\n$/, "").split("\n")) {
    await new Promise(resolve => setTimeout(resolve, 0));
    const begin = performance.now(), result = answer(model, line);
    answers.append(drawAnswer(line, result, performance.now() - begin));
  }
  button.disabled = false;
}

// What stands behind # in the page's address is answered at once.
async function begin() {
  try {
    model = await openModel();
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

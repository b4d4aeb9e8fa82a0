// The functions of every page. A page's own script follows this one and draws into `main`.
//
//   data                          the page's data
//   main                          the element to draw into; the title stands in it
//   element(name, attributes, ...children)     an HTML element; a child is an element, a text, null or an array
//   shape(name, attributes, ...children)       the same for SVG
//   tip(element, text)            text, or a function that gives it, shown while the pointer is there
//   short(number)                 3 or 4 digits; all of an integer below a million; "not finite" for null
//
// An attribute that begins with "on" is a function: onclick, oninput.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || (value === false && !key.startsWith("aria-"))) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true && !key.startsWith("aria-") ? "" : value);
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined));
  return node;
}

function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function shape(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function short(number) {
  if (number === null || number === undefined) return "not finite";
  if (number === 0 || Number.isInteger(number) && Math.abs(number) < 1e6) return String(number);
  const size = Math.abs(number);
  return size >= 1e-3 && size < 1e5 ? number.toPrecision(4) : number.toExponential(2);
}

const tipBox = element("div", { id: "tip", role: "tooltip" });
document.body.append(tipBox);

function tip(node, text) {
  node.addEventListener("pointermove", event => {
    tipBox.textContent = typeof text === "function" ? text(event) : text;
    tipBox.style.display = tipBox.textContent ? "block" : "none";
    const box = tipBox.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 6);
    const below = event.clientY + 18;
    const top = below + box.height < innerHeight ? below : event.clientY - box.height - 10;
    tipBox.style.left = Math.max(left, 4) + "px";
    tipBox.style.top = top + "px";
  });
  node.addEventListener("pointerleave", () => { tipBox.style.display = "none"; });
  return node;
}

main.append(element("h1", null, data.title));

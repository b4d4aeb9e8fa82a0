// tests/targets/browser.js - what a page shows in Chromium or Chrome, once it shows it.
//
// usage: node browser.js CHROMIUM URL SELECTOR > text
//
// Opens the page without a window, waits until an element of this selector is there, and prints its text. It fails if a
// script of the page throws, or if the page asks for anything that is not in the page: other than file:, data: and blob:.
// A dump of the page by the browser itself comes before workers have answered. The browser is driven by its debugging
// protocol, over pipes: messages are JSON and end with a zero byte.
"use strict";
const { spawn } = require("child_process");
const fs = require("fs");
const [, , chromium, url, selector] = process.argv;

const profile = `${process.cwd()}/profile`;
const browser = spawn(chromium, ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`,
  "--remote-debugging-pipe", "about:blank"], { detached: true, env: { ...process.env, HOME: process.cwd() },
  stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const [toBrowser, fromBrowser] = [browser.stdio[3], browser.stdio[4]];

// Ends all processes of the browser before its folder goes: one that lives would write into it again.
function end(error) {
  if (error) console.error(error);
  if (!browser.pid) process.exit(1);
  browser.removeAllListeners("exit");
  browser.on("exit", () => {
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    process.exit(error ? 1 : 0);
  });
  process.kill(-browser.pid, "SIGKILL");
}

const waiting = new Map();
let last = 0, session, input = "";

function call(method, params = {}) {
  toBrowser.write(JSON.stringify({ id: ++last, method, params, sessionId: session }) + "\0");
  return new Promise(resolve => waiting.set(last, resolve));
}

function take(message) {
  if (message.id) {
    if (message.error) end(message.error.message);
    waiting.get(message.id)(message.result);
  } else if (message.method === "Runtime.exceptionThrown") {
    end(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
  } else if (message.method === "Network.requestWillBeSent") {
    const asked = message.params.request.url;
    if (!/^(file|data|blob):/.test(asked)) end(`the page asks for ${asked}`);
  }
}

for (const pipe of [toBrowser, fromBrowser]) pipe.on("error", () => {}); // the browser's end is told by "exit"
fromBrowser.on("data", data => {
  const messages = (input + data).split("\0");
  input = messages.pop();
  for (const text of messages) take(JSON.parse(text));
});
browser.on("error", end);
browser.on("exit", () => end("the browser ended"));
setTimeout(() => end(`nothing of ${selector} was shown within 120 s`), 120000);

async function main() {
  const { targetInfos } = await call("Target.getTargets");
  const { targetId } = targetInfos.find(target => target.type === "page");
  session = (await call("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  for (const domain of ["Page", "Runtime", "Network"]) await call(`${domain}.enable`);
  await call("Page.navigate", { url });
  const text = `document.querySelector(${JSON.stringify(selector)})?.textContent`;
  for (;;) {
    const { result } = await call("Runtime.evaluate", { expression: text, returnByValue: true });
    if (result.type === "string") {
      process.stdout.write(result.value + "\n");
      return end();
    }
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}

main().catch(end);

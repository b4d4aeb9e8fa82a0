// tests/targets/wasm.js - answers the lines of stdin with a module of wasm.c.
//
// usage: node wasm.js FILE.wasm < lines > got
"use strict";
const fs = require("fs");

function result(program, n) {
  if (n < 0) throw new Error(`error ${n}`);
  return Buffer.from(new Uint8Array(program.memory.buffer, program.result(), n));
}

function answer(program, line) {
  if (line.length > program.most()) throw new Error("a line is too long");
  new Uint8Array(program.memory.buffer, program.line(), line.length).set(line);
  return result(program, program.answer_it(line.length));
}

const input = fs.readFileSync(0);
const module_ = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
if (WebAssembly.Module.imports(module_).length) throw new Error("it imports something");
const program = new WebAssembly.Instance(module_, {}).exports;
const answers = [];
program.start();
for (let at = 0; at < input.length;) {
  const end = input.indexOf(10, at);
  answers.push(answer(program, input.subarray(at, end < 0 ? input.length : end)));
  at = end < 0 ? input.length : end + 1;
}
answers.push(result(program, program.answer_others()));
fs.writeFileSync(1, Buffer.concat(answers));

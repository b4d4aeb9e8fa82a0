/* The search of the manual: over the index in this page, without a server. entries: [title, path, kind, words]. */
'use strict';
const field = document.querySelector('input[name=q]');
const hits = document.getElementById('hits');
const rest = document.getElementById('contents');
const most = 60;
let chosen = 0;

/* Higher is better, 0: no. All words must be found; a title that is the word comes first. */
function score(entry, words) {
  const title = entry[0].toLowerCase().replace(/^wf_/, '');
  const all = (entry[0] + ' ' + entry[2] + ' ' + entry[3]).toLowerCase();
  let sum = 0;
  for (const word of words) {
    const w = word.replace(/^wf_/, '');
    if (!all.includes(w)) return 0;
    sum += title === w ? 100 : title.startsWith(w) ? 30 : title.includes(w) ? 10 : 1;
  }
  return sum + (entry[2] === 'op' ? 2 : entry[2] === 'function' ? 1 : 0) - title.length / 1000;
}

function link(entry, selected) {
  const a = document.createElement('a');
  a.href = entry[1];
  a.setAttribute('aria-selected', selected);
  const name = document.createElement('strong');
  name.textContent = entry[0];
  const words = document.createElement('span');
  words.className = 'dim';
  words.textContent = entry[3];
  a.append(name, ' ' + entry[2], words);
  return a;
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  rest.hidden = words.length > 0;
  hits.replaceChildren();
  if (!words.length) return;
  const found = entries.map(e => [score(e, words), e]).filter(f => f[0] > 0).sort((a, b) => b[0] - a[0]);
  chosen = Math.max(0, Math.min(chosen, found.length - 1, most - 1));
  const said = document.createElement('p');
  said.className = 'dim';
  said.textContent = found.length === 1 ? '1 page' : found.length + ' pages' + (found.length > most ? `, the first ${most}` : '');
  hits.append(said, ...found.slice(0, most).map((f, i) => link(f[1], i === chosen)));
}

field.addEventListener('input', () => { chosen = 0; show(); });
field.addEventListener('keydown', event => {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  event.preventDefault();
  chosen += event.key === 'ArrowDown' ? 1 : -1;
  show();
});
field.form.addEventListener('submit', event => {
  event.preventDefault();
  const a = hits.querySelector('a[aria-selected="true"]');
  if (a) location.href = a.href;
});
document.addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== field) { event.preventDefault(); field.focus(); }
});
field.value = new URLSearchParams(location.search).get('q') || '';
show();

// The flame graph of `tensorpool profile`: the tree of calls, each as wide as its bytes.

import { byId, element, setText } from '../elements.js';
import { Theme } from '../theme.js';
import { bytes, percent } from '../units.js';

const data = JSON.parse(byId('data').textContent);
const values = ['live', 'peak', 'allocated'];

const share = (part, all) => percent(all > 0 ? part / all : 0);

function number(value) {
  return Number.isFinite(value) && value > 0 ? value : 0;
}

// The tree of calls. A node has its bytes and blocks in this profile and in the one before, by
// value. `self` are those of stacks that end in the node.
function newNode(frame, parent) {
  const zeros = () => [0, 0, 0];
  return {frame, parent, depth: parent ? parent.depth + 1 : 0, byName: new Map(), children: [],
          now: zeros(), before: zeros(), blocks: zeros(), width: zeros(),
          self: {now: zeros(), before: zeros()}};
}

function child(node, frame) {
  if (!node.byName.has(frame.name)) {
    const made = newNode(frame, node);
    node.byName.set(frame.name, made);
    node.children.push(made);
  }
  return node.byName.get(frame.name);
}

function addSite(root, frames, site, which) {
  const add = node => values.forEach((value, i) => {
    node[which][i] += number(site[`${value}_bytes`]);
    if (which === 'now') node.blocks[i] += number(site[`${value}_blocks`]);
  });
  let node = root;
  add(node);
  const stack = (Array.isArray(site.stack) ? site.stack : []).filter(index => frames[index]);
  const calls = stack.length ? stack.map(index => frames[index]) : [{name: '[other stacks]'}];
  for (const frame of calls) add(node = child(node, frame));
  values.forEach((value, i) => { node.self[which][i] += number(site[`${value}_bytes`]); });
}

// A node is as wide as its stacks, each of which is as wide as in the larger profile.
function measure(node) {
  node.children.forEach(measure);
  values.forEach((_, i) => {
    node.width[i] = node.children.reduce((sum, one) => sum + one.width[i],
                                         Math.max(node.self.now[i], node.self.before[i]));
  });
}

function makeTree() {
  const root = newNode({name: 'all'}, null);
  for (const [which, profile] of [['now', data.now], ['before', data.before]]) {
    for (const site of profile ? profile.sites : []) addSite(root, profile.frames, site, which);
  }
  measure(root);
  return root;
}

const root = makeTree();
const rowHeight = 20;
const minWidth = 1; // pixels
const graph = byId('graph');
const search = byId('search');
const state = {value: values.indexOf(data.value), zoomed: root, drawn: new Map()};

// Calls of the same file have the same hue.
function hueOf(frame) {
  let hash = 0;
  for (const character of frame.file || frame.module || frame.name) {
    hash = (hash * 31 + character.codePointAt(0)) % 9973;
  }
  return 20 + hash % 320;
}

function paint(drawn, node) {
  const now = node.now[state.value];
  const before = node.before[state.value];
  if (data.before) {
    drawn.classList.add(now > before ? 'grown' : 'shrunk');
    // The root makes growth by a few percent visible.
    const part = Math.sqrt(Math.abs(now - before) / Math.max(now, before, 1));
    drawn.style.setProperty('--part', part);
    return;
  }
  drawn.classList.toggle('internal', Boolean(node.frame.internal) || !node.parent);
  if (drawn.classList.contains('internal')) drawn.style.setProperty('--part', 0.2);
  else drawn.style.setProperty('--hue', hueOf(node.frame));
}

function describe(node) {
  const i = state.value;
  const now = node.now[i];
  const text = `${bytes(now)} in ${Math.round(node.blocks[i]).toLocaleString('en')} blocks, ` +
      `${share(now, root.now[i])} of all; ${bytes(node.self.now[i])} in this call itself`;
  if (!data.before) return text;
  const growth = now - node.before[i];
  const sign = growth < 0 ? '-' : '+';
  return `${text}; before ${bytes(node.before[i])}, ${sign}${bytes(Math.abs(growth))}`;
}

function placeOf(frame) {
  return frame.file ? `${frame.file}:${frame.line}` : frame.module || '';
}

function showDetails(node) {
  const place = placeOf(node.frame);
  setText(byId('name'), node.frame.name + (place ? ` (${place})` : ''));
  setText(byId('values'), describe(node));
}

function matches(node) {
  const text = search.value.trim().toLowerCase();
  if (!text || !node.parent) return false;
  return `${node.frame.name} ${placeOf(node.frame)}`.toLowerCase().includes(text);
}

// The bytes below the outermost matching calls, so that none counts twice.
function matchedBytes(node) {
  if (matches(node)) return node.now[state.value];
  return node.children.reduce((sum, one) => sum + matchedBytes(one), 0);
}

function drawFrame(node, left, width, pixels) {
  const drawn = element('button', {
    type: 'button', class: 'frame', role: 'treeitem', text: pixels < 24 ? '' : node.frame.name,
    'aria-level': node.depth + 1, 'aria-label': `${node.frame.name}: ${describe(node)}`,
    tabindex: node === state.zoomed ? 0 : -1,
  });
  drawn.classList.toggle('thin', pixels < 24);
  drawn.classList.toggle('above', node.depth < state.zoomed.depth);
  drawn.classList.toggle('match', matches(node));
  drawn.style.left = `${left * 100}%`;
  drawn.style.width = `${width * 100}%`;
  drawn.style.top = `${node.depth * rowHeight}px`;
  paint(drawn, node);
  drawn.addEventListener('click', () => zoom(node));
  drawn.addEventListener('focus', () => showDetails(node));
  // A frame that is drawn under a resting pointer gets events without movement.
  drawn.addEventListener('pointermove', event => {
    if (event.movementX || event.movementY) showDetails(node);
  });
  drawn.addEventListener('keydown', event => move(event, node));
  state.drawn.set(node, drawn);
  graph.append(drawn);
}

// Draws a node and the calls below it. Returns the number of rows.
function draw(node, left, width) {
  const pixels = width * graph.clientWidth;
  if (pixels < minWidth) return node.depth;
  drawFrame(node, left, width, pixels);
  let rows = node.depth + 1;
  const i = state.value;
  for (const one of [...node.children].sort((a, b) => b.width[i] - a.width[i])) {
    const part = node.width[i] > 0 ? width * one.width[i] / node.width[i] : 0;
    rows = Math.max(rows, draw(one, left, part));
    left += part;
  }
  return rows;
}

function show() {
  graph.replaceChildren();
  state.drawn.clear();
  for (let above = state.zoomed.parent; above; above = above.parent) {
    drawFrame(above, 0, 1, graph.clientWidth);
  }
  graph.style.height = `${draw(state.zoomed, 0, 1) * rowHeight}px`;
  const matched = matchedBytes(root);
  byId('found').textContent = search.value.trim() ?
      `${bytes(matched)}, ${share(matched, root.now[state.value])}` : '';
  byId('reset').disabled = state.zoomed === root;
  showDetails(state.zoomed);
}

function zoom(node) {
  state.zoomed = node;
  show();
  state.drawn.get(node).focus({preventScroll: true});
}

function move(event, node) {
  const drawn = nodes => nodes.filter(one => state.drawn.has(one)).sort(
      (a, b) => state.drawn.get(a).offsetLeft - state.drawn.get(b).offsetLeft);
  const siblings = drawn(node.parent ? node.parent.children : []);
  const target = {
    ArrowUp: node.parent,
    ArrowDown: drawn(node.children)[0],
    ArrowLeft: siblings[siblings.indexOf(node) - 1],
    ArrowRight: siblings[siblings.indexOf(node) + 1],
  }[event.key];
  if (!target) return;
  event.preventDefault();
  state.drawn.get(target).focus();
}

function describeProfile() {
  const {process, process_name: name, time_unix_ns: time, interval, peak_unix_ns: peak} = data.now;
  const distance = Math.max(interval, data.now.mean_distance || 0);  // that was really used
  const clock = ns => new Date(ns / 1e6).toLocaleString('sv');  // 2026-11-27 14:37:11
  const title = `process ${process} (${name})`;
  document.title = `${title} - tensorpool profile`;
  byId('title').textContent = title;
  byId('about').textContent = `heap profile of ${clock(time)}` +
      (peak ? `, peak at ${clock(peak)}` : '') +
      (interval ? `, one sample per ${bytes(distance)}` : ', sampling is off') +
      (data.before ? `, compared with ${clock(data.before.time_unix_ns)}` : '');
  byId('legend').hidden = !data.before;
  const empty = byId('empty');
  empty.hidden = root.children.length > 0;
  empty.textContent = 'No allocation has been sampled.';
}

function nextFrame(action) {
  let wanted = 0;
  return () => {
    cancelAnimationFrame(wanted);
    wanted = requestAnimationFrame(action);
  };
}

describeProfile();
for (const input of document.querySelectorAll('input[name=value]')) {
  const i = values.indexOf(input.value);
  input.checked = i === state.value;
  input.parentElement.querySelector('output').textContent = bytes(root.now[i]);
  input.addEventListener('change', () => { state.value = i; show(); });
}
search.addEventListener('input', nextFrame(show));
addEventListener('resize', nextFrame(show));
byId('controls').addEventListener('submit', event => event.preventDefault());
byId('reset').addEventListener('click', () => zoom(root));
addEventListener('keydown', event => {
  if (event.key === 'Escape') zoom(root);
  if (event.key !== '/' || event.target === search) return;
  event.preventDefault();
  search.focus();
});
new Theme(null, show);

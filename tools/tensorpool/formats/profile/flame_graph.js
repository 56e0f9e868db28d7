// Draws the tree of call_tree.js, which precedes this file in the page.
const rowHeight = 20;
const minWidth = 1; // pixels
const graph = document.getElementById('graph');
const search = document.getElementById('search');
const state = {value: values.indexOf(data.value), zoomed: root, drawn: new Map()};

// Calls of the same file have the same hue.
function hueOf(frame) {
  let hash = 0;
  for (const character of frame.file || frame.module || frame.name) {
    hash = (hash * 31 + character.codePointAt(0)) % 9973;
  }
  return 20 + hash % 320;
}

function paint(element, node) {
  const now = node.now[state.value];
  const before = node.before[state.value];
  if (data.before) {
    element.classList.add(now > before ? 'grown' : 'shrunk');
    // The root makes growth by a few percent visible.
    const part = Math.sqrt(Math.abs(now - before) / Math.max(now, before, 1));
    element.style.setProperty('--part', part);
    return;
  }
  element.classList.toggle('internal', Boolean(node.frame.internal) || !node.parent);
  if (element.classList.contains('internal')) element.style.setProperty('--part', 0.2);
  else element.style.setProperty('--hue', hueOf(node.frame));
}

function describe(node) {
  const i = state.value;
  const now = node.now[i];
  const text = `${formatSize(now)} in ${Math.round(node.blocks[i]).toLocaleString('en')} blocks, ` +
      `${formatPart(now, root.now[i])} of all; ${formatSize(node.self.now[i])} in this call itself`;
  if (!data.before) return text;
  const growth = now - node.before[i];
  const sign = growth < 0 ? '-' : '+';
  return `${text}; before ${formatSize(node.before[i])}, ${sign}${formatSize(Math.abs(growth))}`;
}

function placeOf(frame) {
  return frame.file ? `${frame.file}:${frame.line}` : frame.module || '';
}

function showDetails(node) {
  const place = placeOf(node.frame);
  document.getElementById('name').textContent = node.frame.name + (place ? ` (${place})` : '');
  document.getElementById('values').textContent = describe(node);
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
  const element = document.createElement('button');
  element.type = 'button';
  element.className = 'frame';
  element.classList.toggle('thin', pixels < 24);
  element.classList.toggle('above', node.depth < state.zoomed.depth);
  element.classList.toggle('match', matches(node));
  element.style.left = `${left * 100}%`;
  element.style.width = `${width * 100}%`;
  element.style.top = `${node.depth * rowHeight}px`;
  element.textContent = pixels < 24 ? '' : node.frame.name;
  element.setAttribute('role', 'treeitem');
  element.setAttribute('aria-level', node.depth + 1);
  element.setAttribute('aria-label', `${node.frame.name}: ${describe(node)}`);
  element.tabIndex = node === state.zoomed ? 0 : -1;
  paint(element, node);
  element.addEventListener('click', () => zoom(node));
  element.addEventListener('focus', () => showDetails(node));
  // A frame that is drawn under a resting pointer gets events without movement.
  element.addEventListener('pointermove', event => {
    if (event.movementX || event.movementY) showDetails(node);
  });
  element.addEventListener('keydown', event => move(event, node));
  state.drawn.set(node, element);
  graph.append(element);
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
  document.getElementById('found').textContent = search.value.trim() ?
      `${formatSize(matched)}, ${formatPart(matched, root.now[state.value])}` : '';
  document.getElementById('reset').disabled = state.zoomed === root;
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
  document.getElementById('title').textContent = title;
  document.getElementById('about').textContent = `heap profile of ${clock(time)}` +
      (peak ? `, peak at ${clock(peak)}` : '') +
      (interval ? `, one sample per ${formatSize(distance)}` : ', sampling is off') +
      (data.before ? `, compared with ${clock(data.before.time_unix_ns)}` : '');
  document.getElementById('legend').hidden = !data.before;
  const empty = document.getElementById('empty');
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
  input.parentElement.querySelector('output').textContent = formatSize(root.now[i]);
  input.addEventListener('change', () => { state.value = i; show(); });
}
search.addEventListener('input', nextFrame(show));
addEventListener('resize', nextFrame(show));
document.getElementById('controls').addEventListener('submit', event => event.preventDefault());
document.getElementById('reset').addEventListener('click', () => zoom(root));
addEventListener('keydown', event => {
  if (event.key === 'Escape') zoom(root);
  if (event.key !== '/' || event.target === search) return;
  event.preventDefault();
  search.focus();
});
show();

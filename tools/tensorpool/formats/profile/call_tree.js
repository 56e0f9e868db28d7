'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const values = ['live', 'peak', 'allocated'];

function formatSize(bytes) {
  if (bytes === 0) return '0';
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 1023.5 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${units[unit]}`;
}

function formatPart(part, all) {
  return all > 0 ? `${(part / all * 100).toFixed(1)} %` : '0 %';
}

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

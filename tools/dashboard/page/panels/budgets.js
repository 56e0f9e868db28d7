// The tree of budgets: what each has in use, against its limits.

import { byId, element, fill } from '../elements.js';
import { Rows } from '../rows.js';
import { bytes, count, named, percent, plain, unknown } from '../units.js';

const most_steps = 8;  // deeper budgets are not indented further

/**
 * Returns the budgets as a tree is written: each is followed by those below it. A parent is older
 * than its children, so its number is lower, and no budget is below itself.
 */
export function treeOf(budgets) {
  const byNumber = new Map();
  const children = new Map();
  const roots = [];
  for (const one of [...budgets].sort((a, b) => a.id - b.id)) {
    const parent = one.parent < one.id ? byNumber.get(one.parent) : undefined;
    if (!byNumber.has(one.id)) byNumber.set(one.id, one);
    const list = parent ? children.get(parent) ?? [] : roots;
    list.push(one);
    if (parent) children.set(parent, list);
  }
  const tree = [];
  const due = roots.map((one) => [one, 0]).reverse();
  while (due.length > 0) {
    const [one, depth] = due.pop();
    tree.push({ ...one, depth });
    for (const child of [...children.get(one) ?? []].reverse()) due.push([child, depth + 1]);
  }
  return tree;
}

const limit = (value) => (value ? bytes(value) : 'none');
const whole = (of) => of.hard_bytes || of.soft_bytes;
const share = (of) => (whole(of) ? of.in_use_bytes / whole(of) : NaN);

/** The length of the bar is that of the larger limit, or of the peak if there is none. */
function drawUse(cell, of) {
  const bar = cell.firstElementChild ?? cell.appendChild(
    element('div', { class: 'bar-line budget-use' }, ['in-use', 'peak', 'soft'].map((kind) => element('i', { class: kind }))));
  const most = Math.max(of.hard_bytes || of.soft_bytes || of.peak_bytes, of.in_use_bytes, 1);
  fill(bar.children[0], of.in_use_bytes / most);
  bar.children[1].style.left = `${Math.min(1, of.peak_bytes / most) * 100}%`;
  bar.children[1].hidden = !of.peak_bytes;
  bar.children[2].style.left = `${Math.min(1, of.soft_bytes / most) * 100}%`;
  bar.children[2].hidden = !of.soft_bytes;
  bar.classList.toggle('over', whole(of) > 0 && of.in_use_bytes > whole(of));
  cell.title = `${bytes(of.in_use_bytes)} in use, peak ${bytes(of.peak_bytes)}, soft limit ${limit(of.soft_bytes)}, hard limit ${limit(of.hard_bytes)}`;
}

function drawName(cell, of) {
  cell.textContent = named(of.name);
  cell.style.paddingLeft = `${16 * Math.min(of.depth, most_steps)}px`;
  cell.title = plain(of.name);
}

const number = (name, text, kind = 'number', about = '') => ({ name, class: kind, text, about });

export class Budgets {
  #card = byId('budgets'); #rows;

  constructor() {
    this.#rows = new Rows(this.#card, {
      label: 'Budgets', none: '', key: ({ id }) => id,
      columns: [
        { name: 'budget', class: 'name', draw: drawName },
        number('in use', (of) => bytes(of.in_use_bytes)),
        { name: 'of its limits', class: 'graph', draw: drawUse, about: 'In use; the lines are the peak and the soft limit. The end is the hard limit.' },
        number('share', (of) => (whole(of) ? percent(share(of)) : unknown)),
        number('soft', (of) => limit(of.soft_bytes), 'number extra'),
        number('hard', (of) => limit(of.hard_bytes)),
        number('peak', (of) => bytes(of.peak_bytes), 'number extra'),
        number('refused', (of) => count(of.refusals), 'number extra', 'Requests that one of its limits refused.'),
        number('asked', (of) => count(of.reclaims), 'number extra', 'Times that a holder was asked for memory.'),
        number('reclaimed', (of) => bytes(of.reclaimed_bytes), 'number extra', 'What holders gave.'),
      ],
    });
  }

  /** The panel is hidden if there are no budgets. */
  update(budgets) {
    this.#card.hidden = budgets.length === 0;
    this.#rows.update(treeOf(budgets));
  }
}

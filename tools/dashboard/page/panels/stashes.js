// What rests, by name: how much of it is in memory as it is, compressed, and in files.

import { byId, element, fill } from '../elements.js';
import { Rows } from '../rows.js';
import { bytes, count, named, percent, plain, unknown } from '../units.js';

const takes = (of) => of.compressed_bytes + of.spilled_bytes;
const whole = (of) => of.memory_bytes + of.stashed_bytes;
const ratio = (of) => (of.stashed_bytes ? takes(of) / of.stashed_bytes : NaN);
const seconds = (nanoseconds) => `${(nanoseconds / 1e9).toFixed(2)} s`;

/** The whole bar is what all would take in memory as it was. */
function drawPlaces(cell, of) {
  const bar = cell.firstElementChild ?? cell.appendChild(
    element('div', { class: 'bar-line stash-places' }, ['in-use', 'compressed', 'file'].map((kind) => element('i', { class: kind }))));
  const most = Math.max(whole(of), of.memory_bytes + takes(of), 1);
  [of.memory_bytes, of.compressed_bytes, of.spilled_bytes].forEach((value, index) => fill(bar.children[index], value / most));
  cell.title = `${bytes(of.memory_bytes)} in memory; ${bytes(of.stashed_bytes)} rest, as ${bytes(of.compressed_bytes)} compressed and ${bytes(of.spilled_bytes)} in files`;
}

const number = (name, value, text = count, kind = 'number', about = '') =>
  ({ name, class: kind, value, text: (of) => text(value(of)), about });

export class Stashes {
  #card = byId('stashes'); #rows;

  constructor() {
    this.#rows = new Rows(this.#card, {
      label: 'At rest', none: '', key: ({ id }) => id,
      columns: [
        { name: 'name', class: 'name', text: ({ name }) => named(name), title: ({ name }) => plain(name) },
        { name: 'kind', class: 'word extra', text: ({ kind }) => plain(kind), about: 'Objects of class Stash, a StashedMap, or blocks that are frozen in place.' },
        { name: 'budget', class: 'word extra', text: ({ charged }) => charged, title: ({ charged }) => charged, about: 'The budget that is charged for what rests in memory.' },
        number('tensors', (of) => of.tensors, count, 'number extra'),
        number('in memory', (of) => of.memory_bytes, bytes, 'number extra'),
        { name: 'where', class: 'graph', draw: drawPlaces, about: 'In memory as it is, compressed, and in files. The end is what all would take in memory.' },
        number('resting', (of) => of.stashed_bytes, bytes, 'number', 'The size of what is not in memory as it is.'),
        number('takes', takes, bytes, 'number', 'Compressed, and in files.'),
        number('ratio', ratio, (value) => (value >= 0 ? percent(value) : unknown)),
        number('misses', (of) => of.misses, count, 'number extra', 'Requests and page faults that found a tensor at rest.'),
        number('away', (of) => of.stash_ns, seconds, 'number extra', 'Time of putting to rest, on all threads.'),
        number('back', (of) => of.restore_ns, seconds, 'number extra', 'Time of bringing back, on all threads.'),
      ],
    });
  }

  /** The panel is hidden if nothing rests. */
  update(stashes, budgets) {
    this.#card.hidden = stashes.length === 0;
    const names = new Map(budgets.map(({ id, name }) => [id, named(name)]));
    const charged = (number) => (number ? names.get(number) ?? 'ended' : 'none');
    this.#rows.update(stashes.map((one) => ({ ...one, charged: charged(one.budget) })));
  }
}

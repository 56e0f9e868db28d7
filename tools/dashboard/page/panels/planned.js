// Planned arenas, and the peaks of one beside the lower bound for any allocator.

import { byId, element, fill, setText } from '../elements.js';
import { Rows } from '../rows.js';
import { bytes, count, named, percent, plain, unknown } from '../units.js';
import { Facts } from './facts.js';

const missed = (of) => of.too_large + of.out_of_order + of.unknown + of.still_in_use;
const served = (of) => of.served / (of.served + of.from_pool);
const peak = (value) => (value ? bytes(value) : unknown);

const number = (name, read, text = peak, kind = 'number') =>
  ({ name, class: kind, value: read, text: (item) => text(read(item)) });

/** The bars: as long as their bytes, with the part above the lower bound in the colour of waste. */
function peaksOf(of) {
  const bound = of.lower_bound_bytes;
  const rows = [['lower bound', bound], ['the pool’s peak', of.pool_peak_bytes],
    ['the plan’s peak', of.plan_peak_bytes]];
  const max = Math.max(1, ...rows.map(([, value]) => value));
  return rows.map(([name, value]) => ({ name, value, bound, max }));
}

const above = ({ value, bound }) =>
  (value && bound && value > bound ? `+${percent(value / bound - 1)}` : '');

function drawPeak(cell, { value, bound, max }) {
  const bar = cell.firstElementChild ?? cell.appendChild(
    element('div', { class: 'bar-line' }, ['in-use', 'waste'].map((kind) => element('i', { class: kind }))));
  fill(bar.children[0], Math.min(value, bound) / max);
  fill(bar.children[1], Math.max(0, value - bound) / max);
}

const makeFacts = () => new Facts(byId('planned-peaks'), [
  ['in use', (of) => bytes(of.in_use_bytes)],
  ['held for the plan', (of) => bytes(of.capacity_bytes)],
  ['in use from the pool', (of) => bytes(of.pool_in_use_bytes)],
  ['iterations', (of) => count(of.iterations)],
  ['requests from the plan', (of) => count(of.served)],
  ['from the pool', (of) => count(of.from_pool)],
  ['missed: too large', (of) => count(of.too_large)],
  ['out of order', (of) => count(of.out_of_order)],
  ['missed: unknown', (of) => count(of.unknown)],
  ['still in use', (of) => count(of.still_in_use)],
  ['buffers', (of) => count(of.buffers)],
  ['plans, made in', (of) => `${count(of.plans)}, ${(of.planning_ns / 1e6).toFixed(1)} ms`],
]);

export class Planned {
  #card = byId('planned'); #peaksCard = byId('planned-peaks'); #chosen = null; #arenas = [];
  #rows; #peaks; #facts;

  constructor() {
    this.#rows = new Rows(this.#card, {
      label: 'Planned arenas', none: 'none now', key: ({ id }) => id,
      press: ({ id }) => this.#choose(id),
      columns: [
        { name: 'arena', class: 'name', text: ({ name }) => named(name), title: ({ name }) => plain(name) },
        { name: 'state', class: 'word extra', text: ({ state }) => plain(state) },
        number('bound', (of) => of.lower_bound_bytes),
        number('pool', (of) => of.pool_peak_bytes),
        number('plan', (of) => of.plan_peak_bytes),
        number('served', served, percent),
        number('missed', missed, count, 'number extra'),
      ],
    });
    this.#peaks = new Rows(this.#peaksCard, {
      label: 'Peaks', none: '', key: ({ name }) => name,
      columns: [
        { name: 'maximum in use', class: 'name', text: ({ name }) => name },
        { name: '', class: 'graph', draw: drawPeak },
        { name: '', class: 'number', text: ({ value }) => peak(value) },
        { name: 'above', class: 'number', text: above },
      ],
    });
    this.#facts = makeFacts();
  }

  #choose(id) {
    this.#chosen = id;
    this.update(this.#arenas);
  }

  /** The panels are hidden if there are no planned arenas. */
  update(arenas) {
    this.#arenas = arenas;
    this.#card.hidden = this.#peaksCard.hidden = arenas.length === 0;
    const one = arenas.find(({ id }) => id === this.#chosen) ?? arenas[0];
    this.#rows.update(arenas, ({ id }) => id === one?.id);
    setText(byId('planned-name'), one ? `of ${named(one.name)}` : '');
    this.#peaks.update(one ? peaksOf(one) : []);
    this.#facts.update(one);
  }
}

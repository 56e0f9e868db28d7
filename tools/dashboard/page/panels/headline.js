// The tiles at the top: one value each, and its last minutes as a line.

import { element, fill, setText } from '../elements.js';
import { bytes, count, percent, rate } from '../units.js';

const blocks = (pool) => Math.max(0, pool.allocations - pool.deallocations);

function ofLimit({ pool, limited }) {
  if (pool.limit_bytes) return `${percent(pool.in_use_bytes / pool.limit_bytes)} of it in use`;
  return limited ? 'some pools have one' : 'no max_capacity set';
}

const tiles = [
  { name: 'in use', line: 'in_use', text: ({ pool }) => bytes(pool.in_use_bytes),
    more: ({ pool }) => `${count(blocks(pool))} blocks` },
  { name: 'capacity', line: 'capacity', text: ({ pool }) => bytes(pool.capacity_bytes),
    more: ({ pool }) => `reserved ${bytes(pool.reserved_bytes)}` },
  { name: 'peak in use', part: ({ pool }) => pool.in_use_bytes / pool.peak_in_use_bytes, text: ({ pool }) => bytes(pool.peak_in_use_bytes),
    more: ({ pool, count: pools }) => (pools > 1
      ? 'sum of all pools' : `of capacity ${bytes(pool.peak_capacity_bytes)}`) },
  { name: 'limit', part: ({ pool }) => (pool.limit_bytes ? pool.in_use_bytes / pool.limit_bytes : 0),
    text: ({ pool }) => (pool.limit_bytes ? bytes(pool.limit_bytes) : 'none'),
    more: ofLimit },
  { name: 'utilisation', part: ({ pool }) => pool.in_use_bytes / pool.capacity_bytes,
    text: ({ pool }) => percent(pool.capacity_bytes ? pool.in_use_bytes / pool.capacity_bytes : NaN),
    more: () => 'in use of capacity' },
  { name: 'hit ratio', line: 'hit_ratio', text: ({ rates }) => percent(rates?.hit_ratio),
    more: ({ pool }) => `${percent(pool.cache_hits / pool.allocations)} since start` },
  { name: 'page faults / s', line: 'faults', text: ({ faults }) => rate(faults),
    more: ({ resident }) => `resident ${bytes(resident || NaN)}` },
];

const svg = 'http://www.w3.org/2000/svg';

function spark() {
  const box = document.createElementNS(svg, 'svg');
  const path = document.createElementNS(svg, 'polyline');
  for (const [name, value] of [['viewBox', '0 0 100 24'], ['preserveAspectRatio', 'none'],
    ['aria-hidden', 'true']]) box.setAttribute(name, value);
  path.setAttribute('vector-effect', 'non-scaling-stroke');
  box.append(path);
  return { box, path };
}

function draw(path, t, values, since) {
  const until = t.at(-1);
  const first = t.findIndex((time) => time >= since);
  const max = Math.max(...values.slice(first), 0) || 1;
  const points = [];
  for (let index = Math.max(0, first); index < t.length; ++index) {
    if (values[index] === null) continue;
    const x = ((t[index] - since) / Math.max(1, until - since)) * 100;
    points.push(`${x.toFixed(1)},${(23 - (values[index] / max) * 22).toFixed(1)}`);
  }
  path.setAttribute('points', points.join(' '));
}

export class Headline {
  #tiles;

  constructor(where) {
    this.#tiles = tiles.map((tile) => {
      const value = element('strong', { class: 'figure', text: '–' });
      const more = element('small', { class: 'figure' });
      const { box, path } = spark();
      const bar = element('i');
      const foot = tile.line ? box : element('div', { class: 'bar-line' }, [bar]);
      where.append(element('div', { class: 'tile' },
        [element('span', { text: tile.name }), value, more, foot]));
      return { ...tile, value, more_element: more, path, bar };
    });
  }

  update(statistics, series, since) {
    for (const tile of this.#tiles) {
      setText(tile.value, statistics.pool ? tile.text(statistics) : '–');
      setText(tile.more_element, statistics.pool ? tile.more(statistics) : '');
      if (tile.line) draw(tile.path, series.t, series[tile.line], since);
      if (tile.part) fill(tile.bar, statistics.pool ? tile.part(statistics) : 0);
    }
  }
}

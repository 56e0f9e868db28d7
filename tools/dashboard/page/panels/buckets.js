// Buckets as bars, each as long as its capacity: requested, waste by rounding, free.

import { byId, element, fill, setText } from '../elements.js';
import { Rows } from '../rows.js';
import { bytes, count, size } from '../units.js';
import { waste } from '../statistics.js';

const free = (bucket) => Math.max(0, bucket.capacity_bytes - bucket.in_use_bytes);
const legend = [['in use', 'in-use'], ['waste by rounding', 'waste'], ['free', 'free']];

function drawBar(cell, { bucket, max }) {
  const bar = cell.firstElementChild ?? cell.appendChild(
    element('div', { class: 'bar-line' }, legend.map(([, kind]) => element('i', { class: kind }))));
  const lost = waste(bucket);
  const parts = [bucket.in_use_bytes - lost, lost, free(bucket)];
  [...bar.children].forEach((part, index) => fill(part, parts[index] / max));
}

const describe = ({ bucket }) => [
  `${bytes(bucket.in_use_bytes)} in use, of that ${bytes(Math.round(waste(bucket)))} by rounding`,
  `free: ${bytes(bucket.parked_bytes)} in magazines, ${bytes(bucket.depot_bytes)} in depots, ` +
    `the rest in spans; capacity ${bytes(bucket.capacity_bytes)}`,
  `${count(bucket.allocations)} allocations, ${count(bucket.deallocations)} deallocations`,
].join('\n');

const by = (read) => ({ class: 'number', value: ({ bucket }) => read(bucket) });

export class Buckets {
  #rows;

  constructor() {
    byId('buckets').append(element('ul', { class: 'legend' }, legend.map(([name, kind]) =>
      element('li', {}, [element('span', { class: `swatch ${kind}` }), ` ${name}`]))));
    this.#rows = new Rows(byId('buckets'), {
      label: 'Buckets', none: '', key: ({ bucket }) => bucket.block_bytes,
      columns: [
        { name: 'block', class: 'number size', text: ({ bucket }) => size(bucket.block_bytes) },
        { name: 'capacity', class: 'graph', draw: drawBar, title: describe },
        { name: 'in use', ...by((b) => b.in_use_bytes), text: ({ bucket: b }) => bytes(b.in_use_bytes) },
        { name: 'waste', ...by(waste), text: ({ bucket: b }) => bytes(Math.round(waste(b))) },
        { name: 'free', ...by(free), text: ({ bucket: b }) => bytes(free(b)) },
      ],
    });
  }

  update(pool) {
    const buckets = pool?.buckets ?? [];
    const max = Math.max(1, ...buckets.map((bucket) => Math.max(bucket.capacity_bytes, bucket.in_use_bytes)));
    this.#rows.update(buckets.map((bucket) => ({ bucket, max })));
  }
}

// Tables of the pools of a process, and of their threads.

import { byId, drawPart } from '../elements.js';
import { everything } from '../statistics.js';
import { Rows } from '../rows.js';
import { bytes, count, named, plain } from '../units.js';

const number = (name, read, text = count, kind = 'number') =>
  ({ name, class: kind, value: read, text: (item) => text(read(item)) });

export const makePools = (press) => new Rows(byId('pools'), {
  label: 'Pools', none: 'no pool now', key: ({ id }) => id, press: ({ id }) => press(id),
  columns: [
    { name: 'pool', class: 'name', text: ({ id, name }) => (id === everything ? name : named(name)),
      title: ({ name }) => plain(name) },
    { name: 'use', class: 'graph', draw: (cell, pool) => drawPart(cell, pool.in_use_bytes / pool.capacity_bytes) },
    number('in use', (pool) => pool.in_use_bytes, bytes),
    number('capacity', (pool) => pool.capacity_bytes, bytes),
  ],
});

export const makeThreads = () => new Rows(byId('threads'), {
  label: 'Threads', none: 'no thread has used this pool', key: ({ thread }) => thread,
  columns: [
    { name: 'thread', class: 'name', title: ({ name }) => plain(name),
      text: ({ thread, name }) => (thread === 0 ? 'ended threads' : named(name, 'thread')) },
    { name: 'id', class: 'number', text: ({ thread }) => (thread === 0 ? '' : String(thread)) },
    number('parked', (thread) => thread.parked_bytes, bytes),
    number('allocations', (thread) => thread.allocations),
    number('deallocations', (thread) => thread.deallocations, count, 'number extra'),
  ],
});

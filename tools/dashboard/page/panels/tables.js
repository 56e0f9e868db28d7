// Tables of the objects of a process: pools, scopes, arenas, threads.

import { byId, element, fill } from '../elements.js';
import { everything } from '../statistics.js';
import { Rows } from '../rows.js';
import { bytes, count, named, plain } from '../units.js';

const number = (name, read, text = count, kind = 'number') =>
  ({ name, class: kind, value: read, text: (item) => text(read(item)) });

function part(cell, value, of) {
  const bar = cell.firstElementChild ??
    cell.appendChild(element('div', { class: 'bar-line' }, [element('i', { class: 'in-use' })]));
  fill(bar.firstElementChild, of ? value / of : 0);
}

const growth = (scope) => scope.allocated_bytes - scope.deallocated_bytes;
const signed = (value) => (value > 0 ? `+${bytes(value)}` : bytes(value));
const limit = ({ limit_bytes }) => (limit_bytes ? bytes(limit_bytes) : 'none');

export const makePools = (press) => new Rows(byId('pools'), {
  label: 'Pools', none: 'no pool now', key: ({ id }) => id, press: ({ id }) => press(id),
  columns: [
    { name: 'pool', class: 'name', text: ({ id, name }) => (id === everything ? name : named(name)),
      title: ({ name }) => plain(name) },
    { name: 'use', class: 'graph', draw: (cell, pool) => part(cell, pool.in_use_bytes, pool.capacity_bytes) },
    number('in use', (pool) => pool.in_use_bytes, bytes),
    number('capacity', (pool) => pool.capacity_bytes, bytes),
  ],
});

export const makeScopes = () => new Rows(byId('scopes'), {
  label: 'Scopes', none: 'no StatisticsScope has begun in this process', key: ({ name }) => name,
  columns: [
    { name: 'scope', class: 'name', text: ({ name }) => named(name), title: ({ name }) => plain(name) },
    number('peak', (scope) => scope.peak_bytes, bytes),
    number('growth', growth, signed),
    number('calls', (scope) => scope.calls),
    number('open', (scope) => scope.open, count, 'number extra'),
    number('blocks', (scope) => scope.allocations, count, 'number extra'),
  ],
});

export const makeArenas = () => new Rows(byId('arenas'), {
  label: 'Arenas and scratches', none: 'no arena and no scratch now',
  key: ({ kind, id }) => `${kind} ${id}`,
  columns: [
    { name: 'name', class: 'name', text: ({ name, thread }) => named(name, thread ? `thread ${thread}` : undefined),
      title: ({ name }) => plain(name) },
    { name: 'kind', class: 'word', text: ({ kind }) => plain(kind) },
    number('used', (arena) => arena.used_bytes, bytes),
    number('peak', (arena) => arena.peak_used_bytes, bytes),
    number('capacity', (arena) => arena.capacity_bytes, bytes),
    number('allocations', (arena) => arena.allocations, count, 'number extra'),
    { name: 'limit', class: 'number extra', text: limit },
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

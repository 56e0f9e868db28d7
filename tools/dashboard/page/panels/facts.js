// Panels of names and values: large blocks, and the process.

import { byId, element, setText } from '../elements.js';
import { clock, bytes, count, named, percent, unknown } from '../units.js';

/** `facts`: pairs of a name and a function that returns the text. */
export class Facts {
  #facts;

  constructor(card, facts) {
    const list = element('dl', { class: 'facts' });
    this.#facts = facts.map(([name, read, kind]) => {
      const value = element('dd', { class: 'figure', text: unknown });
      list.append(element('div', { class: kind ?? '' }, [element('dt', { text: name }), value]));
      return { value, read };
    });
    card.append(list);
  }

  update(statistics) {
    for (const { value, read } of this.#facts) setText(value, statistics ? read(statistics) : unknown);
  }
}

const rounding = ({ requested_bytes, allocated_bytes }) =>
  percent(allocated_bytes ? Math.max(0, 1 - requested_bytes / allocated_bytes) : NaN);

export const makeLarge = () => new Facts(byId('large'), [
  ['in use', (large) => bytes(large.in_use_bytes)],
  ['blocks in use', (large) => count(Math.max(0, large.allocations - large.deallocations))],
  ['free, kept for reuse', (large) => bytes(large.cached_bytes)],
  ['allocations', (large) => count(large.allocations)],
  ['of these from the cache', (large) => percent(large.cache_hits / large.allocations)],
  ['that grew the pool', (large) => count(large.system_misses)],
  ['allocated so far', (large) => bytes(large.allocated_bytes)],
  ['of that by rounding', rounding],
]);

const sum = (object) => Object.values(object ?? {}).reduce((a, b) => a + b, 0);
const leftOut = ({ left_out: out }) => (sum(out)
  ? Object.entries(out).map(([kind, number]) => `${number} ${kind.replace('_', ' ')}`).join(', ') : 'nothing');

export const makeAbout = () => new Facts(byId('about'), [
  ['name', (of) => named(of.process_name)],
  ['process id', (of) => String(of.process)],
  ['library', (of) => named(of.library_version, unknown)],
  ['resident', (of) => bytes(of.resident_bytes || NaN)],
  ['committed', (of) => bytes(of.committed_bytes)],
  ['page faults', (of) => count(of.minor_faults)],
  ['failed requests', (of) => count(of.pools.reduce((all, pool) => all + pool.failures, 0))],
  ['checks: misuse', (of) => count(of.failed_misuse)],
  ['checks: leaks', (of) => count(of.failed_leaks)],
  ['checks: foreign threads', (of) => count(of.failed_threads)],
  ['checks: order of scopes', (of) => count(of.failed_scope_orders)],
  ['counted as “other”', leftOut],
  ['consistent', (of) => (of.consistent ? 'yes' : 'partly')],
  ['taken at', (of) => clock(of.time_unix_ns / 1e9)],
]);

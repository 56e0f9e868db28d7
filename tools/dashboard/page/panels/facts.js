// Panels of names and figures: large blocks, and the process.

import { byId, element, say } from '../elements.js';
import { clock, bytes, count, named, percent, unknown } from '../units.js';

/** `facts`: pairs of a name and a function that reads the text. */
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

  update(figures) {
    for (const { value, read } of this.#facts) say(value, figures ? read(figures) : unknown);
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
  ['for which the pool grew', (large) => count(large.system_misses)],
  ['handed out so far', (large) => bytes(large.allocated_bytes)],
  ['of that by rounding', rounding],
]);

const sum = (object) => Object.values(object ?? {}).reduce((a, b) => a + b, 0);
const leftOut = ({ left_out: out }) => (sum(out)
  ? `${out.pools} pools, ${out.arenas} arenas, ${out.slots} threads, ${out.scopes} scopes, ` +
    `${out.devices} devices, ${out.device_streams} streams, ${out.planned ?? 0} planned arenas` : 'nothing');

export const makeAbout = () => new Facts(byId('about'), [
  ['name', (of) => named(of.process_name)],
  ['number', (of) => String(of.process)],
  ['library', (of) => named(of.library_version, unknown)],
  ['resident', (of) => bytes(of.resident_bytes || NaN)],
  ['committed', (of) => bytes(of.committed_bytes)],
  ['page faults', (of) => count(of.minor_faults)],
  ['requests that failed', (of) => count(of.pools.reduce((all, pool) => all + pool.failures, 0))],
  ['checks: misuse', (of) => count(of.failed_misuse)],
  ['checks: leaks', (of) => count(of.failed_leaks)],
  ['checks: foreign threads', (of) => count(of.failed_threads)],
  ['checks: order of scopes', (of) => count(of.failed_scope_orders)],
  ['added up as “other”', leftOut],
  ['figures fit together', (of) => (of.consistent ? 'yes' : 'some may not')],
  ['taken at', (of) => clock(of.time_unix_ns / 1e9)],
]);

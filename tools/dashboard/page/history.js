// The last ten minutes of each pool, from the server's history and from later snapshots.

import { everything, tiers, weighted } from './statistics.js';

export const kept_seconds = 600;

const ladder = ['in_use', 'magazine', 'depot', 'span', 'extent'];
const sources = [
  'from_magazines', 'from_depots', 'from_spans', 'from_extents', 'from_system'];
const added = [...ladder, 'capacity', ...sources, 'allocated'];
const ratios = { hit_ratio: ['sources', 1], rounding: ['allocated', 0] };
const names = [...added, 'limit', 'faults', ...Object.keys(ratios)];

/** Extracts the values that the history has from a snapshot. */
function sample(pool, rates, faults) {
  const now = {
    ...tiers(pool), capacity: pool.capacity_bytes, limit: pool.limit_bytes || null,
    faults, hit_ratio: rates?.hit_ratio, rounding: rates?.rounding_ratio,
    allocated: rates?.allocated_bytes,
  };
  for (const source of sources) now[source] = rates?.[source];
  return now;
}

export class History {
  #pools = new Map();

  /** Replaces everything by the history that the server kept. */
  load(pools) {
    this.#pools.clear();
    for (const { id, t, series } of pools) {
      const one = { t: [...t], series: {} };
      for (const name of names) one.series[name] = t.map((_, index) => series[name]?.[index] ?? null);
      this.#pools.set(id, one);
    }
  }

  /** Adds a snapshot. One already in the history, whose times are rounded, is skipped. */
  add(time, snapshot, rates) {
    for (const pool of snapshot.pools) {
      const one = this.#pools.get(pool.id) ?? this.#begin(pool.id);
      if (time - one.t.at(-1) < 0.05) continue;
      const now = sample(
        pool, rates?.pools.find((of) => of.pool === pool.id), rates?.minor_faults);
      one.t.push(time);
      for (const name of names) one.series[name].push(now[name] ?? null);
    }
    this.#forget(time - kept_seconds);
  }

  #begin(id) {
    const one = { t: [], series: Object.fromEntries(names.map((name) => [name, []])) };
    this.#pools.set(id, one);
    return one;
  }

  #forget(before) {
    for (const [id, one] of this.#pools) {
      const old = one.t.findIndex((time) => time >= before);
      if (old < 0) this.#pools.delete(id);
      if (old <= 0) continue;
      one.t.splice(0, old);
      for (const name of names) one.series[name].splice(0, old);
    }
  }

  /** Returns `{t, in_use, …}`: arrays of equal length, for one pool or the sum of all. */
  series(choice) {
    const chosen = [...this.#pools].filter(([id]) => choice === everything || id === choice);
    const pools = chosen.map(([, one]) => one);
    if (pools.length === 1) return { t: pools[0].t, ...pools[0].series };
    return addedUp(pools);
  }
}

function addedUp(pools) {
  const t = [...new Set(pools.flatMap((pool) => pool.t))].sort((a, b) => a - b);
  const sum = { t, ...Object.fromEntries(names.map((name) => [name, []])) };
  const at = pools.map(() => -1);
  for (const time of t) {
    const now = [];
    pools.forEach((pool, index) => {
      while (pool.t[at[index] + 1] <= time) ++at[index];
      // A pool counts only from its first sample to its last.
      if (at[index] >= 0 && time <= pool.t.at(-1)) now.push([pool.series, at[index]]);
    });
    addMoment(sum, now);
  }
  return sum;
}

function addMoment(sum, now) {
  const of = (name) => now.map(([series, index]) => series[name][index]);
  const total = (values) => values.reduce((a, b) => (a === null && b === null ? null : a + b), null);
  for (const name of added) sum[name].push(total(of(name)));
  const limits = of('limit');
  sum.limit.push(limits.includes(null) ? null : total(limits));
  // Page faults are those of the process, so they are equal for all its pools.
  sum.faults.push(of('faults').find((value) => value !== null) ?? null);
  for (const [name, [weight, otherwise]] of Object.entries(ratios)) {
    const weights = now.map(([series, index]) => weight === 'sources'
      ? sources.reduce((a, source) => a + (series[source][index] ?? 0), 0)
      : series[weight][index] ?? 0);
    sum[name].push(of(name).every((value) => value === null)
      ? null : weighted(of(name).map((value) => value ?? 0), weights, otherwise));
  }
}

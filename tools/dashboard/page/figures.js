// The figures of one pool, or of all together, from a snapshot.

export const everything = 'all';

/** Adds numbers, and what objects and arrays hold of them; the rest is the first one's. */
function added(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  if (Array.isArray(a)) return a.map((one, index) => added(one, b[index]));
  if (a === null || typeof a !== 'object') return a;
  return Object.fromEntries(Object.keys(a).map((key) => [key, added(a[key], b[key])]));
}

function addedPools(pools) {
  if (pools.length === 0) return null;
  const sum = pools.reduce(added);
  sum.buckets.forEach((bucket, index) => {
    bucket.block_bytes = pools[0].buckets[index].block_bytes;
  });
  // A limit on some pools is none on all.
  if (pools.some((pool) => !pool.limit_bytes)) sum.limit_bytes = 0;
  return sum;
}

/** Part of `weights` that `parts` make; `otherwise` where the weights are all 0. */
export function weighted(parts, weights, otherwise) {
  const whole = weights.reduce((a, b) => a + b, 0);
  if (!(whole > 0)) return otherwise;
  return parts.reduce((sum, part, index) => sum + part * weights[index], 0) / whole;
}

function addedRates(rates) {
  if (rates.length === 0) return null;
  const of = (name) => rates.map((one) => one[name]);
  return {
    ...rates.reduce(added),
    hit_ratio: weighted(of('hit_ratio'), of('allocations'), 1),
    rounding_ratio: weighted(of('rounding_ratio'), of('allocated_bytes'), 0),
  };
}

const isChosen = (choice) => (id) => choice === everything || id === choice;

/** `{pool, rates, count, limited}`: the first two are null where nothing is known. */
export function chosenFigures(snapshot, rates, choice) {
  const chosen = isChosen(choice);
  const pools = (snapshot?.pools ?? []).filter((pool) => chosen(pool.id));
  return {
    pool: addedPools(pools),
    rates: addedRates((rates?.pools ?? []).filter((one) => chosen(one.pool))),
    count: pools.length,
    limited: pools.some((pool) => pool.limit_bytes),
  };
}

/** Threads of the chosen pools; one that uses several appears once. */
export function chosenThreads(snapshot, choice) {
  const byNumber = new Map();
  for (const thread of snapshot?.threads ?? []) {
    if (!isChosen(choice)(thread.pool)) continue;
    const sum = byNumber.get(thread.thread) ??
      { thread: thread.thread, name: thread.name, allocations: 0, deallocations: 0, parked_bytes: 0 };
    for (const key of ['allocations', 'deallocations', 'parked_bytes']) sum[key] += thread[key];
    byNumber.set(thread.thread, sum);
  }
  return [...byNumber.values()];
}

/** What is free on the way back to the system, by tier. */
export function tiers(pool) {
  return {
    in_use: pool.in_use_bytes,
    magazine: pool.parked_bytes,
    depot: pool.depot_bytes,
    span: pool.span_bytes,
    extent: pool.cached_bytes + pool.free_bytes,
  };
}

/** Bytes in use that nobody asked for, if what is in use is like all requests so far. */
export function waste(part) {
  if (!(part.allocated_bytes > part.requested_bytes)) return 0;
  return part.in_use_bytes * (1 - part.requested_bytes / part.allocated_bytes);
}

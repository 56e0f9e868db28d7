// The statistics of one pool, or of all together, from a snapshot.

export const everything = 'all';

/** Adds numbers, and numbers inside objects and arrays; other values are taken from `a`. */
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
  // If one pool has no limit, the sum has none.
  if (pools.some((pool) => !pool.limit_bytes)) sum.limit_bytes = 0;
  return sum;
}

/** Returns the mean of `parts` weighted by `weights`, or `otherwise` if all weights are 0. */
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

/** Returns `{pool, rates, count, limited}`; the first two are null if unknown. */
export function chosenStatistics(snapshot, rates, choice) {
  const chosen = isChosen(choice);
  const pools = (snapshot?.pools ?? []).filter((pool) => chosen(pool.id));
  return {
    pool: addedPools(pools),
    rates: addedRates((rates?.pools ?? []).filter((one) => chosen(one.pool))),
    count: pools.length,
    limited: pools.some((pool) => pool.limit_bytes),
  };
}

/** Returns the threads of the chosen pools; one that uses several appears once. */
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

/** Returns the bytes in use, and the free bytes by tier on their way back to the system. */
export function tiers(pool) {
  return {
    in_use: pool.in_use_bytes,
    magazine: pool.parked_bytes,
    depot: pool.depot_bytes,
    span: pool.span_bytes,
    extent: pool.cached_bytes + pool.free_bytes,
  };
}

/** Returns the bytes in use that were not requested, if they are like all requests so far. */
export function waste(part) {
  if (!(part.allocated_bytes > part.requested_bytes)) return 0;
  return part.in_use_bytes * (1 - part.requested_bytes / part.allocated_bytes);
}

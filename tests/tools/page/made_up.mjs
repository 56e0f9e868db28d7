// Made-up processes with statistics in waves, in the format of the server.

const kib = 1024;
const mib = kib * kib;
const sizes = Array.from({ length: 11 }, (_, index) => 64 << index);

function pool(id, name, scale, phase) {
  return { id, name, scale, phase, limit_bytes: scale > 300 * mib ? 1024 * mib : 0, peak: 0 };
}

export function makeProcess(number, name, pools = ['tensors', 'batches', 'decode']) {
  return {
    number, name, seconds: 0, faults: 0, entries: 0,
    pools: pools.map((one, index) => pool(index + 1, one, (420 - 130 * index) * mib, index * 2)),
    totals: pools.map(() => ({ allocations: 0, requested: 0, allocated: 0 })),
    planned: ['training step', 'validation'],
    budgets: [['process', 0, 0, 1300 * mib], ['loader', 1, 192 * mib, 256 * mib], ['images', 2, 0, 160 * mib],
      ['records', 2, 0, 0], ['model', 1, 640 * mib, 0], ['request 4711', 5, 0, 24 * mib]],
    stashes: [['images', 'map', 43, 90, 620, 150, 110], ['optimizer state', 'stashes', 0, 0, 512, 410, 0],
      ['embeddings', 'frozen', 45, 4, 252, 160, 0]],
    devices: [['activations', 'cuda:0', 38 * 1024 * mib], ['staging', 'cuda:0', 512 * mib]],
  };
}

const wave = (seconds, phase) => 0.55 + 0.3 * Math.sin(seconds / 17 + phase) + 0.1 * Math.sin(seconds / 3.1);

function bucketsOf(inUse, capacity, totals) {
  const weights = [5, 3, 4, 8, 6, 9, 14, 11, 16, 22, 30].map((weight) => weight / 160);
  return sizes.map((block_bytes, index) => {
    const weight = weights[index];
    return {
      block_bytes, in_use_bytes: Math.round(inUse * weight), parked_bytes: Math.round(inUse * weight * 0.06),
      capacity_bytes: Math.round(capacity * weight), allocations: Math.round(totals.allocations * weight),
      deallocations: Math.round(totals.allocations * weight * 0.99),
      requested_bytes: Math.round(totals.requested * weight * (1 - index / 80)),
      allocated_bytes: Math.round(totals.allocated * weight),
      cache_hits: Math.round(totals.allocations * weight * 0.97),
      cache_misses: Math.round(totals.allocations * weight * 0.03), depot_hits: 0, system_misses: 3,
      depot_bytes: Math.round(inUse * weight * 0.03),
    };
  });
}

function poolStatistics(one, totals, seconds) {
  const in_use = Math.round(one.scale * wave(seconds, one.phase));
  one.peak = Math.max(one.peak, in_use);
  const [magazine, depot] = [Math.round(in_use * 0.05), Math.round(in_use * 0.03)];
  const capacity = Math.round(one.scale * 1.12);
  const left = capacity - in_use - magazine - depot;
  return {
    version: 2, name: one.name, id: one.id, in_use_bytes: in_use, capacity_bytes: capacity,
    reserved_bytes: 64 * 1024 * mib, limit_bytes: one.limit_bytes, peak_in_use_bytes: one.peak,
    peak_capacity_bytes: capacity, peak_reserved_bytes: 64 * 1024 * mib,
    requested_bytes: totals.requested, allocated_bytes: totals.allocated,
    allocations: totals.allocations, deallocations: totals.allocations - 12_345,
    cache_hits: Math.round(totals.allocations * 0.968), cache_misses: Math.round(totals.allocations * 0.032),
    failures: 2, failures_by_limit: [0, 0, 2, 0, 0, 0], system_misses: 40,
    parked_bytes: magazine, depot_bytes: depot, span_bytes: Math.round(left * 0.35),
    cached_bytes: Math.round(left * 0.25), free_bytes: Math.round(left * 0.4), lost_bytes: 0,
    record_bytes: 3 * mib, growths: 12, grown_bytes: capacity, give_backs: 2,
    given_back_bytes: 32 * mib, threads: 8,
    buckets: bucketsOf(in_use * 0.6, capacity * 0.6, totals),
    large: {
      in_use_bytes: Math.round(in_use * 0.4), cached_bytes: Math.round(left * 0.25),
      allocations: 51_234 + seconds * 120, deallocations: 51_180 + seconds * 120, requested_bytes: 9e11,
      allocated_bytes: 9.3e11, cache_hits: 50_900 + seconds * 119, cache_misses: 334, system_misses: 28,
    },
  };
}

function poolRates(one, totals, seconds) {
  const busy = 200_000 * (one.scale / (420 * mib)) * wave(seconds * 1.7, one.phase + 1);
  const rounding = 0.11 + 0.05 * Math.sin(seconds / 29 + one.phase);
  totals.allocations += Math.round(busy);
  totals.allocated += Math.round(busy * 900);
  totals.requested += Math.round(busy * 900 * (1 - rounding));
  const cold = 0.02 + 0.02 * Math.max(0, Math.sin(seconds / 11));
  return {
    pool: one.id, seconds: 1, allocations: busy, deallocations: busy, requested_bytes: busy * 800,
    allocated_bytes: busy * 900, from_magazines: busy * (0.86 - 2 * cold), from_depots: busy * (0.1 + cold),
    from_spans: busy * (0.03 + cold / 2), from_extents: busy * (0.01 + cold / 3), from_system: busy * cold / 6,
    failures: 0, hit_ratio: 0.96 - cold, rounding_ratio: rounding,
  };
}

function device(id, name, on, scale, seconds) {
  const in_use = Math.round(scale * wave(seconds, id));
  const deferred = Math.round(in_use * 0.03);
  const capacity = Math.round(scale * 1.1);
  const calls = 4000 + seconds * 900;
  return {
    version: 1, name, kind: id % 2 ? 'caching' : 'pinned', device: on, id, in_use_bytes: in_use,
    peak_in_use_bytes: scale, requested_in_use_bytes: Math.round(in_use * 0.98), deferred_bytes: deferred,
    peak_active_bytes: Math.round(scale * 1.04), capacity_bytes: capacity, peak_capacity_bytes: capacity,
    address_bytes: 0, free_bytes: capacity - in_use - deferred, split_bytes: Math.round(scale * 0.02),
    parked_bytes: 12 * mib, captured_bytes: 0, limit_bytes: 0, soft_limit_bytes: 0, slabs: 31, free_blocks: 17,
    deferred_blocks: 3, streams: 2, allocations: calls, deallocations: calls - 812, requested_bytes: calls * 900 * kib,
    allocated_bytes: calls * mib, deallocated_bytes: calls * mib - in_use, parked_hits: Math.round(calls * 0.93),
    free_hits: Math.round(calls * 0.06), growths: 40, grown_bytes: capacity * 2, give_backs: 9, given_back_bytes: capacity,
    cross_stream_uses: 77, events: 77, synchronizations: 1, pressures: 2, failures: 0,
  };
}

function planned(id, name, index, seconds) {
  const iterations = 12 + seconds * 2;
  const serves = index === 0;
  return {
    version: 1, name, state: serves ? 'serving' : 'learning', id, buffers: 442 - index * 300,
    lower_bound_bytes: (310 - 200 * index) * mib, pool_peak_bytes: (388 - 240 * index) * mib,
    plan_peak_bytes: serves ? 311 * mib : 0, capacity_bytes: serves ? 312 * mib : 0,
    in_use_bytes: serves ? Math.round(300 * mib * wave(seconds, 4)) : 0, pool_in_use_bytes: 64 * kib,
    iterations, served: serves ? 442 * (iterations - 2) : 0, from_pool: 884, too_large: serves ? 3 : 0,
    out_of_order: 0, unknown: serves ? 2 : 0, still_in_use: 0, plans: serves ? 1 : 0,
    planning_ns: serves ? 12_340_000 : 0,
  };
}

function stash(index, [name, kind, budget, memory, resting, compressed, spilled], seconds) {
  return {
    name, kind, id: 61 + index, budget, tensors: [940, 12, 1][index], memory_bytes: memory * mib,
    stashed_bytes: resting * mib, compressed_bytes: compressed * mib - Math.round(mib * wave(seconds, index)),
    spilled_bytes: spilled * mib, hits: 9000, misses: [1200, 0, 31][index], stashes: 1500, spills: 300,
    restores: 1200, failures: 0, stash_ns: 5.5e9, restore_ns: 2.25e9,
  };
}

function budget(index, [name, parent, soft_bytes, hard_bytes], seconds) {
  const [used, peak] = [[820, 990], [176, 256], [128, 160], [48, 60], [600, 702], [23, 24]][index];
  return {
    name, id: 41 + index, parent: parent ? 40 + parent : 0, soft_bytes, hard_bytes,
    in_use_bytes: used * mib - Math.round(2 * mib * wave(seconds, index)),
    peak_bytes: peak * mib, refusals: index === 5 ? 3 : 0, reclaims: index === 1 ? 41 : 0,
    reclaimed_bytes: index === 1 ? 900 * mib : 0,
  };
}

const arena = (id, name, kind, used, thread = 0) => ({
  version: 2, name, kind, id, thread, used_bytes: used, peak_used_bytes: used * 2,
  capacity_bytes: used * 3, peak_capacity_bytes: used * 3, reserved_bytes: 1024 * mib,
  limit_bytes: id % 2 ? 256 * mib : 0, growths: 3, grown_bytes: used * 3, give_backs: 0,
  given_back_bytes: 0, refusals: 0,
});

const scope = (name, peak_bytes, calls) => ({
  name, calls, open: calls % 3, allocations: calls * 41, deallocations: calls * 40,
  requested_bytes: calls * 900, allocated_bytes: calls * 1000, deallocated_bytes: calls * 990,
  peak_bytes, out_of_order: 0,
});

/** A table as the server makes one. `columns`: `[title, show, what a record's cell is, sentence]`. */
function table(name, of, title, records, columns) {
  const depth = (record) => (record.parent ? 1 + depth(records.find(({ id }) => id === record.parent)) : 0);
  return {
    name, of, title, columns: columns.map(([column, show, , about = '']) => ({ title: column, show, about })),
    rows: records.map((record, index) => ({
      id: record.id ?? 0, record: index, depth: depth(record), cells: columns.map(([, , read]) => read(record)),
    })),
  };
}

const whole = (of) => of.hard_bytes || of.soft_bytes;
const takes = (of) => of.compressed_bytes + of.spilled_bytes;

function tablesOf(of) {
  const named = ['NAME', 'name', ({ name }) => name];
  const size = (title, field, show = 'size', about = '') => [title, show, (record) => record[field], about];
  const arenas = [named, ['KIND', 'choice', ({ kind }) => kind], size('IN USE', 'used_bytes'), size('HIGHEST', 'used_bytes', 'highest')];
  const budgets = new Map(of.budgets.map(({ id, name }) => [id, name]));
  return [
    table('arenas', 'arena', 'arenas', of.arenas, arenas),
    table('scratches', 'arena', 'scratches', of.scratches, arenas),
    table('devices', 'device', 'allocators of device memory', of.devices, [named, ['DEVICE', 'text', ({ device: on }) => on],
      size('IN USE', 'in_use_bytes'), size('CAPACITY', 'capacity_bytes', 'size', 'About capacity_bytes.'),
      ['HITS', 'part', (one) => [one.parked_hits + one.free_hits, one.allocations]], size('ALLOC/s', 'allocations', 'rate')]),
    table('planned', 'planned', 'planned arenas', of.planned, [named, ['STATE', 'choice', ({ state }) => state],
      size('BOUND', 'lower_bound_bytes'), size('POOL', 'pool_peak_bytes', 'size_if_known'), size('PLAN', 'plan_peak_bytes', 'size_if_known')]),
    table('budgets', 'budget', 'budgets', of.budgets, [['BUDGET', 'name', ({ name }) => name], size('IN USE', 'in_use_bytes'),
      size('HARD', 'hard_bytes', 'limit'), ['SHARE', 'part', (one) => [one.in_use_bytes, whole(one)]],
      ['', 'bar', (one) => [one.in_use_bytes, whole(one)]], size('SOFT', 'soft_bytes', 'limit')]),
    table('stashes', 'stash', 'at rest', of.stashes, [['AT REST', 'name', ({ name }) => name], ['KIND', 'choice', ({ kind }) => kind],
      size('COUNT', 'tensors', 'count'), size('RESTING', 'stashed_bytes'), ['TAKES', 'size', takes],
      ['RATIO', 'part', (one) => [takes(one), one.stashed_bytes]], size('STASH s', 'stash_ns', 'seconds'),
      ['BUDGET', 'reference', (one) => budgets.get(one.budget) ?? 'none']]),
    table('scopes', 'scope', 'scopes', of.scopes, [['SCOPE', 'name', ({ name }) => name], size('PEAK', 'peak_bytes'),
      ['GROWTH', 'growth', (one) => one.allocated_bytes - one.deallocated_bytes]]),
    table('device_streams', 'device_stream', 'streams of devices', of.device_streams, [size('STREAM', 'stream', 'number'), ['WHY', 'text', ({ text }) => text]]),
    table('queues', 'queue', 'queues of batches', [{ id: 90, name: 'loader' }], [['QUEUE', 'name', ({ name }) => name]]),
  ];
}

const workers = ['main', 'loader-0', 'loader-1', 'decode-0', 'decode-1', 'optimizer', 'logger'];

export function snapshotOf(made, time) {
  const { seconds } = made;
  made.seconds += 1;
  made.faults += Math.round(300 * wave(seconds * 2.3, 0));
  const rates = made.pools.map((one, index) => poolRates(one, made.totals[index], seconds));
  const pools = made.pools.map((one, index) => poolStatistics(one, made.totals[index], seconds));
  const moment = {
    time, rates: { seconds: 1, minor_faults: 300 * wave(seconds * 2.3, 0), pools: rates },
    snapshot: {
      version: 1, process: made.number, process_name: made.name, library_version: '0.1.0',
      time_ns: seconds * 1e9, time_unix_ns: time * 1e9, consistent: true, committed_bytes: 1300 * mib,
      minor_faults: made.faults, resident_bytes: 1440 * mib, failed_misuse: 0, failed_leaks: 0,
      failed_threads: 0, failed_scope_orders: 1, left_out: { pools: 0, arenas: 0, devices: 0, device_streams: 0, planned: 0, budgets: 0, stashes: 0, slots: 0, scopes: 0 },
      pools,
      arenas: [arena(11, 'batch', 'growing', Math.round(20 * mib * wave(seconds, 1))), arena(12, 'header', 'buffer', 14 * kib)],
      scratches: [arena(13, 'scratch', 'scratch', 3 * mib, made.number), arena(14, 'scratch', 'scratch', mib, made.number + 1)],
      planned: made.planned.map((name, index) => planned(31 + index, name, index, seconds)),
      budgets: made.budgets.map((one, index) => budget(index, one, seconds)),
      stashes: made.stashes.map((one, index) => stash(index, one, seconds)),
      devices: made.devices.map(([name, on, scale], index) => device(21 + index, name, on, scale, seconds)),
      device_streams: made.devices.map((_, index) => ({
        device: 21 + index, stream: 2, capture: 0, held_bytes: 64 * mib, used_bytes: 40 * mib,
        parked_bytes: 0, waiting_bytes: 20 * mib, waiting_ns: 5.2e9,
        text: 'stream 2 holds 64 MiB, of which 40 MiB are in use; 20 MiB that were freed have waited for its work for 5.2 s',
      })),
      scopes: [scope('forward', 212 * mib, seconds * 4 + 3), scope('backward', 388 * mib, seconds * 4 + 2),
        scope('optimizer step', 17 * mib, seconds + 1), scope('decode jpeg', 44 * mib, seconds * 30)],
      threads: made.pools.flatMap(({ id }) => workers.map((name, index) => ({
        thread: made.number + index, pool: id, name, parked_bytes: Math.round((index + 1) * 40 * kib * wave(seconds, index)),
        allocations: 31_000 * (index + 1) + seconds * 700, deallocations: 30_900 * (index + 1) + seconds * 700,
      }))),
      entries: made.entries, queues: [{ id: 90, name: 'loader', batches: 7 }],
    },
  };
  return { ...moment, tables: tablesOf(moment.snapshot) };
}

const happenings = [
  ['growth', '', 16 * mib, 'tensors'], ['scope', '', 388 * mib, 'backward'], ['give-back', '', 4 * mib, 'batches'],
  ['mark', '', 0, 'epoch 3 begins'], ['pressure', 'max_capacity', 2 * mib, 'tensors'],
  ['limit', 'max_capacity', 2 * mib, 'tensors'], ['failure', 'max_capacity', 2 * mib, 'tensors'], ['check', '', 0, 'tensors'],
];

export function entryOf(made, time) {
  const [kind, limit, bytes, name] = happenings[made.entries % happenings.length];
  made.entries += 1;
  return { number: made.entries, time_ns: time * 1e9, thread: made.number, kind, limit, bytes, name };
}

export function historyOf(made, time, seconds) {
  const samples = [];
  for (let ago = seconds; ago > 0; --ago) samples.push(snapshotOf(made, time - ago));
  const t = samples.map((sample) => sample.time);
  const read = (index, from) => samples.map(({ snapshot, rates }) => from(snapshot.pools[index], rates.pools[index], rates));
  return { process: made.number, pools: made.pools.map(({ id, name }, index) => ({ id, name, t, series: {
    in_use: read(index, (pool) => pool.in_use_bytes), magazine: read(index, (pool) => pool.parked_bytes),
    depot: read(index, (pool) => pool.depot_bytes), span: read(index, (pool) => pool.span_bytes),
    extent: read(index, (pool) => pool.cached_bytes + pool.free_bytes),
    capacity: read(index, (pool) => pool.capacity_bytes), limit: read(index, (pool) => pool.limit_bytes || null),
    from_magazines: read(index, (_, rates) => rates.from_magazines), from_depots: read(index, (_, rates) => rates.from_depots),
    from_spans: read(index, (_, rates) => rates.from_spans), from_extents: read(index, (_, rates) => rates.from_extents),
    from_system: read(index, (_, rates) => rates.from_system), rounding: read(index, (_, rates) => rates.rounding_ratio),
    allocated: read(index, (_, rates) => rates.allocated_bytes), hit_ratio: read(index, (_, rates) => rates.hit_ratio),
    faults: read(index, (_, __, rates) => rates.minor_faults),
  } })) };
}

#include "serve/watch/history.hpp"

#include <algorithm>
#include <limits>

#include "serve/watch/history_json.hpp"

namespace tensorpool::command::serve {
namespace {

constexpr std::uint64_t unit_ns = 10'000'000;  // of Sample::time

constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

/// `rates` is null for the first snapshot that includes the pool.
PoolSample sample_of(std::uint32_t time, const PoolStatistics& pool, const PoolRates* rates) {
    PoolSample sample = {.time = time};
    for (std::size_t i = 0; i < series_count; ++i) {
        const auto& [name, bytes, rate] = pool_series[i];
        if (bytes != nullptr) {
            sample.values[i] = bytes(pool);
        } else {
            sample.values[i] = rates != nullptr ? static_cast<float>(rates->*rate) : unknown;
        }
    }
    return sample;
}

const PoolRates* rates_of(const ProcessRates& rates, std::uint64_t pool) {
    const auto found = std::ranges::find(rates.pools, pool, &PoolRates::pool);
    return found == rates.pools.end() ? nullptr : &*found;
}

float faults_of(const ProcessRates& rates) {
    return rates.seconds > 0 ? static_cast<float>(rates.minor_faults) : unknown;
}

}  // namespace

void History::add(const ProcessSnapshot& snapshot, const ProcessRates& rates) {
    if (start_ns_ == 0) start_ns_ = snapshot.time_ns;
    if (snapshot.time_ns < start_ns_) return;
    unix_offset_ns_ = static_cast<std::int64_t>(snapshot.time_unix_ns - snapshot.time_ns);
    const auto time = static_cast<std::uint32_t>((snapshot.time_ns - start_ns_) / unit_ns);
    forget_missing(snapshot);
    faults_.add({time, {faults_of(rates)}});
    for (const PoolStatistics& pool : snapshot.pools) {
        Pool& kept = pools_[pool.id];
        kept.name = pool.name;
        kept.history.add(sample_of(time, pool, rates_of(rates, pool.id)));
    }
}

void History::forget_missing(const ProcessSnapshot& snapshot) {
    std::erase_if(pools_, [&](const auto& kept) {
        return std::none_of(snapshot.pools.begin(), snapshot.pools.end(),
                            [&](const PoolStatistics& pool) { return pool.id == kept.first; });
    });
}

std::string History::to_json(std::uint64_t process, std::uint64_t time_ns) const {
    const std::uint64_t until = time_ns < start_ns_ ? 0 : (time_ns - start_ns_) / unit_ns;
    const std::uint64_t start_unix_ns = start_ns_ + static_cast<std::uint64_t>(unix_offset_ns_);
    HistoryJson json(process, static_cast<double>(start_unix_ns) / 1e9, faults_.samples());
    for (const auto& [id, pool] : pools_) {
        std::vector<PoolSample> samples = pool.history.samples();
        std::erase_if(samples, [until](const PoolSample& sample) { return sample.time >= until; });
        json.add(id, pool.name, samples);
    }
    return json.take();
}

}  // namespace tensorpool::command::serve

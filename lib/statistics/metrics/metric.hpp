#pragma once

#include <array>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/timeline.hpp>

/// Each metric is declared once, in the table `Metrics<Statistics>`, next to the counters it is
/// read from. JSON, Prometheus, the manual and the sums over the segment are generated from these
/// tables.
namespace tensorpool::statistics {

using detail::Counter;

enum class MetricKind : std::uint8_t {
    gauge,  // rises and falls
    total,  // only rises
    peak,   // the highest value so far
};

/// When a counter is read. Counters of frees are read before counters of allocations, for all
/// threads. A block therefore never reads as freed without reading as allocated.
enum class Reading : std::uint8_t { first, second };

/// The field of a metric: a single number, or one number for each kind of limit.
template <class Statistics>
struct Field {
    constexpr Field(std::uint64_t Statistics::*field) : number(field) {}
    constexpr Field(std::array<std::uint64_t, limit_kind_count> Statistics::*field) : list(field) {}

    std::uint64_t Statistics::*number = nullptr;
    std::array<std::uint64_t, limit_kind_count> Statistics::*list = nullptr;
};

/// A counter, or one counter for each kind of limit, in a structure of counters.
template <class Counters>
struct Words {
    Counter Counters::*number = nullptr;
    Counter (Counters::*list)[limit_kind_count] = nullptr;
};

/// Marks a counter that is read first.
template <class Counters>
struct ReadFirst {
    Counter Counters::*counter;
};
template <class Counters>
constexpr ReadFirst<Counters> read_first(Counter Counters::*counter) {
    return {counter};
}

/// The counter that a metric is read from, in one of several structures. Empty if the metric is
/// computed.
template <class... Counters>
struct Source : Words<Counters>... {
    constexpr Source() = default;
    template <class Of>
    constexpr Source(Counter Of::*counter) {
        Words<Of>::number = counter;
    }
    template <class Of>
    constexpr Source(ReadFirst<Of> first) : reading(Reading::first) {
        Words<Of>::number = first.counter;
    }
    template <class Of>
    constexpr Source(Counter (Of::*counters)[limit_kind_count]) {
        Words<Of>::list = counters;
    }

    Reading reading = Reading::second;
};

template <class Statistics, class... Counters>
struct Metric {
    const char* name;  // the name of the field
    Field<Statistics> field;
    const char* unit;
    MetricKind kind;
    const char* sentence;
    const char* prometheus = "";  // "" if Prometheus has no such metric, or only parts of a divided
                                  // one
    Source<Counters...> source = {};
    const char* pytorch = "";  // PyTorch's name of the metric, if it has one
};

/// The table of the metrics of `Statistics`: `of` names the object that they describe, and `all`
/// lists them.
template <class Statistics>
struct Metrics;

/// Adds each metric that is read from a counter of `from` with this `reading`. Relaxed: each
/// counter is independent of the others. Counters that are read first pair with the writers'
/// `add_release`.
template <class Statistics, class Counters>
void add_counters(Statistics& to, const Counters& from, Reading reading) noexcept {
    const auto order =
        reading == Reading::first ? std::memory_order_acquire : std::memory_order_relaxed;
    for (const auto& metric : Metrics<Statistics>::all) {
        if (metric.source.reading != reading) continue;
        const Words<Counters>& words = metric.source;
        if (words.number != nullptr) to.*metric.field.number += (from.*words.number).load(order);
        if (words.list == nullptr) continue;
        for (std::size_t i = 0; i < limit_kind_count; ++i) {
            (to.*metric.field.list)[i] += (from.*words.list)[i].load(order);
        }
    }
}

}  // namespace tensorpool::statistics

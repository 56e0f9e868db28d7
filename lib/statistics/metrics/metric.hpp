#pragma once

#include <array>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/timeline.hpp>

/// Every metric is declared once, in a table beside the words that count it: `Metrics<Statistics>`.
/// JSON, Prometheus, the manual and the sums over the segment are made from these tables.
namespace tensorpool::statistics {

using detail::Counter;

enum class MetricKind : std::uint8_t {
    gauge,  // goes up and down
    total,  // only grows
    peak,   // the highest so far
};

/// What ends something is read before what begins it, of all threads: so nothing reads as freed
/// that does not read as allocated.
enum class Reading : std::uint8_t { first, second };

/// The field of a metric: one number, or one for each kind of limit.
template <class Statistics>
struct Field {
    constexpr Field(std::uint64_t Statistics::*field) : number(field) {}
    constexpr Field(std::array<std::uint64_t, limit_kind_count> Statistics::*field) : list(field) {}

    std::uint64_t Statistics::*number = nullptr;
    std::array<std::uint64_t, limit_kind_count> Statistics::*list = nullptr;
};

/// A word, or one for each kind of limit, in one structure of counters.
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

/// The counter that a metric comes from, in one of several structures; in none where the metric is
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
    const char* name;  // of the field
    Field<Statistics> field;
    const char* unit;
    MetricKind kind;
    const char* sentence;
    const char* prometheus = "";  // "" where it is no metric there, or part of a divided one
    Source<Counters...> source = {};
    const char* pytorch = "";  // its word there, where it has one
};

/// The table of what `Statistics` holds: `of`, whose metrics these are, and `all`.
template <class Statistics>
struct Metrics;

/// Adds to each metric that comes from a counter of `from` and is read at this time. Relaxed: each
/// is a number of its own. What is read first pairs with the writers' `add_release`.
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

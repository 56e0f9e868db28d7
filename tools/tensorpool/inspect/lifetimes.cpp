#include "inspect/lifetimes.hpp"

#include <utility>

namespace tensorpool::command::inspect {
namespace {

/// Rows from 0, `second`, ten times that, and so on up to `last`.
class Histogram {
public:
    Histogram(std::uint64_t second, std::uint64_t last) : rows_(1) {
        for (std::uint64_t from = second; from <= last; from *= 10) rows_.push_back({from, 0, 0});
    }
    void add(std::uint64_t length, std::uint64_t bytes) {
        auto row = rows_.rbegin();
        while (row->from > length) ++row;
        ++row->blocks;
        row->bytes += bytes;
    }
    std::vector<LifetimeRow> take() { return std::move(rows_); }

private:
    std::vector<LifetimeRow> rows_;
};

}  // namespace

Lifetimes lifetimes_of(const History& history) {
    Histogram by_time(1'000, 100'000'000'000);  // 1 us to 100 s
    Histogram by_calls(10, 10'000'000);
    const auto& calls = history.recording().calls;
    for (std::size_t i = 0; i < history.lives().size(); ++i) {
        const Life& life = history.lives()[i];
        const std::uint32_t born = history.facts(i).born;
        if (born == BlockFacts::none || life.end == Life::none || life.end < born) continue;
        if (calls[life.end].action == TraceAction::resize) continue;  // it goes on
        by_time.add(history.time_of(life.end) - history.time_of(born), life.bytes);
        by_calls.add(life.end - born, life.bytes);
    }
    return {by_time.take(), by_calls.take()};
}

}  // namespace tensorpool::command::inspect

#include <tensorpool/figures.hpp>

#include <vector>

#include "statistics/report/figures.hpp"

namespace tensorpool {
namespace {

using namespace statistics;

constexpr const char* word_of(FigureKind kind) noexcept {
    if (kind == FigureKind::gauge) return "gauge";
    return kind == FigureKind::total ? "total" : "peak";
}

template <class Statistics, std::size_t count>
void append(std::vector<FigureDescription>& all, const char* of,
            const Figure<Statistics> (&figures)[count]) {
    for (const auto& [name, value, unit, kind, sentence, pytorch] : figures) {
        all.push_back({of, name, unit, word_of(kind), sentence, pytorch});
    }
}

std::vector<FigureDescription> collect() {
    std::vector<FigureDescription> all;
    append(all, "process", process_figures);
    append(all, "pool", pool_figures);
    all.push_back({"pool", "failures_by_limit", "calls", word_of(total),
                   "Requests that could not be met, by the limit that was met: none known, "
                   "max_allocation, max_capacity, memory, address space, records.",
                   ""});
    append(all, "bucket", bucket_figures);
    append(all, "large", large_figures);
    append(all, "arena", arena_figures);
    append(all, "device", device_figures);
    append(all, "planned", planned_figures);
    append(all, "scope", scope_figures);
    append(all, "thread", thread_figures);
    return all;
}

}  // namespace

std::span<const FigureDescription> describe_figures() {
    static const std::vector<FigureDescription> all = collect();
    return all;
}

}  // namespace tensorpool

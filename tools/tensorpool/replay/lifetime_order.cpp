#include "replay/lifetime_order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/settings.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

using trace::Life;

/// Throws CommandError if a block exceeds the limits of Step.
void check(const trace::Recording& recording, const Life& life) {
    if (life.bytes > Step::max_bytes) {
        throw CommandError(finding,
                           fmt::format("the trace has a block of {} bytes, expected at most {}",
                                       life.bytes, Step::max_bytes));
    }
    if (life.begin == Life::none) return;
    const unsigned alignment = recording.calls[life.begin].alignment_log2;
    if (alignment > Step::max_alignment_log2) {
        throw CommandError(finding, fmt::format("the trace has a block aligned to 2^{} bytes, "
                                                "expected at most 2^{}",
                                                alignment, Step::max_alignment_log2));
    }
}

}  // namespace

LifetimeOrder::LifetimeOrder(const trace::Recording& recording, std::uint32_t process) {
    for (const Life& life : trace::lives_of(recording)) {
        // A block that was freed by the call that allocated it was never handed out.
        const bool lived = life.begin == Life::none || life.begin < life.end;
        // Device memory cannot be replayed on the host.
        const bool of_device = recording.sources[life.source].kind == TraceSource::device;
        if (life.process != process || !lived || of_device) continue;
        check(recording, life);
        lives_.push_back(life);
        if (life.end != Life::none) ends_.push_back(lives_.size() - 1);
    }
    std::ranges::stable_sort(ends_, {}, [this](std::size_t life) { return lives_[life].end; });
}

}  // namespace tensorpool::command::replay

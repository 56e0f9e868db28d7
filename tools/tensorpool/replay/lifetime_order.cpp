#include "replay/lifetime_order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/settings.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

using trace::Lifetime;

/// Throws CommandError if a block exceeds the limits of Step.
void check(const trace::Recording& recording, const Lifetime& lifetime) {
    if (lifetime.bytes > Step::max_bytes) {
        throw CommandError(finding,
                           fmt::format("the trace has a block of {} bytes, expected at most {}",
                                       lifetime.bytes, Step::max_bytes));
    }
    if (lifetime.begin == Lifetime::none) return;
    const unsigned alignment = recording.calls[lifetime.begin].alignment_log2;
    if (alignment > Step::max_alignment_log2) {
        throw CommandError(finding, fmt::format("the trace has a block aligned to 2^{} bytes, "
                                                "expected at most 2^{}",
                                                alignment, Step::max_alignment_log2));
    }
}

}  // namespace

LifetimeOrder::LifetimeOrder(const trace::Recording& recording, std::uint32_t process) {
    for (const Lifetime& lifetime : trace::lifetimes_of(recording)) {
        // A block that was freed by the call that allocated it was never handed out.
        const bool lived = lifetime.begin == Lifetime::none || lifetime.begin < lifetime.end;
        // Device memory cannot be replayed on the host.
        const bool of_device = recording.sources[lifetime.source].kind == TraceSource::device;
        if (lifetime.process != process || !lived || of_device) continue;
        check(recording, lifetime);
        lifetimes_.push_back(lifetime);
        if (lifetime.end != Lifetime::none) ends_.push_back(lifetimes_.size() - 1);
    }
    std::ranges::stable_sort(ends_, {},
                             [this](std::size_t lifetime) { return lifetimes_[lifetime].end; });
}

}  // namespace tensorpool::command::replay

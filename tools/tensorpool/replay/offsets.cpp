#include "replay/offsets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

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

/// The alignment that malloc guarantees.
constexpr std::uint64_t min_alignment = 16;

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

LifetimeOrder blocks_of(const trace::Recording& recording, std::uint32_t process) {
    std::vector<Lifetime> lifetimes = trace::lifetimes_of(recording);
    std::erase_if(lifetimes, [&](const Lifetime& lifetime) {
        // A block that was freed by the call that allocated it was never handed out.
        const bool lived = lifetime.begin == Lifetime::none || lifetime.begin < lifetime.end;
        // Device memory cannot be replayed on the host.
        const bool of_device = recording.sources[lifetime.source].kind == TraceSource::device;
        return lifetime.process != process || !lived || of_device;
    });
    for (const Lifetime& lifetime : lifetimes) check(recording, lifetime);
    return LifetimeOrder(std::move(lifetimes));
}

MemoryPlan planned_offsets(const trace::Recording& recording, const LifetimeOrder& order) {
    std::vector<TensorLifetime> lifetimes = steps_of(recording, order);
    // An allocation of 0 bytes still returns a block.
    for (TensorLifetime& lifetime : lifetimes) {
        lifetime.bytes = std::max<std::uint64_t>(lifetime.bytes, 1);
    }
    return plan_memory(lifetimes, {.budget = std::chrono::seconds(1)});
}

std::uint64_t FloorOffsets::allocate(std::uint64_t bytes, unsigned alignment_log2) {
    const std::uint64_t alignment = std::max(min_alignment, std::uint64_t{1} << alignment_log2);
    const std::uint64_t needed = align_up(bytes, min_alignment);
    // Tries the smallest free range that is large enough. If the block does not fit there because
    // of its alignment, tries the smallest range that is large enough for any alignment.
    for (const std::uint64_t min_bytes : {needed, needed + alignment - min_alignment}) {
        const auto found = by_size_.lower_bound({min_bytes, 0});
        if (found == by_size_.end()) break;
        const auto [size, begin] = *found;
        const std::uint64_t offset = align_up(begin, alignment);
        if (offset + needed <= begin + size) return cut(begin, size, offset, needed);
    }
    // The last free range may reach to the end.
    std::uint64_t begin = end_;
    if (!free_.empty()) {
        const auto& [last, size] = *free_.rbegin();
        if (last + size == end_) begin = last;
    }
    const std::uint64_t old_end = end_;
    const std::uint64_t offset = align_up(begin, alignment);
    if (offset + needed > Step::max_bytes) {
        throw CommandError(finding, fmt::format("the trace's blocks need {} bytes because of their "
                                                "alignments, expected at most {}",
                                                offset + needed, Step::max_bytes));
    }
    end_ = std::max(end_, offset + needed);
    if (begin < old_end) remove_free(begin, old_end - begin);
    free_.emplace(begin, end_ - begin);
    by_size_.emplace(end_ - begin, begin);
    return cut(begin, end_ - begin, offset, needed);
}

std::uint64_t FloorOffsets::cut(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                                std::uint64_t needed) {
    remove_free(begin, bytes);
    if (offset > begin) add_free(begin, offset - begin);
    const std::uint64_t rest = begin + bytes - (offset + needed);
    if (rest != 0) add_free(offset + needed, rest);
    used_.emplace(offset, needed);
    return offset;
}

void FloorOffsets::deallocate(std::uint64_t offset) {
    const auto used = used_.find(offset);
    add_free(offset, used->second);
    used_.erase(used);
}

void FloorOffsets::add_free(std::uint64_t begin, std::uint64_t bytes) {
    const auto next = free_.lower_bound(begin);
    if (next != free_.end() && begin + bytes == next->first) {
        const std::uint64_t more = next->second;
        remove_free(begin + bytes, more);
        bytes += more;
    }
    auto before = free_.lower_bound(begin);
    if (before != free_.begin()) {
        before = std::prev(before);
        const auto [first, less] = *before;
        if (first + less == begin) {
            remove_free(first, less);
            begin = first;
            bytes += less;
        }
    }
    free_.emplace(begin, bytes);
    by_size_.emplace(bytes, begin);
}

void FloorOffsets::remove_free(std::uint64_t begin, std::uint64_t bytes) {
    free_.erase(begin);
    by_size_.erase({bytes, begin});
}

}  // namespace tensorpool::command::replay

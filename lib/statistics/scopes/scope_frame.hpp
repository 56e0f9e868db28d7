#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "statistics/scopes/thread_sums.hpp"
#include "statistics/segment/segment_layout.hpp"
#include "statistics/segment/slab_list.hpp"

namespace tensorpool::statistics {
class CountersOfThread;
}

namespace tensorpool::detail {

/// An open StatisticsScope. It lies in a list of its thread's, the innermost first, until it ends
/// or the thread does. A frame is looked at under its owner's mutex; without an owner it is the
/// StatisticsScope's alone.
struct ScopeFrame {
    ScopeFrame* outer = nullptr;
    ScopeFrame* next_free = nullptr;
    // nullptr: its thread has gone. Changes under the owner's mutex, to nullptr only.
    std::atomic<statistics::CountersOfThread*> owner = nullptr;
    statistics::ScopeRecord* record = nullptr;  // nullptr: there is no segment
    statistics::ThreadSums begin;
    std::uint64_t begin_net = 0;
    // The most net growth since it began, as far as it was looked at. Only the innermost is looked
    // at: it hands what it saw to the one around it when it ends.
    std::int64_t highest = 0;
    bool left_by_fork = false;  // its thread is not in this process; it is not counted as open

    void raise(std::uint64_t net) noexcept {
        highest = std::max(highest, static_cast<std::int64_t>(net - begin_net));
    }
    /// What another frame saw, inside this one.
    void take_over(const ScopeFrame& inner) noexcept {
        const auto seen = inner.begin_net + static_cast<std::uint64_t>(inner.highest);
        raise(seen);
    }
};

}  // namespace tensorpool::detail

namespace tensorpool::statistics {

using detail::ScopeFrame;

/// Those that no thread keeps.
SlabList<ScopeFrame>& free_scope_frames() noexcept;

}  // namespace tensorpool::statistics

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/segment/slab_list.hpp"

namespace tensorpool::detail {

class BudgetNode;

/// An open StatisticsScope. It is in a list of its thread, innermost first, until the scope or the
/// thread ends. A frame is accessed under its owner's mutex. A frame without an owner is accessed
/// by its StatisticsScope only.
struct ScopeFrame {
    ScopeFrame* outer = nullptr;
    ScopeFrame* next_free = nullptr;
    // nullptr after its thread ended. Changed under the owner's mutex, and only to nullptr.
    std::atomic<statistics::CountersOfThread*> owner = nullptr;
    statistics::ScopeRecord* record = nullptr;  // nullptr if there is no segment
    statistics::ThreadSums begin;
    std::uint64_t begin_net = 0;
    // The highest net growth since the scope began, as far as it was measured. Only the innermost
    // frame is measured: when it ends, it passes its highest growth to the frame around it.
    std::int64_t highest = 0;
    // Used by the thread that began the scope.
    BudgetNode* budget = nullptr;        // that the scope charges, by its name; nullptr for none
    BudgetNode* outer_budget = nullptr;  // that was charged before
    bool left_by_fork = false;  // its thread is not in this process, so it is not counted as open

    void raise(std::uint64_t net) noexcept {
        highest = std::max(highest, static_cast<std::int64_t>(net - begin_net));
    }
    /// Takes over the highest growth of a frame inside this one.
    void take_over(const ScopeFrame& inner) noexcept {
        const auto seen = inner.begin_net + static_cast<std::uint64_t>(inner.highest);
        raise(seen);
    }
};

}  // namespace tensorpool::detail

namespace tensorpool::statistics {

using detail::ScopeFrame;

/// The free frames that no thread keeps.
SlabList<ScopeFrame>& free_scope_frames() noexcept;

}  // namespace tensorpool::statistics

#pragma once

/// @file
/// How long cv::Mat of a ContextMatAllocator live.

#include <cstddef>
#include <string_view>
#include <utility>

#include <opencv2/core.hpp>

#include <tensorpool/context.hpp>

#include "develop/context_mat_allocator.hpp"
#include "develop/mat_lot.hpp"

namespace tensorpool {

/// Ends what the arena gave since it began. Phases nest; they begin and end while no other thread
/// allocates.
class MatPhase {
public:
    MatPhase(ContextMatAllocator& memory, std::string_view name)
        : memory_(memory),
          mark_(memory.context().mark()),
          lot_(name),
          outer_(memory.phase_.exchange(&lot_, std::memory_order_release)) {}
    ~MatPhase() {
        memory_.phase_.store(outer_, std::memory_order_release);
        // With a cv::Mat left, `lot_` stops the program next.
        memory_.context().release_to(mark_);
    }
    MatPhase(const MatPhase&) = delete;
    MatPhase& operator=(const MatPhase&) = delete;

private:
    ContextMatAllocator& memory_;
    std::size_t mark_;
    MatLot lot_;
    MatLot* outer_;
};

/// Inside it this thread's new cv::Mat lie in its scratch, and end with it. Scopes nest.
class MatScope {
public:
    /// An operator of this name, as scratch_report() lists it.
    MatScope(const ContextMatAllocator& memory, std::string_view name)
        : scope_(memory.context().scratch(), name), lot_(name), outer_(enter(&memory)) {}
    /// A part of this thread's innermost MatScope; there must be one.
    MatScope()
        : scope_(innermost().context().scratch()),
          lot_("a part of an operator"),
          outer_(enter(&innermost())) {}
    /// Whether this thread has one.
    static bool is_open() noexcept { return ContextMatAllocator::inside_.memory != nullptr; }
    ~MatScope() { ContextMatAllocator::inside_ = outer_; }
    MatScope(const MatScope&) = delete;
    MatScope& operator=(const MatScope&) = delete;

private:
    using Inside = ContextMatAllocator::Inside;
    static const ContextMatAllocator& innermost() {
        CV_Assert(is_open());
        return *ContextMatAllocator::inside_.memory;
    }
    Inside enter(const ContextMatAllocator* memory) noexcept {
        return std::exchange(ContextMatAllocator::inside_, {memory, &lot_});
    }

    ScratchScope scope_;
    MatLot lot_;
    Inside outer_;
};

}  // namespace tensorpool

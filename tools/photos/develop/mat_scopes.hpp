#pragma once

/// @file
/// The lifetimes of cv::Mat from a ContextMatAllocator.

#include <cstddef>
#include <string_view>
#include <utility>

#include <opencv2/core.hpp>

#include <tensorpool/context.hpp>

#include "develop/context_mat_allocator.hpp"
#include "develop/mat_lot.hpp"

namespace tensorpool {

/// Frees the arena memory allocated since it began. Phases nest. They must begin and end while no
/// other thread allocates.
class MatPhase {
public:
    MatPhase(ContextMatAllocator& memory, std::string_view name)
        : memory_(memory),
          mark_(memory.context().mark()),
          lot_(name),
          outer_(memory.phase_.exchange(&lot_, std::memory_order_release)) {}
    ~MatPhase() {
        memory_.phase_.store(outer_, std::memory_order_release);
        // If a cv::Mat is left, the destructor of `lot_` stops the program next.
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

/// While it exists, new cv::Mat of this thread use its scratch, and end with it. Scopes nest.
class MatScope {
public:
    /// Begins an operator, listed under this name in scratch_report().
    MatScope(const ContextMatAllocator& memory, std::string_view name)
        : scope_(memory.context().scratch(), name), lot_(name), outer_(enter(&memory)) {}
    /// Begins a part of this thread's innermost MatScope, which must exist.
    MatScope()
        : scope_(innermost().context().scratch()),
          lot_("a part of an operator"),
          outer_(enter(&innermost())) {}
    /// Whether this thread has a MatScope.
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

#pragma once

#include <cstddef>

#include "device/caching/free_blocks.hpp"
#include "device/caching/growth.hpp"
#include "device/caching/reclaim.hpp"

namespace tensorpool::device {

/// The steps taken before a request fails, cheapest first. One object serves one request. Each step
/// taken is an entry on the timeline, with the bytes that it freed.
class Pressure {
public:
    Pressure(AllocatorState& state, FreeBlocks& free, Growth& growth, Reclaim& reclaim,
             StreamCache& cache, const Request& request) noexcept
        : state_(state),
          free_(free),
          growth_(growth),
          reclaim_(reclaim),
          cache_(cache),
          request_(request) {}

    /// Returns the outcome of the steps, after the failure `refused`. Throws std::bad_alloc.
    Outcome relieve(const Outcome& refused);

private:
    /// What follows a step: a search of the sets, and a growth if it may help.
    enum class Retry { search, grow, grow_if_freed, grow_if_expandable };
    struct Step {
        std::size_t (Pressure::*take)();
        Retry retry;
    };
    static const Step steps[];

    std::size_t complete();
    std::size_t coalesce();
    std::size_t give_aged_back();
    std::size_t call_back();
    std::size_t give_all_back();
    std::size_t synchronize();
    bool may_grow_after(Retry retry, std::size_t freed) const noexcept;
    bool is_over(bool may_grow);

    AllocatorState& state_;
    FreeBlocks& free_;
    Growth& growth_;
    Reclaim& reclaim_;
    StreamCache& cache_;
    const Request& request_;
    Outcome outcome_;
};

}  // namespace tensorpool::device

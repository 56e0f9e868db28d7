#pragma once

#include <cstddef>

#include <tensorpool/errors.hpp>

namespace tensorpool::detail {

/// Why a request could not be met: the limit in words, such as `max_capacity`, and its size in
/// bytes. In `detail`, for members of public classes are named by it.
struct Refusal {
    const char* limit = "";
    std::size_t limit_bytes = 0;
    /// What the limit would have to be for the request to fit; 0: that would not help, or nobody
    /// knows.
    std::size_t needed_limit = 0;
    /// As in AllocationFailure.
    std::size_t missing = 0;
    const char* advice = "";
    /// Of a pool, under the lock that the refusal held: free whole pages, and the longest run.
    bool knows_free = false;
    std::size_t free_pages = 0;
    std::size_t largest_free = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool::base {

using detail::Refusal;

/// What the error tells of it; the rest only a pool knows.
inline AllocationFailure failure_of(const Refusal& refusal, std::size_t asked, std::size_t in_use,
                                    std::size_t capacity) noexcept {
    return {.asked = asked,
            .in_use = in_use,
            .capacity = capacity,
            .limit = refusal.limit,
            .limit_bytes = refusal.limit_bytes,
            .needed_limit = refusal.needed_limit,
            .missing = refusal.missing,
            .advice = refusal.advice};
}

}  // namespace tensorpool::base

#pragma once

#include <tensorpool/errors.hpp>

namespace tensorpool::detail {

/// Describes why a request could not be met: the name of the limit, such as `max_capacity`, and its
/// size in bytes. It is declared in `detail` because members of public classes use it.
struct Refusal {
    const char* limit = "";
    std::size_t limit_bytes = 0;
    /// The limit with which the request would fit; 0 if a higher limit would not help or the value
    /// is unknown.
    std::size_t needed_limit = 0;
    /// Same meaning as in AllocationFailure.
    std::size_t missing = 0;
    const char* advice = "";
    /// For pools only: free whole pages and the longest run of them, read right after
    /// the request failed.
    bool knows_free = false;
    std::size_t free_pages = 0;
    std::size_t largest_free = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool::base {

using detail::Refusal;

/// Returns what the error reports about `refusal`. A pool adds the remaining fields itself.
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/sequence.hpp"

namespace tensorpool::planned {

/// Records the requests and frees of iterations until enough consecutive ones made the same
/// requests. Not thread-safe.
class Learner {
public:
    /// Identifies a recorded request, so that its free can be recorded too.
    struct Ticket {
        std::uint32_t iteration = 0;  // 0: the request was not recorded
        std::uint32_t request = 0;
    };

    /// Learning takes `iterations` consecutive iterations, at least 1, with the same requests.
    /// Iterations of more than `max_count` requests are discarded.
    explicit Learner(unsigned iterations, std::size_t max_count = max_requests) noexcept
        : wanted_(iterations), max_count_(max_count) {}

    void begin_iteration() noexcept;
    bool is_noting() const noexcept { return noting_; }
    /// Records a request. Requires: an iteration is being recorded, and `bytes` is above 0. Throws
    /// std::bad_alloc.
    Ticket note(std::size_t bytes, std::size_t alignment, std::size_t pool_bytes);
    /// Records the free of a request. Ignores requests of earlier iterations.
    void note_end(Ticket ticket) noexcept;
    /// Ends the iteration. Returns true if enough was learned for a plan.
    bool end_iteration();

    /// Returns the requests learned so far, each with its longest lifetime among the identical
    /// iterations.
    const std::vector<Request>& learned() const noexcept { return learned_; }
    /// Stops recording the current iteration, if any, and discards everything learned.
    void forget() noexcept;

private:
    void merge() noexcept;

    unsigned wanted_;
    std::size_t max_count_;
    unsigned identical_ = 0;  // number of iterations merged in `learned_`
    bool noting_ = false;
    std::uint32_t iteration_ = 0;
    std::vector<Request> learned_;
    std::vector<Request> noted_;
};

}  // namespace tensorpool::planned

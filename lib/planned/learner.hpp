#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planned/sequence.hpp"

namespace tensorpool::planned {

/// Notes what iterations ask for and when they free it, until enough of them in a row were alike.
/// One call at a time.
class Learner {
public:
    /// Of an iteration that is being noted: which one, and its request.
    struct Ticket {
        std::uint32_t iteration = 0;  // 0: of none
        std::uint32_t request = 0;
    };

    /// `iterations`, 1 at least, must be alike, and of `most` requests at most.
    explicit Learner(unsigned iterations, std::size_t most = max_requests) noexcept
        : wanted_(iterations), most_(most) {}

    void begin_iteration() noexcept;
    bool is_noting() const noexcept { return noting_; }
    /// REQUIRES: an iteration is being noted, and `bytes` is above 0. Throws std::bad_alloc.
    Ticket note(std::size_t bytes, std::size_t alignment, std::size_t pool_bytes);
    /// It was freed. Of an earlier iteration: nothing is done.
    void note_end(Ticket ticket) noexcept;
    /// True when what was learned may be planned.
    bool end_iteration();

    /// As far as it was learned; the lifetimes are the longest of all that were alike.
    const std::vector<Request>& learned() const noexcept { return learned_; }
    /// Ends the iteration that is being noted, if any, and forgets everything.
    void forget() noexcept;

private:
    void merge() noexcept;

    unsigned wanted_;
    std::size_t most_;
    unsigned alike_ = 0;  // iterations that `learned_` stands for
    bool noting_ = false;
    std::uint32_t iteration_ = 0;
    std::vector<Request> learned_;
    std::vector<Request> noted_;
};

}  // namespace tensorpool::planned

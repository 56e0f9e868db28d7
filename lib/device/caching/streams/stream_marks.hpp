#pragma once

#include <cstdint>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// How far one stream has come, as far as anybody asked: what tells free memory that no work uses
/// from memory that its stream may be using still. Under the allocator's lock.
///
/// Blocks that come into the sets are stamped with the number of the next mark. A mark is an event
/// recorded on the stream: when it is reached, so is all that the stream was given for blocks with
/// stamps up to its number.
class StreamMarks {
public:
    std::uint64_t stamp() const noexcept { return next_; }
    bool has_passed(std::uint64_t stamp) const noexcept { return stamp <= passed_; }

    /// The stream has done all that it was given so far.
    void pass_all() noexcept { passed_ = next_++; }
    /// Somebody is about to wait for all that the stream was given so far, and then says `pass`.
    std::uint64_t begin_wait() noexcept { return next_++; }
    void pass(std::uint64_t number) noexcept {
        if (passed_ < number) passed_ = number;
    }
    bool is_waiting() const noexcept { return event_ != nullptr; }
    /// An event that has just been recorded on the stream.
    void wait_for(EventHandle event) noexcept {
        event_ = event;
        waiting_for_ = next_++;
    }
    EventHandle event() const noexcept { return event_; }
    /// The event was reached, or the stream has done everything; it is the caller's again.
    EventHandle reach() noexcept {
        pass(waiting_for_);
        const EventHandle event = event_;
        event_ = nullptr;
        return event;
    }

private:
    std::uint64_t next_ = 1;
    std::uint64_t passed_ = 0;
    std::uint64_t waiting_for_ = 0;
    EventHandle event_ = nullptr;
};

/// The stamp of memory that no work has used, or none that is under way.
inline constexpr std::uint64_t idle_stamp = 0;

}  // namespace tensorpool::device

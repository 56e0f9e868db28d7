#pragma once

#include <cstdint>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// How far one stream is known to have progressed. This distinguishes free memory that no work uses
/// from memory that its stream may still be using. Guarded by the allocator's lock.
///
/// Blocks inserted into the sets are stamped with the number of the next mark. A mark is an event
/// recorded on the stream. When it is reached, all work submitted for blocks with stamps up to its
/// number is done.
class StreamMarks {
public:
    std::uint64_t stamp() const noexcept { return next_; }
    bool has_passed(std::uint64_t stamp) const noexcept { return stamp <= passed_; }

    /// The stream has done all work submitted so far.
    void pass_all() noexcept { passed_ = next_++; }
    /// The caller is about to wait for all work submitted so far, and calls `pass` after that.
    std::uint64_t begin_wait() noexcept { return next_++; }
    void pass(std::uint64_t number) noexcept {
        if (passed_ < number) passed_ = number;
    }
    bool is_waiting() const noexcept { return event_ != nullptr; }
    /// Sets an event that was just recorded on the stream.
    void wait_for(EventHandle event) noexcept {
        event_ = event;
        waiting_for_ = next_++;
    }
    EventHandle event() const noexcept { return event_; }
    /// The event was reached, or the stream has done all work. Returns the event to the caller.
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

/// The stamp of memory that no pending work uses.
inline constexpr std::uint64_t idle_stamp = 0;

}  // namespace tensorpool::device

#include "events/recorder_hooks.hpp"

namespace tensorpool::events {
namespace {

// Makes each process read its environment once.
constinit const std::atomic<std::uint64_t> look_at_environment = 1;

// Used while no other process can make requests.
constinit std::atomic<std::uint32_t> own_wake = 0;
constinit const std::atomic<std::uint64_t> no_requests = 0;
constinit const std::atomic<std::uint32_t> no_mark = 1;

void look_at(const std::atomic<std::uint64_t>& requests) noexcept {
    recorder_hooks.answered.store(0, std::memory_order_relaxed);
    recorder_hooks.wake.store(&own_wake, std::memory_order_relaxed);
    recorder_hooks.asked.store(&requests, std::memory_order_release);
    // Last: until then, the other words may lead to memory that this process lacks.
    recorder_hooks.mark.store(&no_mark, std::memory_order_release);
}

}  // namespace

constinit RecorderHooks recorder_hooks{
    .asked = &look_at_environment, .mark = &no_mark, .wake = &own_wake};

void look_at_environment_again() noexcept {
    look_at(look_at_environment);
}

void look_at_nothing() noexcept {
    look_at(no_requests);
}

// Two threads may report changes in another order than that in which they made them. The thread
// that reports last then reports the current value, or repeats the report.
void record_capacity(std::uint64_t source, const std::atomic<std::uint64_t>& bytes) noexcept {
    if (!is_recording()) [[likely]]
        return;
    std::uint64_t reported = 0;
    do {
        reported = bytes.load(std::memory_order_relaxed);
        record(TraceAction::capacity, source, nullptr, reported);
    } while (bytes.load(std::memory_order_relaxed) != reported);
}

}  // namespace tensorpool::events

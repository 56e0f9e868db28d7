#pragma once

#include "base/lockable.hpp"
#include "events/recorder_hooks.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

/// The rings of one recording, and which of them are taken. Thread-safe.
class Rings : public RingTables<Rings>, public base::Lockable {
public:
    constexpr Rings() noexcept = default;

    enum class Sharing : bool { no, yes };
    /// Gets memory for a new recording. The memory of the last one stays mapped where threads may
    /// still write into it. Returns false if the system has none.
    [[nodiscard]] bool make(Sharing sharing, const TraceProcess& process) noexcept;
    /// Marks the recording as ended, and gives back the descriptor and the memory. The reader keeps
    /// its own.
    void end() noexcept;
    /// Forgets the rings in the child of a fork, which has no access to them.
    void forget() noexcept {
        platform::close_shared_memory(memory_);
        memory_ = {};
    }

    struct Taken {
        std::size_t ring;
        RingHead* head;  // nullptr: no ring was free
        TraceEntry* entries;
    };
    /// Takes a ring for the calling thread and populates its pages.
    Taken take() noexcept;
    /// Counts a thread that found no ring.
    void count_left_out() noexcept { header().left_out.fetch_add(1, std::memory_order_relaxed); }
    void give_back(std::size_t ring) noexcept {
        const std::lock_guard guard(mutex_);
        taken_[ring / 64] &= ~(std::uint64_t{1} << ring % 64);
    }

    void name(TraceSource kind, std::uint64_t source, std::string_view name) noexcept;
    /// Returns the number of a module, from 1; 0 if there is no room for it.
    std::uint64_t number_of_module(std::string_view path) noexcept;

    void* memory() const noexcept { return memory_.address; }
    bool is_made() const noexcept { return memory_.address != nullptr; }
    int file() const noexcept { return memory_.file; }

private:
    std::uint16_t add_module(std::string_view path) noexcept;

    platform::SharedMemory memory_;
    // Under mutex_. A bit for each ring that a thread has taken.
    std::uint64_t taken_[ring_count / 64] = {};
    // Numbers of modules, by the hash of the path and from there on; 0: free. Half of it stays
    // free.
    std::uint16_t module_numbers_[2 * module_count] = {};
};

/// The state that recording threads share: the rings, their target, and the number of the
/// recording. The recorder changes it; a recording thread reads it on its slow path.
struct Recording {
    enum class Target : std::uint8_t { none, file, reader };

    Rings rings;
    /// Counts recordings; 0: there was none yet. Each ring of a thread belongs to one recording.
    std::atomic<std::uint64_t> number = 0;
    std::atomic<Target> target = Target::none;
    std::atomic<Control*> control = nullptr;

    Target target_now() const noexcept { return target.load(std::memory_order_relaxed); }
};

/// Ends a recording if the reader is gone or the file accepts no more data. Calls stop recording at
/// once. Everything else follows on the next slow path, because the caller may hold locks.
inline void give_up_recording() noexcept {
    auto& hooks = events::recorder_hooks;
    hooks.record.store(nullptr, std::memory_order_relaxed);
    // No real number of requests reaches this value.
    hooks.answered.store(UINT64_MAX, std::memory_order_relaxed);
}

}  // namespace tensorpool::trace

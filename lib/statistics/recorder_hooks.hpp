#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tensorpool/trace_format.hpp>

namespace tensorpool::statistics {

/// What a recorder of calls sets, and what pools, arenas, scratches and device allocators look at.
/// The layer `trace` implements it.
///
/// While nobody records, calls that take no slow path see nothing of this. While somebody does, all
/// take it: caches and arenas hide what their inline paths need.
struct RecorderHooks {
    using Record = void (*)(TraceAction action, std::uint64_t source, const void* address,
                            std::size_t bytes, std::size_t alignment) noexcept;
    using Name = void (*)(TraceSource kind, std::uint64_t source, std::string_view name) noexcept;
    /// Null: nobody records.
    std::atomic<Record> record = nullptr;
    /// Told of pools, arenas, scratches, device allocators and scopes that come to be while
    /// somebody records.
    std::atomic<Name> name = nullptr;

    /// What this process or another one asks for: to record, to end that, or to trim all pools (see
    /// trace/ring_layout.hpp for the bits). `answered` is what it was when a thread last answered.
    /// The first slow path of a process finds them different.
    std::atomic<const std::atomic<std::uint64_t>*> asked = nullptr;
    std::atomic<std::uint64_t> answered = 0;

    /// What the background trimmer waits on. A request wakes it, of this process or another one.
    std::atomic<std::atomic<std::uint32_t>*> wake = nullptr;
};

extern constinit RecorderHooks recorder_hooks;

/// For the child of a fork: its next slow path is again its first.
void look_at_environment_again() noexcept;

/// Begins to record, or ends it. Takes locks of its own, and all others after them; called with
/// none held.
void answer_recorder() noexcept;

/// Whether something is asked for that no thread has begun to answer.
inline bool is_answer_due() noexcept {
    const std::uint64_t asked =
        recorder_hooks.asked.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
    return asked != recorder_hooks.answered.load(std::memory_order_relaxed);
}

/// For slow paths, before anything else: three loads.
inline void look_for_recorder() noexcept {
    if (is_answer_due()) [[unlikely]]
        answer_recorder();
}

inline bool is_recording() noexcept {
    return recorder_hooks.record.load(std::memory_order_relaxed) != nullptr;
}

/// Tells a recorder, if there is one. What comes to be is told after it did, and what goes before
/// it does: so the order of times is that of lives.
inline void record(TraceAction action, std::uint64_t source, const void* address, std::size_t bytes,
                   std::size_t alignment = 1) noexcept {
    if (const auto told = recorder_hooks.record.load(std::memory_order_acquire)) [[unlikely]]
        told(action, source, address, bytes, alignment);
}

/// Tells it what a number stands for, before any call is told of that.
inline void name_source(TraceSource kind, std::uint64_t source, std::string_view name) noexcept {
    if (const auto told = recorder_hooks.name.load(std::memory_order_acquire)) [[unlikely]]
        told(kind, source, name);
}

/// As `record`, for a place in an arena that begins at `base`.
inline void record_place(TraceAction action, std::uint64_t source, const std::byte* base,
                         std::size_t offset) noexcept {
    record(action, source, base + offset, reinterpret_cast<std::uintptr_t>(base));
}

/// As `record`, for a place in a scratch, whose chunks lie anywhere.
inline void record_offset(TraceAction action, std::uint64_t source, std::size_t offset) noexcept {
    record(action, source, reinterpret_cast<const void*>(offset), 0);
}

/// As `record`, of a block that a device's allocator made for work on the stream of this handle.
inline void record_device_block(std::uint64_t source, const void* stream, const void* address,
                                std::size_t bytes) noexcept {
    if (!is_recording()) [[likely]]
        return;
    if (stream != nullptr) record(TraceAction::stream, source, stream, 0);
    record(TraceAction::allocate, source, address, bytes);
}

}  // namespace tensorpool::statistics

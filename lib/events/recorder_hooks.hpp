#pragma once

#include <atomic>
#include <string_view>

#include <tensorpool/trace_format.hpp>

namespace tensorpool::events {

/// The interface between a recorder of calls, which sets these hooks, and the pools, arenas,
/// scratches and device allocators that read them. The layer `trace` implements it.
///
/// While no recording is active, fast paths do not read the hooks. During a recording all calls
/// take the slow path: caches and arenas hide what their inline paths need.
struct RecorderHooks {
    using Record = void (*)(TraceAction action, std::uint64_t source, const void* address,
                            std::size_t bytes, std::size_t alignment) noexcept;
    using Name = void (*)(TraceSource kind, std::uint64_t source, std::string_view name) noexcept;
    /// Null while no recording is active.
    std::atomic<Record> record = nullptr;
    /// Called for pools, arenas, scratches, device allocators and scopes that are created during a
    /// recording.
    std::atomic<Name> name = nullptr;

    /// What this process or another one requests: to record, to stop recording, or to trim all
    /// pools (see trace/ring_layout.hpp for the bits). `answered` is the value of the last request
    /// that a thread handled. On the first slow path of a process the two differ.
    std::atomic<const std::atomic<std::uint64_t>*> asked = nullptr;
    std::atomic<std::uint64_t> answered = 0;

    /// Leads to 0 in a child that was made without the handlers of a fork (platform/platform.hpp),
    /// which lacks the memory that `asked` and `wake` point to.
    std::atomic<const std::atomic<std::uint32_t>*> mark = nullptr;

    /// The background trimmer waits on this word. A request of this or another process wakes it.
    std::atomic<std::atomic<std::uint32_t>*> wake = nullptr;
};

extern constinit RecorderHooks recorder_hooks;

/// Called in the child of a fork, whose next slow path then reads the environment again.
void look_at_environment_again() noexcept;
/// Called in a child that was made without the handlers of a fork: it gets no requests any more.
void look_at_nothing() noexcept;

/// Starts or stops recording as requested. Acquires locks of its own, and other locks after them.
/// REQUIRES: the caller holds none.
void answer_recorder() noexcept;

/// Returns whether this process is a child that was made without the handlers of a fork, and has
/// not been noticed yet.
inline bool is_unnoticed_child() noexcept {
    return recorder_hooks.mark.load(std::memory_order_acquire)->load(std::memory_order_relaxed) ==
           0;
}

/// Returns whether there is a request that no thread has begun to handle, or whether
/// `answer_recorder` has to notice that this process is a child.
inline bool is_answer_due() noexcept {
    if (is_unnoticed_child()) [[unlikely]]
        return true;
    const std::uint64_t asked =
        recorder_hooks.asked.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
    return asked != recorder_hooks.answered.load(std::memory_order_relaxed);
}

/// Handles requests. Called at the beginning of slow paths; costs five loads.
inline void look_for_recorder() noexcept {
    if (is_answer_due()) [[unlikely]]
        answer_recorder();
}

inline bool is_recording() noexcept {
    return recorder_hooks.record.load(std::memory_order_relaxed) != nullptr;
}

/// Reports an event to the recorder, if there is one. An object's creation is reported after it
/// happened and its destruction before it happens, so the order of times is that of lifetimes.
inline void record(TraceAction action, std::uint64_t source, const void* address, std::size_t bytes,
                   std::size_t alignment = 1) noexcept {
    if (const auto report = recorder_hooks.record.load(std::memory_order_acquire)) [[unlikely]]
        report(action, source, address, bytes, alignment);
}

/// Reports what a number stands for, before any call with that number is reported.
inline void name_source(TraceSource kind, std::uint64_t source, std::string_view name) noexcept {
    if (const auto report = recorder_hooks.name.load(std::memory_order_acquire)) [[unlikely]]
        report(kind, source, name);
}

/// Reports the bytes that an object holds, used or not. Called after each change, and once when a
/// recorder starts.
void record_capacity(std::uint64_t source, const std::atomic<std::uint64_t>& bytes) noexcept;

/// Reports an event at a position in an arena that begins at `base`.
inline void record_place(TraceAction action, std::uint64_t source, const std::byte* base,
                         std::size_t offset) noexcept {
    record(action, source, base + offset, reinterpret_cast<std::uintptr_t>(base));
}

/// Reports an event at an offset in a scratch, whose chunks have unrelated addresses.
inline void record_offset(TraceAction action, std::uint64_t source, std::size_t offset) noexcept {
    record(action, source, reinterpret_cast<const void*>(offset), 0);
}

/// Reports a block that a device allocator allocated for work on the stream of this handle.
inline void record_device_block(std::uint64_t source, const void* stream, const void* address,
                                std::size_t bytes) noexcept {
    if (!is_recording()) [[likely]]
        return;
    if (stream != nullptr) record(TraceAction::stream, source, stream, 0);
    record(TraceAction::allocate, source, address, bytes);
}

}  // namespace tensorpool::events

#pragma once

#include <mutex>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

inline constexpr std::uintptr_t handle_of_default = 1;     // of the default stream
inline constexpr std::uintptr_t handle_of_own_stream = 2;  // of the calling thread's default stream
// The lowest bits of keys of threads. Handles are addresses, which are aligned, or the two above.
inline constexpr std::uintptr_t thread_bits = 3;

inline bool is_of_thread(StreamHandle key) noexcept {
    return (reinterpret_cast<std::uintptr_t>(key) & thread_bits) == thread_bits;
}

/// The key of a thread's default stream. Links itself into the list of living threads.
class ThreadKey {
public:
    ThreadKey() noexcept {
        const std::lock_guard guard(mutex);
        number_ = ++last_number;
        next_ = living;
        living = this;
    }
    ~ThreadKey() {
        const std::lock_guard guard(mutex);
        ThreadKey** link = &living;
        while (*link != this) link = &(*link)->next_;
        *link = next_;
    }
    ThreadKey(const ThreadKey&) = delete;
    ThreadKey& operator=(const ThreadKey&) = delete;

    StreamHandle key() const noexcept {
        return reinterpret_cast<StreamHandle>(number_ << 2 | thread_bits);
    }
    static bool is_living(StreamHandle key) noexcept {
        const std::lock_guard guard(mutex);
        const ThreadKey* one = living;
        while (one != nullptr && one->key() != key) one = one->next_;
        return one != nullptr;
    }
    static StreamHandle own() noexcept {
        thread_local const ThreadKey own;
        return own.key();
    }

private:
    static inline constinit std::mutex mutex;
    // Guarded by `mutex`:
    static inline constinit ThreadKey* living = nullptr;
    static inline constinit std::uintptr_t last_number = 0;

    std::uintptr_t number_;
    ThreadKey* next_;
};

/// The calls to a backend about streams, by key.
///
/// A stream's key is its handle, except where handles name a stream indirectly
/// (`DeviceAbilities::names_default_streams`): the default stream always has the key nullptr, and
/// the default stream of each thread has a key that no other thread ever has. Source: issues 535
/// and 582 of RMM.
///
/// A stream that the program made itself may be asked for only during a call for it: its owner may
/// have destroyed it since, and the driver may crash then. Source: issue 510 of RMM.
class StreamCalls {
public:
    StreamCalls(Backend& backend, int device) noexcept
        : backend_(backend),
          device_(device),
          names_default_streams_(backend.abilities(device).names_default_streams),
          captures_under_way_(backend.captures_under_way()) {}

    StreamHandle key_of(StreamHandle handle) const noexcept {
        const auto number = reinterpret_cast<std::uintptr_t>(handle);
        // 0 wraps around, so one comparison finds the handles 1 and 2.
        return number - 1 > 1 || !names_default_streams_ ? handle : key_of_default(number);
    }
    /// Whether the key is that of a thread's default stream, and the thread has ended.
    static bool is_of_ended_thread(StreamHandle key) noexcept {
        return is_of_thread(key) && !ThreadKey::is_living(key);
    }
    /// Whether the key is that of another thread's default stream, which the calling thread cannot
    /// name: a call would mean its own.
    static bool is_of_other_thread(StreamHandle key) noexcept {
        return is_of_thread(key) && key != ThreadKey::own();
    }
    /// Whether the stream may be asked at any time, by the calling thread.
    bool may_ask(StreamHandle key) const noexcept {
        return is_of_thread(key) ? key == ThreadKey::own() : backend_.owns_stream(device_, key);
    }

    // REQUIRES, for the functions below: the stream may be asked, or the caller names it.

    /// The handle that names the stream on the calling thread.
    static StreamHandle handle_of(StreamHandle key) noexcept {
        return is_of_thread(key) ? reinterpret_cast<StreamHandle>(handle_of_own_stream) : key;
    }
    /// Returns the number of the capture that the stream is part of, or 0.
    std::uint64_t capture_of(StreamHandle key) const noexcept {
        CaptureState state;
        const DeviceStatus status = backend_.capture_state(device_, handle_of(key), state);
        return status == DeviceStatus::ok && state.capturing ? state.id : 0;
    }
    /// Whether the stream is being captured into a graph. Such a stream may not be queried, and an
    /// event recorded on it would become part of the graph.
    bool is_captured(StreamHandle key) const noexcept {
        // The default stream is never captured. Where programs can use streams without the backend,
        // as with CUDA, they can also capture them without it.
        const bool is_known_to_be_free = captures_under_way_.load(std::memory_order_relaxed) == 0 &&
                                         (key == nullptr || !names_default_streams_);
        return !is_known_to_be_free && capture_of(key) != 0;
    }
    /// Returns a number that no other stream ever has, even under the same handle; 0 if unknown.
    std::uint64_t id_of(StreamHandle key) const noexcept {
        std::uint64_t id = 0;
        const DeviceStatus status = backend_.stream_id(device_, handle_of(key), &id);
        return status == DeviceStatus::ok ? id : 0;
    }
    DeviceStatus query(StreamHandle key) const noexcept {
        return backend_.query_stream(device_, handle_of(key));
    }
    DeviceStatus record(EventHandle event, StreamHandle key) const noexcept {
        return backend_.record_event(device_, event, handle_of(key));
    }
    DeviceStatus synchronize(StreamHandle key) const noexcept {
        return backend_.synchronize_stream(device_, handle_of(key));
    }

private:
    [[gnu::noinline]] static StreamHandle key_of_default(std::uintptr_t number) noexcept {
        return number == handle_of_default ? nullptr : ThreadKey::own();
    }

    Backend& backend_;
    const int device_;
    const bool names_default_streams_;
    const std::atomic<unsigned>& captures_under_way_;
};

}  // namespace tensorpool::device

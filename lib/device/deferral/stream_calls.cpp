#include "device/deferral/stream_calls.hpp"

#include <mutex>

namespace tensorpool::device {
namespace {

constexpr std::uintptr_t handle_of_default = 1;     // of the default stream
constexpr std::uintptr_t handle_of_own_stream = 2;  // of the calling thread's default stream
// The lowest bits of keys of threads. Handles are addresses, which are aligned, or the two above.
constexpr std::uintptr_t thread_bits = 3;

bool is_of_thread(StreamHandle key) noexcept {
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

}  // namespace

StreamCalls::StreamCalls(Backend& backend, int device) noexcept
    : backend_(backend),
      device_(device),
      names_default_streams_(backend.abilities(device).names_default_streams),
      captures_under_way_(backend.captures_under_way()) {}

StreamHandle StreamCalls::key_of_default(std::uintptr_t number) noexcept {
    return number == handle_of_default ? nullptr : ThreadKey::own();
}

bool StreamCalls::is_of_ended_thread(StreamHandle key) noexcept {
    return is_of_thread(key) && !ThreadKey::is_living(key);
}

bool StreamCalls::is_of_other_thread(StreamHandle key) noexcept {
    return is_of_thread(key) && key != ThreadKey::own();
}

bool StreamCalls::may_ask(StreamHandle key) const noexcept {
    return is_of_thread(key) ? key == ThreadKey::own() : backend_.owns_stream(device_, key);
}

StreamHandle StreamCalls::handle_of(StreamHandle key) noexcept {
    return is_of_thread(key) ? reinterpret_cast<StreamHandle>(handle_of_own_stream) : key;
}

std::uint64_t StreamCalls::capture_of(StreamHandle key) const noexcept {
    CaptureState state;
    const DeviceStatus status = backend_.capture_state(device_, handle_of(key), state);
    return status == DeviceStatus::ok && state.capturing ? state.id : 0;
}

bool StreamCalls::is_captured(StreamHandle key) const noexcept {
    // The default stream is never captured. Where programs can use streams without the backend, as
    // with CUDA, they can also capture them without it.
    const bool is_known_to_be_free = captures_under_way_.load(std::memory_order_relaxed) == 0 &&
                                     (key == nullptr || !names_default_streams_);
    return !is_known_to_be_free && capture_of(key) != 0;
}

std::uint64_t StreamCalls::id_of(StreamHandle key) const noexcept {
    std::uint64_t id = 0;
    const DeviceStatus status = backend_.stream_id(device_, handle_of(key), &id);
    return status == DeviceStatus::ok ? id : 0;
}

DeviceStatus StreamCalls::query(StreamHandle key) const noexcept {
    return backend_.query_stream(device_, handle_of(key));
}

DeviceStatus StreamCalls::record(EventHandle event, StreamHandle key) const noexcept {
    return backend_.record_event(device_, event, handle_of(key));
}

DeviceStatus StreamCalls::synchronize(StreamHandle key) const noexcept {
    return backend_.synchronize_stream(device_, handle_of(key));
}

}  // namespace tensorpool::device

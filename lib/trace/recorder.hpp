#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "platform/platform.hpp"
#include "statistics/recorder_hooks.hpp"
#include "trace/recording.hpp"
#include "trace/ring_writer.hpp"
#include "trace/trace_file.hpp"

namespace tensorpool::trace {

/// Records the calls of this process when somebody asks for it:
///  - `TENSORPOOL_TRACE=<path>`: from the first call on, into that file. The thread whose ring is
///    full writes it out.
///  - `TENSORPOOL_TRACE=observer`: from the first call on, into rings that the observer reads.
///  - another process, through the control: into rings that it reads. A full ring drops and counts.
///
/// Whoever made `TENSORPOOL_OBSERVER` gets the descriptors of segment, control and rings, so that
/// it can read them when the process is gone. A request is seen by the first thread that takes a
/// slow path, or by the background trimmer where that runs, and from then on holds for all.
class Recorder {
public:
    constexpr Recorder() noexcept = default;
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Sees what is wanted, and does it.
    void answer() noexcept;
    /// Puts one entry into the calling thread's ring: what the hook calls, with nothing between.
    static void record(TraceAction action, std::uint64_t source, const void* address,
                       std::size_t bytes, std::size_t alignment) noexcept;
    void name(TraceSource kind, std::uint64_t source, std::string_view name) noexcept;
    /// At exit: what is in the rings goes into the file.
    void finish() noexcept;
    /// The calling thread gives its ring to the next.
    void end_thread() noexcept;

    // A fork takes first what an answer holds and last what each call may take.
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;
    void lock_rings() noexcept;
    void unlock_rings() noexcept;
    void forget_rings() noexcept;

    /// Asks to be told of forks and of the end of threads; called while the library is loaded.
    /// False while another thread does.
    bool set_handlers() noexcept;

private:
    void trim(std::uint32_t request) noexcept;

    using Target = Recording::Target;

    // All under mutex_.
    std::uint32_t answer_under_lock() noexcept;
    void change_recording(std::uint64_t asked) noexcept;
    void look_at_environment() noexcept;
    bool begin(Target target, bool from_start) noexcept;
    void end() noexcept;
    void end_given_up() noexcept;
    void name_everything() noexcept;
    void tell_capacities() noexcept;
    void hide_quick_paths() noexcept;
    void show_quick_paths() noexcept;
    void share_control() noexcept;
    Control* make_private_control() noexcept;
    void hand_over() noexcept;

    // Before any other lock: a fork takes it first, so its handlers are set when all others are.
    enum class Handlers : std::uint8_t { none, being_set, set };
    std::atomic<Handlers> handlers_ = Handlers::none;
    std::mutex mutex_;
    std::atomic<unsigned> forks_ = 0;  // under way, or about to be
    Recording recording_;
    // Of an answer to a request to trim. A fork takes it last: an answer is given with other locks
    // held that a fork waits for.
    std::mutex trims_mutex_;
    TraceFile file_{recording_};
    RingWriter writer_{recording_, file_};
    // Below: under mutex_.
    platform::SharedMemory control_memory_;
    bool looked_ = false;
    std::uint64_t answered_ = 0;  // as the hook's, which is another once a recording was given up
};

Recorder& recorder() noexcept;

}  // namespace tensorpool::trace

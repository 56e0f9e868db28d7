#pragma once

#include <tensorpool/holder_request.hpp>

#include "base/never_destroyed.hpp"
#include "trace/ring_writer.hpp"

namespace tensorpool::trace {

/// The name of the memory file with an answer, and what precedes the text in it.
inline constexpr const char* holders_file = "tensorpool-holders";
struct HoldersHeader {
    std::uint64_t magic;
    std::uint64_t process;  // the owner: its number in its own name space
    std::uint64_t request;  // the answered one
    std::uint64_t bytes;    // of the text
};
inline constexpr std::uint64_t holders_magic = 0x73646c6f68707465;  // "etpholds" in memory

/// Passes requests to name holders on to the handler of this process. Keeps the last answer in a
/// memory file, which other processes read. REQUIRES: the caller holds the recorder's lock of
/// answers, so that no handler runs after it was removed.
class HolderAnswers {
public:
    constexpr HolderAnswers() noexcept = default;
    HolderAnswers(const HolderAnswers&) = delete;
    HolderAnswers& operator=(const HolderAnswers&) = delete;

    void set_handler(HolderHandler handler) noexcept { handler_ = handler; }
    /// Passes a new request on. Without a handler, answers it with an empty text.
    void look(Control& control) noexcept;
    void answer(Control& control, std::uint64_t request, std::string_view text) noexcept;

    /// Called in the child of a fork: closes the parent's answer.
    void forget() noexcept {
        platform::close_shared_memory(file_);
        file_ = {};
        passed_on_ = 0;
    }

private:
    void publish(Control& control, std::uint64_t request, std::string_view text) noexcept;

    HolderHandler handler_ = nullptr;
    std::uint64_t passed_on_ = 0;  // the last request
    platform::SharedMemory file_;  // no longer mapped
};

/// Records the calls of this process on request:
///  - `TENSORPOOL_TRACE=<path>` records from the first call into that file. A thread whose ring is
///    full writes it out.
///  - `TENSORPOOL_TRACE=observer` records from the first call into rings that the observer reads.
///  - Another process requests a recording through the control, and reads the rings. A full ring
///    drops entries and counts them.
///
/// The process behind `TENSORPOOL_OBSERVER` receives the descriptors of the segment, the control
/// and the rings, so that it can read them after this process has ended. The first thread that
/// takes a slow path sees a request, or the background trimmer if it runs; it then applies to all
/// threads.
class Recorder {
public:
    constexpr Recorder() noexcept = default;

    /// Checks for requests and carries them out.
    void answer() noexcept;
    /// Puts one entry into the calling thread's ring. The hook calls it directly.
    static void record(TraceAction action, std::uint64_t source, const void* address,
                       std::size_t bytes, std::size_t alignment) noexcept;
    void name(TraceSource kind, std::uint64_t source, std::string_view name) noexcept {
        recording_.rings.name(kind, source, name);
    }
    /// Writes the content of the rings into the file, at exit.
    void finish() noexcept {
        // The file and the rings are its parent's, and a thread of the parent may have held the
        // lock.
        if (events::is_unnoticed_child()) return;
        const std::lock_guard guard(mutex_);
        if (recording_.target_now() == Target::file && file_.is_open()) file_.finish();
    }
    void set_holder_handler(HolderHandler handler) noexcept {
        const std::lock_guard guard(answers_mutex_);
        holder_answers_.set_handler(handler);
    }
    void answer_holders(std::uint64_t request, std::string_view text) noexcept {
        Control* const control = recording_.control.load(std::memory_order_acquire);
        const std::lock_guard guard(answers_mutex_);
        if (control != nullptr) holder_answers_.answer(*control, request, text);
    }
    /// Makes the calling thread's ring available to another thread.
    void end_thread() noexcept { writer_.end_thread(); }

    // A fork takes the lock of an answer first, and the locks that any recorded call may take last.
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;
    void lock_rings() noexcept {
        answers_mutex_.lock();
        file_.lock();
        recording_.rings.lock();
    }
    void unlock_rings() noexcept {
        recording_.rings.unlock();
        file_.unlock();
        answers_mutex_.unlock();
    }
    void forget_rings() noexcept;

    /// Registers the handlers for forks and for the end of threads. Called while the library is
    /// loaded. Returns false while another thread registers them.
    bool set_handlers() noexcept;

private:
    void answer_requests() noexcept;
    void trim(Control& control, std::uint64_t request) noexcept;
    void part_from_parent() noexcept;

    using Target = Recording::Target;

    // All of these require mutex_.
    bool answer_under_lock() noexcept;
    void change_recording(std::uint64_t asked) noexcept {
        const bool wanted = asked % 2 != 0;
        if (!wanted && recording_.target_now() == Target::reader) end();
        if (wanted && recording_.target_now() == Target::none) (void)begin(Target::reader, false);
    }
    void look_at_environment() noexcept;
    bool begin(Target target, bool from_start) noexcept;
    void end() noexcept;
    void end_given_up() noexcept;
    void record_capacities() noexcept;
    void show_quick_paths() noexcept;
    void share_control() noexcept;
    void mark_process() noexcept;
    void keep_from_children(Control& control) noexcept;
    Control* make_private_control() noexcept;
    void hand_over() noexcept;

    // Set before any other lock is taken. A fork takes it first, since its handlers come first in
    // the order of the list.
    enum class Handlers : std::uint8_t { none, being_set, set };
    std::atomic<Handlers> handlers_ = Handlers::none;
    std::mutex mutex_;
    std::atomic<unsigned> forks_ = 0;  // in progress or about to begin
    Recording recording_;
    // Guards the answers to requests: to trim, and for holders. A fork takes it last, because an
    // answer may be given while the thread holds other locks that a fork waits for.
    std::mutex answers_mutex_;
    HolderAnswers holder_answers_;
    TraceFile file_{recording_};
    RingWriter writer_{recording_, file_};
    // The members below require mutex_.
    platform::SharedMemory control_memory_;
    std::atomic<std::uint32_t>* mark_ = nullptr;  // made once
    bool looked_ = false;
    std::uint64_t answered_ = 0;  // the hook holds another value after a recording was given up
};

inline Recorder& recorder() noexcept {
    return base::the_only<Recorder>.get();
}

}  // namespace tensorpool::trace

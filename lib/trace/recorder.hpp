#pragma once

#include <tensorpool/holder_request.hpp>

#include "arena/arena_state.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/pool.hpp"
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

/// Returns the open file. Its header is empty if there was no memory.
inline platform::SharedMemory share(std::uint64_t request, std::string_view text) noexcept {
    const std::size_t bytes = sizeof(HoldersHeader) + text.size();
    platform::SharedMemory file = platform::share_memory(holders_file, bytes);
    void* const address = std::exchange(file.address, nullptr);
    if (address == nullptr) return file;
    if (platform::get_shared_pages(address, bytes)) {
        const HoldersHeader header{.magic = holders_magic,
                                   .process = platform::identify_process().number,
                                   .request = request,
                                   .bytes = text.size()};
        std::memcpy(address, &header, sizeof header);
        text.copy(static_cast<char*>(address) + sizeof header, text.size());  // may have no data
    }
    platform::unmap(address, bytes);
    return file;
}

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
    void look(Control& control) noexcept {
        const std::uint64_t request = control.holders_asked.load(relaxed);
        if (request == control.holders.load(relaxed) || request == passed_on_) return;
        passed_on_ = request;
        if (handler_ != nullptr) return handler_(request);
        publish(control, request, {});
    }
    // After a fork, the handler of the child may still answer a request to the parent.
    void answer(Control& control, std::uint64_t request, std::string_view text) noexcept {
        if (request > passed_on_ || request <= control.holders.load(relaxed)) return;
        publish(control, request, text);
    }

    /// Called in the child of a fork: closes the parent's answer.
    void forget() noexcept {
        platform::close_shared_memory(file_);
        file_ = {};
        passed_on_ = 0;
    }

private:
    // The former answer is closed last, so that a reader that finds neither sees a new number.
    void publish(Control& control, std::uint64_t request, std::string_view text) noexcept {
        const platform::SharedMemory former = std::exchange(file_, share(request, text));
        control.holders.store(request, std::memory_order_release);
        platform::close_shared_memory(former);
    }

    HolderHandler handler_ = nullptr;
    std::uint64_t passed_on_ = 0;  // the last request
    platform::SharedMemory file_;  // no longer mapped
};

// Stands for the word of requests if no other process can reach this one.
inline constinit const Counter no_requests = 0;

// Set by the thread that notices that it runs in a child.
inline constinit std::atomic<bool> has_parted = false;

// Set while the calling thread answers. Its own allocations, in a C library whose malloc a pool
// serves, then do not start another answer.
inline constinit thread_local bool is_answering TENSORPOOL_INITIAL_EXEC = false;

inline void hide_quick_paths() noexcept {
    blocks::thread_registry().hide_caches();
    arena::arena_registry().show_quick_paths(false);
    arena::scratch_registry().show_quick_paths(false);
}

/// Returns the name of the list of records, such as "scratches", that shows this one.
inline std::string_view list_of(const statistics::RecordKind& kind,
                                const statistics::Counter* record) noexcept {
    if (&kind == &statistics::PoolRecord::layout) return "pools";
    if (kind.table == nullptr) return "";
    const statistics::RecordTable& table = *kind.table;
    const bool is_apart =
        !table.apart.empty() && statistics::choice_of(table, record) + 1 ==
                                    statistics::count_of_values(table.choice.values);
    return is_apart ? table.apart : table.name;
}

/// Calls `function` with each record that a trace refers to: with its kind of source, its number,
/// its kind and itself.
template <class Function>
void for_each_source(Function function) noexcept {
    static constexpr std::pair<std::string_view, TraceSource> sources[] = {
        {"pools", TraceSource::pool},        {"arenas", TraceSource::arena},
        {"scratches", TraceSource::scratch}, {"devices", TraceSource::device},
        {"planned", TraceSource::planned},   {"scopes", TraceSource::scope}};
    statistics::segment().for_each_record(
        [&](const statistics::RecordKind& kind, const statistics::Counter* record) {
            const std::uint64_t id = record[kind.id / sizeof *record].load(relaxed);
            const std::string_view list = list_of(kind, record);
            for (const auto& [name, source] : sources) {
                if (name == list && id != 0) function(source, id, kind, record);
            }
        });
}

inline void name_everything(Rings& rings) noexcept {
    for_each_source([&](TraceSource source, std::uint64_t id, const statistics::RecordKind& kind,
                        const statistics::Counter* record) {
        char name[statistics::Name::bytes];
        statistics::load_text({record + kind.name / sizeof *record, sizeof name / sizeof *record},
                              name);
        rings.name(source, id, name);
    });
}

// For a recording from the first call, the environment says it; later, the process that requests
// it.
inline std::uint64_t stack_interval(const Control& control, bool from_start) noexcept {
    if (!from_start) return control.stack_interval.load(relaxed);
    const char* const text = platform::environment_variable("TENSORPOOL_TRACE_STACKS");
    if (text == nullptr || *text == '\0') return 0;
    const auto bytes = platform::parse_bytes(text);
    if (bytes) return *bytes;
    platform::say(
        "TENSORPOOL_TRACE_STACKS is '%.60s'; expected a size such as 512KiB; used instead: no "
        "stacks",
        text);
    return 0;
}

inline TraceProcess describe_process(std::uint64_t stack_interval, bool from_start) noexcept {
    const platform::ProcessIdentity self = platform::identify_process();
    TraceProcess process{.process = self.number,
                         .name_space = self.name_space,
                         .start_ticks = self.start_ticks,
                         .begun_cycles = platform::cycle_counter(),
                         .begun_unix_ns = steady_unix_ns(),
                         .page_bytes = platform::page_bytes(),
                         .stack_interval = stack_interval,
                         .from_start = from_start ? 1U : 0U,
                         .name = {}};
    std::memcpy(process.name, self.name, sizeof self.name);
    return process;
}

inline std::uintptr_t unused_frame;

class Recorder;
inline Recorder& recorder() noexcept;

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

    /// Checks for requests and carries them out. A fork waits for locks, such as an arena's, under
    /// which vectors grow; a pool may serve their malloc and call this. So a thread that comes here
    /// during a fork does not wait for its end. The next slow path answers instead.
    void answer() noexcept {
        if (events::is_unnoticed_child()) [[unlikely]]
            return part_from_parent();
        if (is_answering || !set_handlers()) return;
        std::unique_lock lock(mutex_, std::try_to_lock);
        while (!lock) {
            if (forks_.load(relaxed) != 0) return;
            std::this_thread::yield();
            (void)lock.try_lock();
        }
        is_answering = true;
        const bool has_requests = answer_under_lock();
        lock.unlock();
        if (has_requests) answer_requests();
        is_answering = false;
    }
    /// Puts one entry into the calling thread's ring. The hook calls it directly.
    static void record(TraceAction action, std::uint64_t source, const void* address,
                       std::size_t bytes, std::size_t alignment) noexcept {
        recorder().writer_.record(action, source, address, bytes, alignment);
    }
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
    void before_fork() noexcept {
        forks_.fetch_add(1, relaxed);
        mutex_.lock();
    }
    void after_fork_in_parent() noexcept {
        mutex_.unlock();
        forks_.fetch_sub(1, relaxed);
    }
    void after_fork_in_child() noexcept {
        show_quick_paths();  // a recording of the parent may have hidden them
        looked_ = false;
        forks_.store(1, relaxed);  // the child does not have the other forking threads
        after_fork_in_parent();
    }
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
    // The child has neither the memory that it would record into nor its control. This runs first
    // in the child: otherwise the end of threads that the child does not have would be recorded.
    // The first slow path of the child starts from the beginning.
    void forget_rings() noexcept {
        events::recorder_hooks.record.store(nullptr, relaxed);
        events::recorder_hooks.name.store(nullptr, relaxed);
        events::look_at_environment_again();
        recording_.target.store(Target::none, relaxed);
        recording_.number.fetch_add(1, relaxed);
        recording_.rings.forget();
        file_.forget();
        platform::close_shared_memory(control_memory_);
        control_memory_ = {};
        recording_.control.store(nullptr, relaxed);
        holder_answers_.forget();
        unlock_rings();
    }

    /// Registers the handlers for forks and for the end of threads. Called while the library is
    /// loaded. Returns false while another thread registers them: that thread answers the request.
    bool set_handlers() noexcept {
        if (handlers_.load(std::memory_order_acquire) == Handlers::set) return true;
        Handlers none = Handlers::none;
        if (!handlers_.compare_exchange_strong(none, Handlers::being_set, relaxed)) return false;
        writer_.set_exit_handler(
            platform::add_thread_exit_handler([] { recorder().end_thread(); }));
        (void)platform::set_fork_handlers(
            platform::ForkStage::recorder, [] { recorder().before_fork(); },
            [] { recorder().after_fork_in_parent(); }, [] { recorder().after_fork_in_child(); });
        (void)platform::set_fork_handlers(
            platform::ForkStage::rings, [] { recorder().lock_rings(); },
            [] { recorder().unlock_rings(); }, [] { recorder().forget_rings(); });
        handlers_.store(Handlers::set, std::memory_order_release);
        return true;
    }

private:
    // The memory of the control stays mapped until the process ends or forks.
    void answer_requests() noexcept {
        Control* const control = recording_.control.load(relaxed);
        if (control == nullptr) return;
        const std::uint64_t interval = control->profile_interval.exchange(0, relaxed);
        if (interval != 0) set_profile_interval(interval - 1);
        const std::uint64_t trims = control->trims_asked.load(relaxed);
        if (trims != control->trims.load(relaxed)) trim(*control, trims);
        const std::lock_guard guard(answers_mutex_);
        holder_answers_.look(*control);
    }
    // Another thread may have answered a later request already; that answer stands.
    void trim(Control& control, std::uint64_t request) noexcept {
        const std::size_t bytes = detail::trim_all_pools();
        const std::lock_guard guard(answers_mutex_);
        if (request <= control.trims.load(relaxed)) return;
        control.trimmed_bytes.store(bytes, relaxed);
        control.trims.store(request, std::memory_order_release);
    }
    // In a child that was made without the handlers of a fork. It goes on without a control and
    // with statistics that no other process sees, until it ends, calls exec, or forks. No lock is
    // taken: a thread of the parent may have held it. Descriptors stay open, since the child may
    // share them with its parent.
    void part_from_parent() noexcept {
        if (has_parted.exchange(true, relaxed)) {
            // Another thread of the child is doing it.
            while (events::is_unnoticed_child()) std::this_thread::yield();
            return;
        }
        events::recorder_hooks.record.store(nullptr, relaxed);
        events::recorder_hooks.name.store(nullptr, relaxed);
        recording_.target.store(Target::none, relaxed);
        recording_.number.fetch_add(1, relaxed);
        recording_.control.store(nullptr, relaxed);
        statistics::segment().part_without_locks();
        detail::background_trimmer().forget_thread();
        events::look_at_nothing();
    }

    using Target = Recording::Target;

    // All of these require mutex_. Starts or stops recording. Returns whether there is a new
    // request for anything else.
    bool answer_under_lock() noexcept {
        auto& hooks = events::recorder_hooks;
        if (!looked_) {
            looked_ = true;
            look_at_environment();
            return false;
        }
        if (hooks.record.load(relaxed) == nullptr) end_given_up();
        const std::uint64_t asked = hooks.asked.load(relaxed)->load(relaxed);
        hooks.answered.store(asked, relaxed);
        const std::uint64_t before = std::exchange(answered_, asked);
        if (((asked ^ before) & recording_mask) != 0) change_recording(asked);
        return asked >> request_shift != before >> request_shift;
    }
    void change_recording(std::uint64_t asked) noexcept {
        const bool wanted = asked % 2 != 0;
        if (!wanted && recording_.target_now() == Target::reader) end();
        if (wanted && recording_.target_now() == Target::none) (void)begin(Target::reader, false);
    }
    void look_at_environment() noexcept {
        auto& hooks = events::recorder_hooks;
        mark_process();
        const char* const trace = platform::environment_variable("TENSORPOOL_TRACE");
        const std::string_view wanted = trace == nullptr ? "" : trace;
        Target target = Target::none;
        if (wanted == "observer") {
            target = Target::reader;
        } else if (wanted.starts_with('/')) {
            target = Target::file;
        } else if (!wanted.empty()) {
            platform::say(
                "TENSORPOOL_TRACE is '%.200s'; expected an absolute path, or observer; used "
                "instead: no recording",
                trace);
        }
        if (target != Target::file) share_control();
        if (target != Target::none && !begin(target, true)) {
            platform::say(
                "TENSORPOOL_TRACE: there is no memory for a recording; used instead: none");
        }
        hand_over();
        // Stored last. Until then other threads come here and wait for the outcome, so no call is
        // missed.
        answered_ = 0;
        hooks.answered.store(0, relaxed);
        const Control* const control =
            target == Target::file ? nullptr : recording_.control.load(relaxed);
        hooks.asked.store(control == nullptr ? &no_requests : &control->asked,
                          std::memory_order_release);
    }
    // Steps that may fail come first. Names follow, so that no recorded call refers to an unnamed
    // source, and then the hook. After the hook come the present capacities, since from then on
    // each change is recorded. Closing the inline paths is the last step.
    bool begin(Target target, bool from_start) noexcept {
        if (target == Target::reader && recording_.control.load(relaxed) == nullptr) return false;
        if (target == Target::file && make_private_control() == nullptr) return false;
        const auto sharing = target == Target::reader ? Rings::Sharing::yes : Rings::Sharing::no;
        const std::uint64_t interval =
            stack_interval(*recording_.control.load(relaxed), from_start);
        if (!recording_.rings.make(sharing, describe_process(interval, from_start))) return false;
        if (interval != 0) (void)platform::capture_stack(&unused_frame, 1);  // its one-time set-up
        if (target == Target::file &&
            !file_.open(platform::environment_variable("TENSORPOOL_TRACE"))) {
            return true;  // reported on stderr
        }
        if (target == Target::reader) {
            for (statistics::Counter& tail : recording_.control.load(relaxed)->tails)
                tail.store(0, relaxed);
        }
        recording_.target.store(target, relaxed);
        recording_.number.fetch_add(1, std::memory_order_release);
        auto& hooks = events::recorder_hooks;
        hooks.name.store(
            [](TraceSource kind, std::uint64_t source, std::string_view name) noexcept {
                recorder().name(kind, source, name);
            },
            std::memory_order_release);
        name_everything(recording_.rings);
        hooks.record.store(record, std::memory_order_release);
        record_capacities();
        hide_quick_paths();
        // If the file accepts no data, the recording is given up already.
        if (hooks.record.load(relaxed) == nullptr) end_given_up();
        return true;
    }
    void end() noexcept {
        auto& hooks = events::recorder_hooks;
        hooks.record.store(nullptr, relaxed);
        hooks.name.store(nullptr, relaxed);
        show_quick_paths();
        recording_.rings.end();
        recording_.target.store(Target::none, relaxed);
    }
    // Threads that have not seen the end yet may still write to a file.
    void end_given_up() noexcept {
        if (recording_.target_now() == Target::reader) end();
        if (recording_.target_now() == Target::file) show_quick_paths();
    }
    void record_capacities() noexcept {
        writer_.prepare();
        const auto record_held = [](std::uint64_t id, const statistics::Counter& bytes) {
            if (bytes.load(relaxed) != 0) events::record_capacity(id, bytes);
        };
        for_each_source([&](TraceSource, std::uint64_t id, const statistics::RecordKind& kind,
                            const statistics::Counter* record) {
            if (&kind == &statistics::PoolRecord::layout) {
                constexpr std::size_t word =
                    offsetof(statistics::PoolRecord, totals.capacity_bytes);
                return record_held(id, record[word / sizeof *record]);
            }
            for (const statistics::Field& field : kind.table->shown_fields()) {
                if (field.name == "capacity_bytes") {
                    record_held(id, record[field.word / sizeof *record]);
                }
            }
        });
    }
    // Where a memory tool is present, the inline paths stay hidden from the first use on.
    void show_quick_paths() noexcept {
        if (platform::has_memory_tool()) return;
        arena::scratch_registry().show_quick_paths(true);
        arena::arena_registry().show_quick_paths(true);
        blocks::thread_registry().show_caches();
    }
    // If the statistics are private, other processes cannot send requests either.
    void share_control() noexcept {
        if (statistics::segment().memory().used().file < 0) return;
        control_memory_ = platform::share_memory("tensorpool-control", control_bytes,
                                                 platform::Writers::same_user);
        if (control_memory_.address == nullptr) return;
        if (!platform::get_shared_pages(control_memory_.address, control_bytes)) {
            platform::unmap(control_memory_.address, control_bytes);
            platform::close_shared_memory(control_memory_);
            control_memory_ = {};
            return;
        }
        auto* const control = new (control_memory_.address) Control{};
        keep_from_children(*control);
        control->version.store(control_version, relaxed);
        control->process.store(platform::identify_process().number, relaxed);
        control->magic.store(control_magic, std::memory_order_release);
        recording_.control.store(control, std::memory_order_release);
        events::recorder_hooks.wake.store(&control->wake, std::memory_order_release);
    }
    // Lets children that are made without the handlers of a fork notice what they are.
    void mark_process() noexcept {
        if (mark_ == nullptr) mark_ = platform::make_process_mark();
        if (mark_ == nullptr) return;
        mark_->store(1, relaxed);  // the child of a fork has 0 there
        has_parted.store(false, relaxed);
        events::recorder_hooks.mark.store(mark_, std::memory_order_release);
    }
    // A child that would not notice what it is keeps the control: it may then answer a request to
    // its parent.
    void keep_from_children(Control& control) noexcept {
        if (mark_ != nullptr) platform::keep_from_forks(&control, control_bytes);
    }
    Control* make_private_control() noexcept {
        if (Control* const known = recording_.control.load(relaxed)) return known;
        void* const memory = platform::map(control_bytes, platform::page_bytes());
        if (memory == nullptr) return nullptr;
        auto* const control = new (memory) Control{};
        keep_from_children(*control);
        recording_.control.store(control, std::memory_order_release);
        return control;
    }
    void hand_over() noexcept {
        const char* const observer = platform::environment_variable("TENSORPOOL_OBSERVER");
        if (observer == nullptr || *observer == '\0') return;
        int files[3];
        unsigned count = 0;
        for (const int file : {statistics::segment().memory().used().file, control_memory_.file,
                               recording_.rings.is_made() ? recording_.rings.file() : -1}) {
            if (file >= 0) files[count++] = file;
        }
        // If the observer is gone, the failure does not matter.
        (void)platform::hand_files_over(observer, files, count);
    }

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

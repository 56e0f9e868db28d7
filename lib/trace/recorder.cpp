#include "trace/recorder.hpp"

#include <cstdlib>

#include "platform/process/fork_handlers.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/pool.hpp"

namespace tensorpool::trace {
namespace {

/// Returns the open file. Its header is empty if there was no memory.
platform::SharedMemory share(std::uint64_t request, std::string_view text) noexcept {
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

}  // namespace

void HolderAnswers::look(Control& control) noexcept {
    const std::uint64_t request = control.holders_asked.load(relaxed);
    if (request == control.holders.load(relaxed) || request == passed_on_) return;
    passed_on_ = request;
    if (handler_ != nullptr) return handler_(request);
    publish(control, request, {});
}

// After a fork, the handler of the child may still answer a request to the parent.
void HolderAnswers::answer(Control& control, std::uint64_t request,
                           std::string_view text) noexcept {
    if (request > passed_on_ || request <= control.holders.load(relaxed)) return;
    publish(control, request, text);
}

// The former answer is closed last, so that a reader that finds neither sees a new number.
void HolderAnswers::publish(Control& control, std::uint64_t request,
                            std::string_view text) noexcept {
    const platform::SharedMemory former = std::exchange(file_, share(request, text));
    control.holders.store(request, std::memory_order_release);
    platform::close_shared_memory(former);
}

namespace {

// Set while the calling thread answers. Its own allocations, in a C library whose malloc a pool
// serves, then do not start another answer.
constinit thread_local bool is_answering TENSORPOOL_INITIAL_EXEC = false;

// Set by the thread that notices that it runs in a child.
constinit std::atomic<bool> has_parted = false;

// Stands for the word of requests if no other process can reach this one.
constinit const Counter no_requests = 0;

}  // namespace

namespace {

// Set while the library is loaded, before there are threads. Otherwise the child of a fork that
// came after the control was made and before the handlers were set would use memory that it does
// not have.
[[maybe_unused]] const bool has_handlers_from_the_start = recorder().set_handlers();

// Looked for early: later, it would be done under the recorder's lock, and the loader calls malloc.
[[maybe_unused]] const bool knows_python = platform::find_python();

// Registered early: later, the call would be made under the recorder's lock. atexit has a lock of
// its own, under which it calls malloc, and a pool may serve malloc.
[[maybe_unused]] const bool finishes_at_exit = std::atexit([] { recorder().finish(); }) == 0;

}  // namespace

// A fork waits for locks, such as an arena's, under which vectors grow; a pool may serve their
// malloc and call this. So a thread that comes here during a fork does not wait for its end. The
// next slow path answers instead.
void Recorder::answer() noexcept {
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

// In a child that was made without the handlers of a fork. It goes on without a control and with
// statistics that no other process sees, until it ends, calls exec, or forks. No lock is taken: a
// thread of the parent may have held it. Descriptors stay open, since the child may share them with
// its parent.
void Recorder::part_from_parent() noexcept {
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

// Starts or stops recording. Returns whether there is a new request for anything else.
bool Recorder::answer_under_lock() noexcept {
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

// The memory of the control stays mapped until the process ends or forks.
void Recorder::answer_requests() noexcept {
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
void Recorder::trim(Control& control, std::uint64_t request) noexcept {
    const std::size_t bytes = detail::trim_all_pools();
    const std::lock_guard guard(answers_mutex_);
    if (request <= control.trims.load(relaxed)) return;
    control.trimmed_bytes.store(bytes, relaxed);
    control.trims.store(request, std::memory_order_release);
}

// Returns false while another thread sets them: that thread answers the request.
bool Recorder::set_handlers() noexcept {
    if (handlers_.load(std::memory_order_acquire) == Handlers::set) return true;
    Handlers none = Handlers::none;
    if (!handlers_.compare_exchange_strong(none, Handlers::being_set, relaxed)) return false;
    writer_.set_exit_handler(platform::add_thread_exit_handler([] { recorder().end_thread(); }));
    (void)platform::set_fork_handlers(
        platform::ForkStage::recorder, [] { recorder().before_fork(); },
        [] { recorder().after_fork_in_parent(); }, [] { recorder().after_fork_in_child(); });
    (void)platform::set_fork_handlers(
        platform::ForkStage::rings, [] { recorder().lock_rings(); },
        [] { recorder().unlock_rings(); }, [] { recorder().forget_rings(); });
    handlers_.store(Handlers::set, std::memory_order_release);
    return true;
}

void Recorder::look_at_environment() noexcept {
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
        platform::say("TENSORPOOL_TRACE: there is no memory for a recording; used instead: none");
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

// If the statistics are private, other processes cannot send requests either.
void Recorder::share_control() noexcept {
    if (statistics::segment().memory().used().file < 0) return;
    control_memory_ =
        platform::share_memory("tensorpool-control", control_bytes, platform::Writers::same_user);
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
void Recorder::mark_process() noexcept {
    if (mark_ == nullptr) mark_ = platform::make_process_mark();
    if (mark_ == nullptr) return;
    mark_->store(1, relaxed);  // the child of a fork has 0 there
    has_parted.store(false, relaxed);
    events::recorder_hooks.mark.store(mark_, std::memory_order_release);
}

// A child that would not notice what it is keeps the control: it may then answer a request to its
// parent.
void Recorder::keep_from_children(Control& control) noexcept {
    if (mark_ != nullptr) platform::keep_from_forks(&control, control_bytes);
}

void Recorder::hand_over() noexcept {
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

void Recorder::record(TraceAction action, std::uint64_t source, const void* address,
                      std::size_t bytes, std::size_t alignment) noexcept {
    recorder().writer_.record(action, source, address, bytes, alignment);
}

void Recorder::before_fork() noexcept {
    forks_.fetch_add(1, relaxed);
    mutex_.lock();
}

void Recorder::after_fork_in_parent() noexcept {
    mutex_.unlock();
    forks_.fetch_sub(1, relaxed);
}

void Recorder::after_fork_in_child() noexcept {
    show_quick_paths();  // a recording of the parent may have hidden them
    looked_ = false;
    forks_.store(1, relaxed);  // the child does not have the other forking threads
    after_fork_in_parent();
}

// The child has neither the memory that it would record into nor its control. This runs first in
// the child: otherwise the end of threads that the child does not have would be recorded. The first
// slow path of the child starts from the beginning.
void Recorder::forget_rings() noexcept {
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

}  // namespace tensorpool::trace

namespace tensorpool::events {

// Called by the layers below; see recorder_hooks.hpp.
void answer_recorder() noexcept {
    trace::recorder().answer();
}

}  // namespace tensorpool::events

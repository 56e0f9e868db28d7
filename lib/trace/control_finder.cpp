#include "trace/control_finder.hpp"

#include <utility>

#include "platform/process/processes.hpp"
#include "platform/threads/own_thread.hpp"
#include "read/look_problem.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

void fail_to_attach(std::uint64_t process, AttachFailure failure, const std::string& what) {
    const std::string subject = process == 0 ? "a process" : "process " + std::to_string(process);
    throw AttachError(failure, "tensorpool: " + subject + ": " + what);
}

// Finds the process's own control. A process may also hold controls of others, as a reader or the
// child of a fork does.
platform::ObservedFile find_control(std::uint64_t process, const char* what) {
    auto held = platform::memory_files_of(process, "tensorpool-control");
    const std::uint64_t own = platform::own_name_of(process).number;
    for (auto& [descriptor, file] : held.files) {
        Control control{};
        if (file.read(0, &control, sizeof control) == sizeof control &&
            control.process.load(std::memory_order_relaxed) == own) {
            return std::move(file);
        }
    }
    if (held.look == platform::Look::allowed) {
        fail_to_attach(process, AttachFailure::no_segment,
                       std::string("it accepts no request ") + what +
                           ": it holds no pool or has made no call yet, records into a file of its "
                           "own (TENSORPOOL_TRACE), or runs with TENSORPOOL_STATISTICS=off");
    }
    const read::SegmentProblem problem = read::problem_of(held.look);
    fail_to_attach(process, problem.failure, problem.what);
}

RingView open_for_request(std::uint64_t process, const char* what) {
    RingView view;
    if (const auto problem =
            view.open_control(find_control(process, what), RingView::Purpose::request)) {
        fail_to_attach(process, AttachFailure::system, *problem);
    }
    return view;
}

void announce_request(Control& control) noexcept {
    control.asked.fetch_add(one_request, std::memory_order_release);
    platform::wake_waiter(control.wake);
}

}  // namespace tensorpool::trace

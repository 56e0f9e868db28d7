#include "trace/ring_view.hpp"

#include <algorithm>
#include <utility>

#include "platform/threads/own_thread.hpp"
#include "read/segment_problem.hpp"

namespace tensorpool::trace {
namespace {

std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

std::string unlike(const char* what, std::uint64_t found, std::uint64_t expected) {
    return std::string("its ") + what + " is " + std::to_string(found) + "; expected " +
           std::to_string(expected);
}

/// Returns nothing if the file may be mapped: it has this size and cannot change it. Otherwise
/// returns the problem.
std::optional<std::string> problem_of(const platform::ObservedFile& file, const char* what,
                                      std::uint64_t bytes) {
    if (!file) return std::string("its ") + what + " cannot be opened";
    if (!file.is_sealed())
        return std::string("its ") + what + " may be cut short: it is not sealed";
    if (file.bytes() != bytes) return unlike(what, file.bytes(), bytes) + " bytes";
    return std::nullopt;
}

}  // namespace

std::optional<std::string> RingView::open_control(platform::ObservedFile file, Purpose purpose) {
    if (auto problem = problem_of(file, "control", control_bytes)) return problem;
    platform::ObservedFile writable = file.reopen_for_writing();
    if (!writable) return "its control cannot be written";
    if (purpose == Purpose::record && !writable.hold_lock())
        return "it is recorded already, by another process";
    decltype(control_) control(static_cast<Control*>(writable.map_for_writing(control_bytes)));
    if (control == nullptr) return "its control cannot be mapped";
    const std::uint64_t version = read(control->version);
    if (read(control->magic) != control_magic || version != control_version)
        return unlike("control's version", version, control_version);
    control_file_ = std::move(writable);
    control_ = std::move(control);
    return std::nullopt;
}

std::optional<std::string> RingView::open_rings(platform::ObservedFile file) {
    if (auto problem = problem_of(file, "rings", rings_bytes)) return problem;
    decltype(rings_) rings(const_cast<void*>(file.map(rings_bytes)));
    if (rings == nullptr) return "its rings cannot be mapped";
    const auto& header = *static_cast<const RingsHeader*>(rings.get());
    const std::uint64_t version = read(header.version);
    if (read(header.magic) != rings_magic || version != rings_version)
        return unlike("rings' version", version, rings_version);
    rings_file_ = std::move(file);
    rings_ = std::move(rings);
    return std::nullopt;
}

std::size_t RingView::rings() const noexcept {
    return std::min<std::size_t>(read(header().rings), ring_count);
}

std::size_t RingView::names() const noexcept {
    return std::min<std::size_t>(read(header().names), name_count);
}

std::size_t RingView::modules() const noexcept {
    return std::min<std::size_t>(read(header().modules), module_count);
}

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

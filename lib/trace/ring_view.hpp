#pragma once

#include <algorithm>

#include "platform/threads/own_thread.hpp"
#include "read/segment_problem.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

inline std::string unlike(const char* what, std::uint64_t found, std::uint64_t expected) {
    return std::string("its ") + what + " is " + std::to_string(found) + "; expected " +
           std::to_string(expected);
}

/// Returns nothing if the file may be mapped: it has this size and cannot change it. Otherwise
/// returns the problem.
inline std::optional<std::string> problem_of(const platform::ObservedFile& file, const char* what,
                                             std::uint64_t bytes) {
    if (!file) return std::string("its ") + what + " cannot be opened";
    if (!file.is_sealed())
        return std::string("its ") + what + " may be cut short: it is not sealed";
    if (file.bytes() != bytes) return unlike(what, file.bytes(), bytes) + " bytes";
    return std::nullopt;
}

inline std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

/// The mapped rings and control of another process. Both are sealed, so that no change of the files
/// raises a signal. Counts in them are clipped to their bounds.
class RingView : public RingTables<RingView> {
public:
    /// Only one process at a time may record another. Any process may send other requests.
    enum class Purpose : bool { record, request };
    /// Both return nothing if the file can be used, and otherwise what was found and what was
    /// expected.
    std::optional<std::string> open_control(platform::ObservedFile file,
                                            Purpose purpose = Purpose::record) {
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
    std::optional<std::string> open_rings(platform::ObservedFile file) {
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

    /// Takes the rings from another view, which then has none.
    void take_rings_of(RingView& other) noexcept {
        rings_file_ = std::move(other.rings_file_);
        rings_ = std::move(other.rings_);
    }

    bool has_rings() const noexcept { return rings_ != nullptr; }
    Control& control() const noexcept { return *control_; }
    void* memory() const noexcept { return rings_.get(); }

    /// Counts, clipped to the size of the tables.
    std::size_t rings() const noexcept {
        return std::min<std::size_t>(read(header().rings), ring_count);
    }
    std::size_t names() const noexcept {
        return std::min<std::size_t>(read(header().names), name_count);
    }
    std::size_t modules() const noexcept {
        return std::min<std::size_t>(read(header().modules), module_count);
    }

private:
    template <std::size_t bytes>
    struct Unmap {
        void operator()(void* memory) const noexcept { platform::unmap(memory, bytes); }
    };

    platform::ObservedFile control_file_;  // holds the lock of the reader
    platform::ObservedFile rings_file_;
    std::unique_ptr<Control, Unmap<control_bytes>> control_;
    std::unique_ptr<void, Unmap<rings_bytes>> rings_;
};

/// Throws an AttachError that names the process. 0 stands for a process without a known number.
[[noreturn]] inline void fail_to_attach(std::uint64_t process, AttachFailure failure,
                                        const std::string& what) {
    const std::string subject = process == 0 ? "a process" : "process " + std::to_string(process);
    throw AttachError(failure, "tensorpool: " + subject + ": " + what);
}

/// Finds the control of a process. `what` names the request for messages, such as "to record".
/// Throws AttachError if there is no control or the process cannot be examined. Finds the process's
/// own control. A process may also hold controls of others, as a reader or the child of a fork
/// does.
inline platform::ObservedFile find_control(std::uint64_t process, const char* what) {
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

/// Opens the control of a process for a request other than to record. Throws AttachError
/// if there is no control or the process cannot be examined.
inline RingView open_for_request(std::uint64_t process, const char* what) {
    RingView view;
    if (const auto problem =
            view.open_control(find_control(process, what), RingView::Purpose::request)) {
        fail_to_attach(process, AttachFailure::system, *problem);
    }
    return view;
}
/// Announces a request whose words are stored in the control.
inline void announce_request(Control& control) noexcept {
    control.asked.fetch_add(one_request, std::memory_order_release);
    platform::wake_waiter(control.wake);
}

}  // namespace tensorpool::trace

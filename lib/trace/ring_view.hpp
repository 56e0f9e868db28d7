#pragma once

#include <optional>

#include <tensorpool/statistics_reader.hpp>

#include "platform/files/observed_file.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

/// The mapped rings and control of another process. Both are sealed, so that no change of the files
/// raises a signal. Counts in them are clipped to their bounds.
class RingView : public RingTables<RingView> {
public:
    /// Only one process at a time may record another. Any process may send other requests.
    enum class Purpose : bool { record, request };
    /// Both return nothing if the file can be used, and otherwise what was found and what was
    /// expected.
    std::optional<std::string> open_control(platform::ObservedFile file,
                                            Purpose purpose = Purpose::record);
    std::optional<std::string> open_rings(platform::ObservedFile file);

    /// Takes the rings from another view, which then has none.
    void take_rings_of(RingView& other) noexcept {
        rings_file_ = std::move(other.rings_file_);
        rings_ = std::move(other.rings_);
    }

    bool has_rings() const noexcept { return rings_ != nullptr; }
    Control& control() const noexcept { return *control_; }
    void* memory() const noexcept { return rings_.get(); }

    /// Counts, clipped to the size of the tables.
    std::size_t rings() const noexcept;
    std::size_t names() const noexcept;
    std::size_t modules() const noexcept;

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
[[noreturn]] void fail_to_attach(std::uint64_t process, AttachFailure failure,
                                 const std::string& what);

/// Finds the control of a process. `what` names the request for messages, such as "to record".
/// Throws AttachError if there is no control or the process cannot be examined.
platform::ObservedFile find_control(std::uint64_t process, const char* what);

/// Opens the control of a process for a request other than to record. Throws AttachError
/// if there is no control or the process cannot be examined.
RingView open_for_request(std::uint64_t process, const char* what);
/// Announces a request whose words are stored in the control.
void announce_request(Control& control) noexcept;

}  // namespace tensorpool::trace

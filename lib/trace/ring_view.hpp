#pragma once

#include <optional>

#include <tensorpool/statistics_reader.hpp>

#include "platform/files/observed_file.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

/// The mapped rings and control of another process. Both are sealed, so that no change of the files
/// raises a signal. Counts in them are clipped to their bounds.
class RingView {
public:
    RingView() noexcept = default;
    RingView(RingView&& other) noexcept;
    RingView& operator=(RingView&& other) noexcept;
    ~RingView();

    /// Only one process at a time may record another. Any process may send other requests.
    enum class Purpose : bool { record, request };
    /// Both return nothing if the file can be used, and otherwise what was found and what was
    /// expected.
    std::optional<std::string> open_control(platform::ObservedFile file,
                                            Purpose purpose = Purpose::record);
    std::optional<std::string> open_rings(platform::ObservedFile file);

    /// Takes the rings from another view, which then has none.
    void take_rings_of(RingView& other) noexcept {
        std::swap(rings_file_, other.rings_file_);
        std::swap(rings_, other.rings_);
    }

    bool has_rings() const noexcept { return rings_ != nullptr; }
    Control& control() const noexcept { return *control_; }
    const RingsHeader& header() const noexcept { return *at<RingsHeader>(0); }

    /// Counts, clipped to the size of the tables.
    std::size_t rings() const noexcept;
    std::size_t names() const noexcept;
    std::size_t modules() const noexcept;
    const RingHead& head(std::size_t ring) const noexcept {
        return *at<RingHead>(heads_offset + ring * sizeof(RingHead));
    }
    const TraceEntry* entries(std::size_t ring) const noexcept {
        return at<TraceEntry>(rings_offset + ring * ring_bytes);
    }
    const TraceName* name_table() const noexcept { return at<TraceName>(names_offset); }
    const TraceModule* module_table() const noexcept { return at<TraceModule>(modules_offset); }

private:
    template <class T>
    const T* at(std::size_t offset) const noexcept {
        return reinterpret_cast<const T*>(static_cast<const std::byte*>(rings_) + offset);
    }

    platform::ObservedFile control_file_;  // holds the lock of the reader
    platform::ObservedFile rings_file_;
    Control* control_ = nullptr;
    const void* rings_ = nullptr;
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

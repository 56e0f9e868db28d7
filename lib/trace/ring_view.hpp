#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "platform/files/observed_file.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

/// Another process's rings and control, mapped. Both are sealed, so that nothing that happens to
/// them brings a signal; what they hold is believed only within their bounds.
class RingView {
public:
    RingView() noexcept = default;
    RingView(RingView&& other) noexcept;
    RingView& operator=(RingView&& other) noexcept;
    ~RingView();

    /// Only one process may record another; any may ask it for something else.
    enum class Purpose : bool { record, ask };
    /// Each: nothing where it can be used, otherwise what was found and what was expected.
    std::optional<std::string> open_control(platform::ObservedFile file,
                                            Purpose purpose = Purpose::record);
    std::optional<std::string> open_rings(platform::ObservedFile file);

    /// Takes the rings from another view, which has none then.
    void take_rings_of(RingView& other) noexcept;

    bool has_rings() const noexcept { return rings_ != nullptr; }
    Control& control() const noexcept { return *control_; }
    const RingsHeader& header() const noexcept { return *at<RingsHeader>(0); }

    /// Counts that never lead beyond what is there.
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

    platform::ObservedFile control_file_;  // holds the lock of who reads
    platform::ObservedFile rings_file_;
    Control* control_ = nullptr;
    const void* rings_ = nullptr;
};

}  // namespace tensorpool::trace

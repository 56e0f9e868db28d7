#include "trace/ring_view.hpp"

#include <algorithm>
#include <utility>

#include "platform/platform.hpp"

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

RingView::RingView(RingView&& other) noexcept
    : control_file_(std::move(other.control_file_)),
      rings_file_(std::move(other.rings_file_)),
      control_(std::exchange(other.control_, nullptr)),
      rings_(std::exchange(other.rings_, nullptr)) {}

RingView& RingView::operator=(RingView&& other) noexcept {
    std::swap(control_file_, other.control_file_);
    std::swap(rings_file_, other.rings_file_);
    std::swap(control_, other.control_);
    std::swap(rings_, other.rings_);
    return *this;
}

RingView::~RingView() {
    if (control_ != nullptr) platform::unmap(control_, control_bytes);
    if (rings_ != nullptr) platform::unmap(const_cast<void*>(rings_), rings_bytes);
}

std::optional<std::string> RingView::open_control(platform::ObservedFile file, Purpose purpose) {
    if (auto problem = problem_of(file, "control", control_bytes)) return problem;
    platform::ObservedFile writable = file.reopen_for_writing();
    if (!writable) return "its control cannot be written";
    if (purpose == Purpose::record && !writable.hold_lock())
        return "it is recorded already, by another process";
    auto* const control = static_cast<Control*>(writable.map_for_writing(control_bytes));
    if (control == nullptr) return "its control cannot be mapped";
    if (read(control->magic) != control_magic || read(control->version) != control_version) {
        const std::uint64_t version = read(control->version);
        platform::unmap(control, control_bytes);
        return unlike("control's version", version, control_version);
    }
    control_file_ = std::move(writable);
    control_ = control;
    return std::nullopt;
}

std::optional<std::string> RingView::open_rings(platform::ObservedFile file) {
    if (auto problem = problem_of(file, "rings", rings_bytes)) return problem;
    const void* const rings = file.map(rings_bytes);
    if (rings == nullptr) return "its rings cannot be mapped";
    const auto& header = *static_cast<const RingsHeader*>(rings);
    if (read(header.magic) != rings_magic || read(header.version) != rings_version) {
        const std::uint64_t version = read(header.version);
        platform::unmap(const_cast<void*>(rings), rings_bytes);
        return unlike("rings' version", version, rings_version);
    }
    rings_file_ = std::move(file);
    rings_ = rings;
    return std::nullopt;
}

void RingView::take_rings_of(RingView& other) noexcept {
    std::swap(rings_file_, other.rings_file_);
    std::swap(rings_, other.rings_);
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

}  // namespace tensorpool::trace

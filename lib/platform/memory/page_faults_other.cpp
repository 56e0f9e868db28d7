#include "platform/memory/page_faults.hpp"

namespace tensorpool::platform {

FaultSource open_fault_source(FaultScope) noexcept {
    return {};
}

bool is_open(const FaultSource&) noexcept {
    return false;
}

void close_fault_source(const FaultSource&) noexcept {}

bool watch_faults(const FaultSource&, void*, std::size_t) noexcept {
    return false;
}

void unwatch_faults(const FaultSource&, void*, std::size_t) noexcept {}

bool fill_missing(const FaultSource&, void*, const void*, std::size_t, Writable) noexcept {
    return false;
}

bool protect_from_writes(const FaultSource&, void*, std::size_t, Writable) noexcept {
    return false;
}

void wake_faults(const FaultSource&, void*, std::size_t) noexcept {}

bool next_fault(const FaultSource&, PageFault&) noexcept {
    return false;
}

}  // namespace tensorpool::platform

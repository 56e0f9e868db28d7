#include "device/caching/streams/captures.hpp"

#include <algorithm>

namespace tensorpool::device {

std::uint64_t Captures::of(StreamHandle stream) const noexcept {
    if ((state_.gate.load(std::memory_order_relaxed) & AllocatorState::captures) == 0) return 0;
    CaptureState state;
    const DeviceStatus status = state_.backend.capture_state(state_.device, stream, state);
    return status == DeviceStatus::ok && state.capturing ? state.id : 0;
}

bool Captures::is_any_active() const noexcept {
    if (!state_.abilities.graph_capture) return false;
    return std::any_of(state_.caches.begin(), state_.caches.end(), [this](const auto& cache) {
        return !cache->memory.ended && state_.deferred.is_captured(cache->stream());
    });
}

void Captures::begin() noexcept {
    ++announced_;
    set_gate();
}

void Captures::end() noexcept {
    if (announced_ != 0) --announced_;
    set_gate();
}

void Captures::set_gate() noexcept {
    const bool queries = state_.abilities.graph_capture &&
                         (state_.options.captures == CaptureDetection::asked || announced_ != 0);
    const unsigned gate = (state_.watch.wants_all() ? unsigned{AllocatorState::watched} : 0U) |
                          (queries ? unsigned{AllocatorState::captures} : 0U);
    state_.gate.store(gate, std::memory_order_relaxed);
}

bool Captures::take_reserved(StreamCache& cache, const Request& request) {
    Slab* best = nullptr;
    for (Slab& slab : reserved_.memory.slabs) {
        const bool fits = slab.bytes >= request.rounded;
        if (fits && (best == nullptr || slab.bytes < best->bytes)) best = &slab;
    }
    if (best == nullptr) return false;
    state_.heap.move_slab(*best, cache, request.pool);
    return true;
}

}  // namespace tensorpool::device

#include "device/caching/streams/captures.hpp"

namespace tensorpool::device {
std::uint64_t Captures::of(StreamHandle stream) const noexcept {
    const bool known =
        (state_.gate.load(std::memory_order_relaxed) & AllocatorState::captures) != 0;
    return known || state_.is_capture_under_way() ? look(stream) : 0;
}

std::uint64_t Captures::look(StreamHandle stream) const noexcept {
    const std::uint64_t pool = pool_of(stream);
    if (pool != 0 || !state_.abilities.graph_capture) return pool;
    return state_.calls.is_captured(stream) ? state_.calls.capture_of(stream) : 0;
}

std::uint64_t Captures::pool_of(StreamHandle stream) const noexcept {
    const std::lock_guard guard(pools_mutex_);
    const auto found = std::find_if(
        pools_in_use_.rbegin(), pools_in_use_.rend(),
        [stream](const auto& used) { return used.takes_part(StreamCalls::handle_of(stream)); });
    return found != pools_in_use_.rend() ? found->number : 0;
}

void Captures::remember(StreamHandle stream, std::uint64_t capture) {
    forget(stream);
    if (capture == 0 || capture >= first_pool ||
        state_.backend.owns_stream(state_.device, stream)) {
        return;
    }
    found_.push_back({stream, capture});
    set_gate();
}

void Captures::forget(StreamHandle stream) noexcept {
    if (found_.empty()) return;
    std::erase_if(found_, [stream](const Found& one) { return one.stream == stream; });
    set_gate();
}

void Captures::forget_capture(std::uint64_t id) noexcept {
    std::erase_if(found_, [id](const Found& one) { return one.capture == id; });
    set_gate();
}

void Captures::begin() noexcept {
    ++announced_;
    set_gate();
}

void Captures::end() noexcept {
    if (announced_ != 0) --announced_;
    if (announced_ == 0) found_.clear();
    set_gate();
}

void Captures::begin_pool(CapturePool pool, std::function<bool(StreamHandle)> takes_part) {
    const auto known = pools_.try_emplace(pool, KnownPool{first_pool + last_pool_ + 1, 0}).first;
    try {
        const std::lock_guard guard(pools_mutex_);
        pools_in_use_.push_back({pool, known->second.number, std::move(takes_part)});
    } catch (...) {
        if (known->second.uses == 0) pools_.erase(known);
        throw;
    }
    if (known->second.uses++ == 0) ++last_pool_;
    set_gate();
}

std::uint64_t Captures::end_pool(CapturePool pool) noexcept {
    std::uint64_t number = 0;
    {
        const std::lock_guard guard(pools_mutex_);
        const auto found = std::find_if(pools_in_use_.rbegin(), pools_in_use_.rend(),
                                        [pool](const auto& used) { return used.pool == pool; });
        if (found == pools_in_use_.rend()) return 0;
        number = found->number;
        pools_in_use_.erase(std::next(found).base());
    }
    set_gate();
    return number;
}

bool Captures::knows(std::uint64_t pool) const noexcept {
    return std::any_of(pools_.begin(), pools_.end(),
                       [pool](const auto& known) { return known.second.number == pool; });
}

std::uint64_t Captures::give_up_pool(CapturePool pool) noexcept {
    const auto known = pools_.find(pool);
    if (known == pools_.end() || --known->second.uses != 0) return 0;
    const std::uint64_t number = known->second.number;
    pools_.erase(known);
    return number;
}

void Captures::set_gate() noexcept {
    const bool asks = announced_ != 0 || !found_.empty() || !pools_in_use_.empty();
    const unsigned gate = (state_.watch.wants_all() ? unsigned{AllocatorState::watched} : 0U) |
                          (asks ? unsigned{AllocatorState::captures} : 0U) |
                          (state_.asleep ? unsigned{AllocatorState::sleeping} : 0U);
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

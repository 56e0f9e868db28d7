#include <tensorpool/scratch.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include <tensorpool/arena_options.hpp>

#include "arena/scratch/scratch_registry.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "base/alignment.hpp"
#include "events/recorder_hooks.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {

using base::Refusal;
using detail::ScratchState;

struct Scratch::Over {
    std::span<std::byte> buffer;
};

namespace {

constexpr std::size_t cache_line_bytes = 64;
// A first-level cache has 64 sets of 64 bytes on all x86-64 processors and most others. Rows whose
// distance is a multiple of 4096 bytes all begin in one set, and rows whose distance is a multiple
// of this constant in at most eight.
constexpr std::size_t few_sets_bytes = 512;

[[noreturn]] void refuse(ScratchState& state, std::size_t bytes, const Refusal& refusal) {
    state.count_refusal(bytes, refusal);
    throw AllocationError(
        state.name(), base::failure_of(refusal, bytes, state.scratch().used(), state.capacity()));
}

}  // namespace

Scratch& Scratch::make_local() {
    auto* const scratch = new Scratch();
    detail::local_scratch = scratch;
    arena::scratch_registry().enter(*scratch->state_);
    return *scratch;
}

Scratch::Scratch()
    : state_(std::make_unique<ScratchState>(
          *this, "thread " + std::to_string(platform::current_thread_id()),
          arena::CheckedBlocks::Memory::of_system)) {
    Refusal refusal;
    if (!state_->prepare(ScratchState::first_chunk_bytes, refusal)) {
        refuse(*state_, ScratchState::first_chunk_bytes, refusal);
    }
    unsettled_ = false;
    platform::mark_defined(this, sizeof *this);
}

Scratch Scratch::over(std::span<std::byte> buffer) {
    return Scratch(Over{buffer});
}

Scratch::Scratch(Over over)
    : state_(std::make_unique<ScratchState>(*this, "a caller's buffer",
                                            arena::CheckedBlocks::Memory::of_caller)) {
    state_->show_quick_path(!events::is_recording() && !platform::has_memory_tool());
    const auto address = reinterpret_cast<std::uintptr_t>(over.buffer.data());
    const std::size_t skipped = base::align_up(address, cache_line_bytes) - address;
    state_->set_buffer(over.buffer.subspan(std::min(skipped, over.buffer.size())));
    platform::mark_defined(this, sizeof *this);
}

Scratch::~Scratch() = default;

void* Scratch::allocate_slow(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument(std::string("tensorpool: scratch of ") + state_->name() +
                                    ": allocate: alignment is " + std::to_string(alignment) +
                                    " B; expected a power of two");
    }
    if (bytes == 0) return nullptr;
    events::look_for_recorder();
    const std::size_t begin = used();
    Refusal refusal;
    void* const block = state_->allocate(bytes, alignment, refusal);
    if (events::is_recording() || platform::has_memory_tool() || state_->checked != nullptr) {
        state_->end_scope_slowly();
    }
    if (events::is_recording()) {
        const auto action = block == nullptr ? TraceAction::refuse : TraceAction::scratch_allocate;
        events::record_offset(TraceAction::scratch_mark, state_->number, begin);
        events::record(action, state_->number, block, bytes, alignment);
    }
    if (block == nullptr) refuse(*state_, bytes, refusal);
    return block;
}

void* Scratch::allocate_matrix_pack(std::size_t rows, std::size_t cols, std::size_t element_bytes,
                                    std::size_t alignment) {
    return allocate(product(product(rows, cols), element_bytes), alignment);
}

PaddedMatrix Scratch::allocate_padded_matrix(std::size_t rows, std::size_t cols,
                                             std::size_t element_bytes) {
    const std::size_t bytes = product(cols, element_bytes);
    if (rows == 0 || bytes == 0) return {};
    if (bytes > std::numeric_limits<std::size_t>::max() - 2 * cache_line_bytes) {
        refuse(*state_, bytes, {"the largest size", SIZE_MAX});
    }
    std::size_t row_bytes = base::align_up(bytes, cache_line_bytes);
    if (row_bytes % few_sets_bytes == 0) row_bytes += cache_line_bytes;
    return {allocate(product(rows, row_bytes)), row_bytes};
}

std::size_t Scratch::product(std::size_t one, std::size_t other) const {
    std::size_t result = 0;
    if (!base::multiply(one, other, result)) {
        refuse(*state_, SIZE_MAX, {"the largest size", SIZE_MAX});
    }
    return result;
}

void Scratch::reserve(std::size_t bytes) {
    Refusal refusal;
    if (bytes == 0 || state_->prepare(bytes, refusal)) return;
    refuse(*state_, bytes, refusal);
}

std::size_t Scratch::trim() noexcept {
    return state_->trim();
}

bool Scratch::contains(const void* p) const noexcept {
    return state_->chunks.contain(p);
}

std::size_t Scratch::peak() const noexcept {
    return std::max(state_->peak(), used());
}

std::size_t Scratch::capacity() const noexcept {
    return state_->capacity();
}

ArenaStatistics Scratch::statistics() const noexcept {
    return state_->statistics();
}

}  // namespace tensorpool

#include "arena/scratch/scratch_state.hpp"

namespace tensorpool::arena {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
// The part of the memory available to the process up to which a surplus may grow.
constexpr double surplus_fraction = 0.75;

/// Returns the bytes from the beginning of a chunk to the first multiple of `alignment`.
std::size_t padding_of(const ScratchChunks::Chunk& chunk, std::size_t alignment) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(chunk.begin);
    return base::align_up(begin, alignment) - begin;
}

}  // namespace

std::size_t joined_bytes(std::size_t need) noexcept {
    if (need < 64 * mib) return std::max(2 * need, 16 * mib);
    return need < 512 * mib ? need + 128 * mib : need + 64 * mib;
}

ScratchChunks::~ScratchChunks() {
    drop_all();
    if (is_buffer_) platform::mark_open(chunks_.front().begin, chunks_.front().bytes());
}

void ScratchChunks::mark_freed_above(std::size_t number, std::size_t used) const noexcept {
    for (std::size_t at = number; at < chunks_.size(); ++at) {
        const Chunk& chunk = chunks_[at];
        const std::byte* const from = chunk.begin + (at == number ? used - chunk.below : 0);
        const auto bytes = static_cast<std::size_t>(chunk.end - from);
        is_buffer_ ? platform::mark_closed(from, bytes) : platform::mark_freed_within(from, bytes);
    }
}

void ScratchChunks::set_buffer(std::byte* begin, std::byte* end) {
    chunks_.push_back({.begin = begin, .end = end});
    platform::mark_closed(begin, chunks_.back().bytes());
    is_buffer_ = true;
}

bool ScratchChunks::contain(const void* p) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    return std::ranges::any_of(chunks_, [address](const Chunk& chunk) {
        const auto begin = reinterpret_cast<std::uintptr_t>(chunk.begin);
        return address >= begin && address - begin < chunk.bytes();
    });
}

bool ScratchChunks::next_has(std::size_t bytes, std::size_t alignment) const noexcept {
    if (present_ + 1 >= chunks_.size()) return false;
    const Chunk& next = chunks_[present_ + 1];
    const std::size_t padding = padding_of(next, alignment);
    return padding <= next.bytes() && bytes <= next.bytes() - padding;
}

std::size_t ScratchChunks::add_next(std::size_t needed, std::size_t wanted, std::size_t alignment,
                                    Attempt& attempt) noexcept {
    if (is_buffer_) {
        attempt.refusal = {"the buffer", chunks_.front().bytes()};
        return 0;
    }
    const std::size_t page = platform::page_bytes();
    needed = base::align_up(needed, page);
    wanted = std::max(needed, base::align_up(wanted, page));
    limits::CommitAccount account(limits::commit_budget(), limits::scope_budget);
    const auto grow = [&] {
        attempt.budget.clear();
        bool tried = false;
        const auto get = [&](std::size_t bytes) {
            tried = true;
            return append(platform::map(bytes, std::max(alignment, page)), bytes);
        };
        const std::size_t grown =
            account.take_and_get(needed, wanted, surplus_fraction, page, attempt.budget, get);
        if (grown != 0) return grown;
        attempt.refusal = tried
                              ? base::Refusal{"address space", platform::available_address_space()}
                              : account.refuse(needed, false, attempt.budget);
        attempt.refusal.missing = 0;  // counts the pages of a pool only
        return grown;
    };
    const std::size_t bytes = grow();
    return bytes == 0 && !attempt.budget.is_refused() && attempt.may_retry() ? grow() : bytes;
}

// Returns false, and gives the memory back, if there is no memory or no room for its entry.
bool ScratchChunks::append(void* memory, std::size_t bytes) noexcept {
    if (memory == nullptr) return false;
    drop_spares();
    auto* const begin = static_cast<std::byte*>(memory);
    // A pool may serve malloc, and its slow path may begin a recording, which takes the lock of the
    // registry: nothing is allocated or freed under it.
    std::vector<Chunk> chunks;
    try {
        chunks.reserve(chunks_.size() + 1);
    } catch (const std::bad_alloc&) {
        platform::unmap(memory, bytes);
        return false;
    }
    chunks = chunks_;  // has room
    chunks.push_back({.begin = begin, .end = begin + bytes, .budget = limits::scope_budget});
    const std::lock_guard guard(scratch_registry());
    chunks_.swap(chunks);
    totals_.count_growth(bytes);
    detail::add(totals_.charged_bytes, bytes);
    return true;
}

// The record is updated before the budget. So no reader that sees the budget lowered still counts
// the bytes as charged and untouched.
void ScratchChunks::give_back(const Chunk& chunk) noexcept {
    detail::add(totals_.charged_bytes, 0 - chunk.bytes());
    platform::mark_returned(chunk.begin, chunk.bytes());
    platform::unmap(chunk.begin, chunk.bytes());
    limits::commit_budget().give_back(chunk.bytes());
    if (chunk.budget != nullptr) chunk.budget->refund(chunk.bytes());
}

void ScratchChunks::drop_present() noexcept {
    const Chunk chunk = present();
    {
        const std::lock_guard guard(scratch_registry());
        chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(present_));
    }
    give_back(chunk);
    totals_.count_give_back(chunk.bytes());
}

std::size_t ScratchChunks::drop_from(std::size_t first) noexcept {
    std::size_t bytes = 0;
    while (chunks_.size() > first) {
        const Chunk chunk = chunks_.back();
        {
            const std::lock_guard guard(scratch_registry());
            chunks_.pop_back();
        }
        give_back(chunk);
        bytes += chunk.bytes();
    }
    if (bytes != 0) totals_.count_give_back(bytes);
    return bytes;
}

}  // namespace tensorpool::arena

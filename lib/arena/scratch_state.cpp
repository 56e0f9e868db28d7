#include "arena/scratch_state.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include <tensorpool/arena_options.hpp>
#include <tensorpool/snapshot.hpp>

#include "arena/scratch_registry.hpp"
#include "base/alignment.hpp"
#include "statistics/report_at_exit.hpp"

namespace tensorpool::detail {
namespace {

constexpr std::size_t granule = 64;
// A chunk that is chained doubles the scratch, but adds no more than this beyond what is asked for.
constexpr std::size_t most_chained_surplus = std::size_t{64} << 20;

// Beyond this, room for alignment is not kept ready.
constexpr std::size_t most_slack = std::size_t{4} << 20;

std::atomic<std::uint64_t> last_number = 0;

}  // namespace

ScratchState::ScratchState(Scratch& scratch, std::string name)
    // Relaxed: numbers that only have to differ.
    : number(last_number.fetch_add(1, std::memory_order_relaxed) + 1),
      scratch_(scratch),
      name_(std::move(name)) {
    statistics::report_at_exit_where_wanted();
    statistics::snapshot_sources().enter(*this);
}

ScratchState::~ScratchState() {
    // The child of a fork takes what is in the registry for whole.
    arena::scratch_registry().leave(*this);
    statistics::snapshot_sources().leave(*this);
}

void ScratchState::abandon() noexcept {
    statistics::snapshot_sources().leave(*this);
    chunks.drop_all();
}

void ScratchState::add_to(Snapshot& snapshot) const {
    snapshot.scratches.push_back(statistics());
}

ArenaStatistics ScratchState::statistics() const noexcept {
    ArenaStatistics figures;
    std::strncpy(figures.name, name(), sizeof figures.name - 1);
    figures.kind = ArenaStatistics::Kind::scratch;
    totals.add_to(figures);
    figures.reserved_bytes = figures.capacity_bytes;
    // Another thread may be between two of its words.
    figures.used_bytes = std::min<std::uint64_t>(scratch_.used(), figures.capacity_bytes);
    figures.peak_used_bytes = std::max<std::uint64_t>(peak(), figures.used_bytes);
    return figures;
}

std::size_t ScratchState::capacity() const noexcept {
    return totals.capacity_bytes.load(std::memory_order_relaxed);
}

std::size_t ScratchState::peak() const noexcept {
    return std::max<std::size_t>(totals.peak_used_bytes.load(std::memory_order_relaxed),
                                 scratch_.high_.load(std::memory_order_relaxed));
}

void ScratchState::set_buffer(std::span<std::byte> buffer) {
    chunks.set_buffer(buffer.data(), buffer.data() + buffer.size());
    totals.capacity_bytes.store(buffer.size(), std::memory_order_relaxed);
    totals.peak_capacity_bytes.store(buffer.size(), std::memory_order_relaxed);
    totals.limit_bytes.store(buffer.size(), std::memory_order_relaxed);
    use_present_chunk();
}

ScratchOperator* ScratchState::find_operator(std::string_view name) noexcept {
    if (const auto known = operators_.find(name); known != operators_.end()) return known->second;
    try {
        const arena::ScratchOperators::Entry entry = arena::scratch_operators().find_or_add(name);
        operators_.emplace(entry.name, entry.found);
        return entry.found;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void* ScratchState::allocate(std::size_t bytes, std::size_t alignment,
                             base::Refusal& refusal) noexcept {
    const std::size_t most = arena_defaults().max_allocation;
    if (bytes > most) {
        refusal = {"max_allocation", most};
        return nullptr;
    }
    alignment = std::max(alignment, granule);
    const std::size_t size = base::align_up(bytes, granule);
    for (;;) {
        const auto next =
            reinterpret_cast<std::uintptr_t>(scratch_.next_.load(std::memory_order_relaxed));
        const auto end = reinterpret_cast<std::uintptr_t>(scratch_.end_);
        const std::uintptr_t begin = base::align_up(next, alignment);
        if (next != 0 && begin >= next && begin <= end && size <= end - begin) {
            auto* const block = scratch_.end_ - (end - begin);
            scratch_.next_.store(block + size, std::memory_order_relaxed);
            return block;
        }
        if (!grow(size, alignment, refusal)) return nullptr;
    }
}

// Goes on in the next chunk: a spare one, or one from the system.
bool ScratchState::grow(std::size_t bytes, std::size_t alignment, base::Refusal& refusal) noexcept {
    const bool first = chunks.empty();
    if (first || !chunks.next_has(bytes, alignment)) {
        const std::size_t surplus = std::min(capacity(), most_chained_surplus);
        const std::size_t wanted = std::max({bytes, surplus, first_chunk_bytes});
        if (!add_chunk(bytes, wanted, alignment, refusal)) return false;
    }
    if (!first) chunks.go_on(scratch_.used());
    // In one piece with what comes before, the block may need padding.
    slack_ += std::min(alignment - granule, most_slack);
    use_present_chunk();
    return true;
}

bool ScratchState::prepare(std::size_t bytes, base::Refusal& refusal) noexcept {
    if (!is_ready_for(bytes) && !make_ready(bytes, refusal)) return false;
    prepared_ = std::max(prepared_, scratch_.used() + bytes);
    return true;
}

bool ScratchState::is_ready_for(std::size_t bytes) const noexcept {
    const std::byte* const next = scratch_.next_.load(std::memory_order_relaxed);
    return bytes <= static_cast<std::size_t>(scratch_.end_ - next) ||
           chunks.next_has(bytes, granule);
}

bool ScratchState::make_ready(std::size_t bytes, base::Refusal& refusal) noexcept {
    const bool first = chunks.empty();
    if (!add_chunk(bytes, bytes, granule, refusal)) return false;
    if (!first && (scratch_.used() != 0 || scratch_.scope() != outside)) return true;
    // In place of a chunk in which there is nothing, not beside it.
    if (!first) chunks.drop_present();
    use_present_chunk();
    scratch_.unsettled_ = scratch_.scope() != outside;
    return true;
}

bool ScratchState::add_chunk(std::size_t needed, std::size_t wanted, std::size_t alignment,
                             base::Refusal& refusal) noexcept {
    const std::size_t bytes = chunks.add_next(needed, wanted, alignment, refusal);
    if (bytes == 0) return false;
    scratch_.unsettled_ = true;
    if (innermost != nullptr) {
        innermost->growths.fetch_add(1, std::memory_order_relaxed);
        innermost->grown_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    return true;
}

void ScratchState::use_present_chunk() noexcept {
    if (chunks.empty()) {
        scratch_.chunk_ = 0;
        scratch_.end_ = nullptr;
        scratch_.next_.store(nullptr, std::memory_order_relaxed);
        scratch_.origin_.store(0, std::memory_order_relaxed);
        return;
    }
    go_back_to(chunks.present_number(), chunks.present().begin);
}

// `next` is nullptr where there was no chunk yet.
void ScratchState::go_back_to(std::size_t chunk, std::byte* next) noexcept {
    if (chunks.empty()) return;
    chunks.go_back_to(chunk);
    const arena::ScratchChunks::Chunk& present = chunks.present();
    scratch_.chunk_ = chunk;
    scratch_.end_ = present.end;
    scratch_.origin_.store(reinterpret_cast<std::uintptr_t>(present.begin) - present.below,
                           std::memory_order_relaxed);
    scratch_.next_.store(next != nullptr ? next : present.begin, std::memory_order_relaxed);
}

void ScratchState::settle() noexcept {
    const std::size_t high = scratch_.high_.load(std::memory_order_relaxed);
    const std::size_t need = std::max(high + slack_, prepared_);
    forget_need();
    scratch_.unsettled_ = false;
    if (chunks.is_buffer() || (!chunks.empty() && chunks.is_one() && need <= capacity())) return;
    chunks.drop_all();
    // Where it is refused, the next allocation asks again for what it needs.
    base::Refusal refusal;
    (void)chunks.add_next(need, arena::joined_bytes(need), granule, refusal);
    use_present_chunk();
}

void ScratchState::forget_need() noexcept {
    base::raise_to(totals.peak_used_bytes, scratch_.high_.load(std::memory_order_relaxed));
    scratch_.high_.store(0, std::memory_order_relaxed);
    prepared_ = 0;
    slack_ = 0;
}

std::size_t ScratchState::trim() noexcept {
    if (scratch_.used() != 0 || scratch_.scope() != outside) return chunks.drop_spares();
    forget_need();
    const std::size_t bytes = chunks.drop_all();
    if (chunks.empty()) use_present_chunk();
    return bytes;
}

}  // namespace tensorpool::detail

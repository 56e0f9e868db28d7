#include "arena/arena_memory.hpp"

#include "platform/tools/memory_probes.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::arena {
namespace {

using base::align_down;
using base::align_up;
using platform::page_bytes;

// An offset has 48 bits. One of them is for forks and for threads that claim at the same time and
// pass the end together. No process commits as much as the remaining 47 bits can address.
constexpr std::size_t max_reserved_bytes = std::size_t{1} << 47;

// Cached, because reading the system's files takes 100 us. If a container's limit changes later,
// only the amount that may be committed changes; excess address space does no harm. Several threads
// may compute the value at once. If they waited for one of them, a child forked at that moment
// would wait forever.
std::size_t twice_total_memory() noexcept {
    static constinit std::atomic<std::size_t> known = 0;  // relaxed: it publishes nothing else
    std::size_t twice = known.load(std::memory_order_relaxed);
    if (twice == 0) {
        twice = 2 * std::min(platform::total_memory(), max_reserved_bytes / 2);
        known.store(twice, std::memory_order_relaxed);
    }
    return twice;
}

// Three quarters of the 128 TiB of addresses that a process has at least. The n-th living arena
// without a maximum capacity gets one part in 16 n of them: ten thousand arenas take 61 % of this
// range, a million 90 %.
constexpr std::size_t addresses_for_arenas = (std::size_t{1} << 47) / 4 * 3;
constinit std::atomic<std::size_t> arenas_that_share = 0;  // relaxed: it publishes nothing else

std::size_t share_of_addresses() noexcept {
    const std::size_t others = arenas_that_share.fetch_add(1, std::memory_order_relaxed);
    const std::size_t share = addresses_for_arenas / 16 / (others + 1);
    return std::min(twice_total_memory(), align_down(share, platform::huge_page_bytes));
}

}  // namespace

ArenaMemory::~ArenaMemory() {
    if (is_one_of_many_) arenas_that_share.fetch_sub(1, std::memory_order_relaxed);
    if (base_ == nullptr) return;
    platform::mark_returned(base_, committed_);
    platform::release(base_, reserved_);
    totals_.charged_bytes.store(0, std::memory_order_relaxed);
    account_.give_back(committed_ - uncharged_);
}

bool ArenaMemory::reserve(std::size_t max_capacity, std::size_t alignment) noexcept {
    is_one_of_many_ = max_capacity == 0;
    limit_ = std::min(is_one_of_many_ ? share_of_addresses() : max_capacity, max_reserved_bytes);
    limit_name_ = max_capacity != 0 ? "max_capacity" : "reserved address space";
    const std::size_t space = platform::available_address_space();
    if (space != SIZE_MAX && space / 4 < limit_) {
        limit_ = align_down(space / 4, page_bytes());
        limit_name_ = "a quarter of the address space that RLIMIT_AS left";
    }
    alignment = std::max(alignment, platform::huge_page_bytes);
    while (!reserve_limit(alignment)) {
        // If the caller set no limit, a smaller range will do: some tools leave a program little
        // address space.
        if (max_capacity != 0 || limit_ < alignment) return false;
        limit_ /= 2;
    }
    totals_.reserved_bytes.store(reserved_, std::memory_order_relaxed);
    totals_.limit_bytes.store(limit_, std::memory_order_relaxed);
    return true;
}

bool ArenaMemory::reserve_limit(std::size_t alignment) noexcept {
    const std::size_t bytes = align_up(limit_, page_bytes());
    if (bytes == 0) return false;
    base_ = static_cast<std::byte*>(platform::reserve(bytes, alignment));
    reserved_ = base_ != nullptr ? bytes : 0;
    return base_ != nullptr;
}

std::size_t ArenaMemory::grow_to(std::size_t end, const GrowthPolicy& growth,
                                 Attempt& attempt) noexcept {
    attempt.budget.clear();
    if (end > limit_) {
        attempt.refusal = {limit_name_, limit_};
        attempt.refusal.needed_limit = end;
        return 0;
    }
    const std::size_t needed = align_up(end, page_bytes()) - committed_;
    bool tried = false;
    const std::size_t grown =
        account_.take_and_get(needed, wanted(needed, growth), growth.fraction, page_bytes(),
                              attempt.budget, [&](std::size_t bytes) {
                                  tried = true;
                                  return commit(bytes);
                              });
    if (grown == 0) {
        note_refusal(needed, tried, attempt);
        return 0;
    }
    totals_.count_growth(grown);
    record_charge();
    return grown;
}

bool ArenaMemory::charge(Attempt& attempt) noexcept {
    if (is_charged()) return true;
    attempt.budget.clear();
    if (account_.take(uncharged_, uncharged_, 1.0, page_bytes(), attempt.budget) == 0) {
        note_refusal(uncharged_, false, attempt);
        return false;
    }
    uncharged_ = 0;
    record_charge();
    return true;
}

std::size_t ArenaMemory::wanted(std::size_t needed, const GrowthPolicy& growth) const noexcept {
    const std::size_t room = reserved_ - committed_;
    const double by_factor = static_cast<double>(committed_) * growth.factor;
    std::size_t most = std::max(needed, std::min(growth.step, room));
    if (by_factor >= static_cast<double>(room)) return room;
    most = std::max(most, static_cast<std::size_t>(by_factor));
    return std::min(align_up(most, page_bytes()), room);
}

void ArenaMemory::touch(std::size_t bytes) noexcept {
    const std::size_t whole = align_up(bytes, page_bytes());
    const std::size_t touched = std::min(whole, committed_);
    if (touched == 0 || !platform::prefault(base_, touched)) return;
    base::raise_to(totals_.touched_bytes, touched);
}

// Called after the charge has grown, and before it is given back to the budgets. So no reader that
// sees a budget lowered still counts the bytes as charged and untouched.
void ArenaMemory::record_charge() noexcept {
    totals_.charged_bytes.store(committed_ - uncharged_, std::memory_order_relaxed);
}

std::size_t ArenaMemory::give_back_above(std::size_t offset) noexcept {
    const std::size_t kept = align_up(offset, page_bytes());
    if (kept >= committed_) return 0;
    const std::size_t bytes = committed_ - kept;
    if (!platform::decommit(base_ + kept, bytes)) return 0;
    platform::probe_unmapping(base_ + kept, bytes);
    platform::mark_returned(base_ + kept, bytes);
    const bool was_charged = is_charged();
    committed_ = kept;
    if (!was_charged) uncharged_ = kept;
    record_charge();
    base::lower_to(totals_.touched_bytes, kept);
    if (was_charged) account_.give_back(bytes);
    totals_.count_give_back(bytes);
    return bytes;
}

}  // namespace tensorpool::arena

// How the content of entries moves between memory, compressed memory and files. The entry is busy
// meanwhile, and the lock is taken only to exchange what it has.

#include "pool/pool.hpp"
#include "rest/map/map_state.hpp"

namespace tensorpool::stashing {
namespace {

constexpr int attempts_to_lock = 64;
/// Of a budget, one part in so many is for compressed tensors if others go to a file: in their
/// memory, tensors can stay that then need no encoding, which takes longest.
/// perf/results/stash.md
constexpr std::size_t part_to_compress = 16;

EntrySizes sizes_of(const StashState& rest) noexcept {
    return {.compressed = rest.bytes_in_memory(),
            .spilled = rest.bytes_in_file(),
            .at_rest = rest.size()};
}

}  // namespace

// What it writes may be all the memory that a budget still lacks, so the reserve is freed first.
// The tensor's block may become the next one.
std::optional<std::size_t> MapState::put_to_rest(TakenTensor taken) noexcept {
    if (taken.tensor) {
        const std::size_t bytes = usable_bytes(taken.tensor);
        return bytes - std::min(bytes, reserve_.refill(pool_, std::move(taken.tensor)));
    }
    if (taken.entry == nullptr) return std::nullopt;
    MapEntry& entry = *taken.entry;
    const std::uint64_t begin = platform::monotonic_clock_ns();
    const std::size_t from_reserve = reserve_.free();
    std::unique_ptr<StashState> rest;
    try {
        rest = encode(entry);
    } catch (const std::exception& error) {
        reserve_.refill(pool_, {});
        return fail(entry, error);
    }
    const EntrySizes sizes = sizes_of(*rest);
    const bool shrinks = sizes.compressed < usable_bytes(entry.tensor);
    const std::size_t before = usable_bytes(entry.tensor) + from_reserve;
    PooledAllocation freed;
    {
        const std::lock_guard guard(mutex_);
        totals_.stash_ns += platform::monotonic_clock_ns() - begin;
        entry.does_not_shrink = !shrinks;
        if (shrinks) {
            ++totals_.stashes;
            entry.rest = std::move(rest);
            freed = std::move(entry.tensor);
        }
        entries_.finish(entry, shrinks ? sizes : entry.counted);
    }
    rest.reset();
    const std::size_t after = sizes.compressed + reserve_.refill(pool_, std::move(freed));
    return shrinks ? before - std::min(before, after) : 0;
}

// Other threads may have taken the memory of the reserve. Then a file takes the encoding, or the
// process's pool does, so that the tensor's memory can serve the request.
std::unique_ptr<StashState> MapState::encode(const MapEntry& entry) const {
    const bool may_spill = !options_.folder.empty();
    const auto encode_by = [&](StashMethod method, MemoryPool& pool) {
        return std::make_unique<StashState>(
            entry.tensor.as<const std::byte>(),
            StashState::Origin{.pool = &pool_, .alignment = entry.alignment},
            StashOptions{.name = options_.name,
                         .type = options_.type,
                         .method = method,
                         .folder = options_.folder,
                         .pool = &pool},
            &work_pool_);
    };
    try {
        return encode_by(may_spill ? StashMethod::by_cost : StashMethod::compress, pool_);
    } catch (const AllocationError&) {
        return encode_by(may_spill ? StashMethod::spill : StashMethod::compress, work_pool_);
    }
}

std::optional<std::size_t> MapState::spill(MapEntry& entry) noexcept {
    const std::uint64_t begin = platform::monotonic_clock_ns();
    const bool is_kept = entry.is_in_memory();
    std::unique_ptr<StashState> spilled;
    try {
        if (!options_.folder.empty()) spilled = entry.rest->copy_in_file();
    } catch (const std::exception& error) {
        if (!is_kept) return fail(entry, error);
        const std::lock_guard guard(mutex_);
        note(error);
    }
    EntrySizes sizes = spilled == nullptr ? EntrySizes() : sizes_of(*spilled);
    if (is_kept) {
        sizes.in_memory = entry.bytes;
        sizes.at_rest = 0;
    }
    const std::size_t before = entry.rest->bytes_in_memory();
    const std::lock_guard guard(mutex_);
    totals_.stash_ns += platform::monotonic_clock_ns() - begin;
    if (spilled != nullptr) ++totals_.spills;
    entry.rest.swap(spilled);
    entries_.finish(entry, sizes);
    return before - std::min(before, sizes.compressed);
}

// Goes to the end of its list, so that the next attempt takes another entry.
std::nullopt_t MapState::fail(MapEntry& entry, const std::exception& error) noexcept {
    const std::lock_guard guard(mutex_);
    note(error);
    entries_.finish(entry, entry.counted);
    return std::nullopt;
}

void MapState::note(const std::exception& error) noexcept {
    ++totals_.failures;
    std::snprintf(last_failure_, sizeof last_failure_, "%s", error.what());
}

void MapState::restore(MapEntry& entry, Access access) {
    make_room();
    PooledAllocation tensor = allocate(entry);
    const std::uint64_t begin = platform::monotonic_clock_ns();
    entry.rest->decode_to(tensor.as<std::byte>());
    const std::uint64_t end = platform::monotonic_clock_ns();
    std::unique_ptr<StashState> freed;  // outside the lock
    const std::lock_guard guard(mutex_);
    totals_.restore_ns += end - begin;
    ++totals_.restores;
    incoming_bytes_ -= entry.bytes;
    entry.tensor = std::move(tensor);
    EntrySizes sizes = {.in_memory = entry.bytes};
    if (access == Access::write || !entry.is_attached) {
        freed = std::move(entry.rest);
    } else {
        sizes.compressed = entry.counted.compressed;
        sizes.spilled = entry.counted.spilled;
    }
    entries_.finish(entry, sizes);
}

// A pool with a limit of its own asks no holder.
PooledAllocation MapState::allocate(const MapEntry& entry) {
    const OwnRequest own(pool_);
    for (;;) {
        try {
            return restored_block(pool_, entry.bytes, entry.alignment);
        } catch (const AllocationError&) {
            if (give_entries(entry.bytes) == 0) throw;
        }
    }
}

void MapState::make_room() noexcept {
    reserve_.refill(pool_, {});
    const auto exceeds = [](std::size_t bytes, std::size_t limit) {
        return limit != 0 && bytes > limit;
    };
    const auto put_one_to_rest = [&] {
        std::unique_lock lock(mutex_);
        if (!exceeds(totals_.memory_bytes + incoming_bytes_, options_.memory_bytes)) return false;
        TakenTensor taken = entries_.take_oldest_in_memory();
        lock.unlock();
        return put_to_rest(std::move(taken)).has_value();
    };
    const std::size_t most_compressed = compressed_limit();
    const auto spill_one = [&] {
        std::unique_lock lock(mutex_);
        if (!exceeds(totals_.compressed_bytes, most_compressed)) return false;
        auto entry = entries_.take_oldest_compressed();
        if (entry == nullptr) entry = entries_.take_oldest_kept();
        lock.unlock();
        return entry != nullptr && spill(*entry);
    };
    while (put_one_to_rest()) continue;
    while (spill_one()) continue;
}

std::size_t MapState::compressed_limit() const noexcept {
    const bool has_default = !options_.folder.empty() && budget_.node() != nullptr;
    if (options_.compressed_bytes != 0 || !has_default) return options_.compressed_bytes;
    const BudgetStatistics budget = budget_.node()->statistics();
    return (budget.hard_bytes != 0 ? budget.hard_bytes : budget.soft_bytes) / part_to_compress;
}

std::size_t MapState::available() const noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return SIZE_MAX;
    const std::size_t compressed = totals_.compressed_bytes;
    return totals_.memory_bytes + (options_.folder.empty() ? entries_.kept_bytes() : compressed);
}

std::size_t MapState::give(std::size_t bytes) noexcept {
    const std::size_t given = give_entries(bytes);
    if (given != 0 && budget_.node() != nullptr && !OwnRequest::is_for(pool_))
        detail::give_free_memory_of_pools(*budget_.node(), given);
    return given;
}

std::size_t MapState::give_entries(std::size_t bytes) noexcept {
    std::size_t given = 0;
    const auto give_by = [&](auto step) {
        while (given < bytes) {
            const std::optional<std::size_t> gained = (this->*step)();
            if (!gained) break;
            given += *gained;
        }
    };
    give_by(&MapState::give_oldest_in_memory);
    give_by(&MapState::give_oldest_compressed);
    return given;
}

std::optional<std::size_t> MapState::give_oldest_in_memory() noexcept {
    std::unique_lock lock = try_to_lock();
    if (!lock) return std::nullopt;
    TakenTensor taken = entries_.take_oldest_in_memory();
    lock.unlock();
    return put_to_rest(std::move(taken));
}

// An encoding that is kept is worth an encoding, so it is not given before tensors are encoded: a
// tensor would then be encoded for each that is only read.
std::optional<std::size_t> MapState::give_oldest_compressed() noexcept {
    std::unique_lock lock = try_to_lock();
    if (!lock) return std::nullopt;
    std::shared_ptr<MapEntry> entry = entries_.take_oldest_kept();
    if (entry == nullptr && !options_.folder.empty()) entry = entries_.take_oldest_compressed();
    lock.unlock();
    return entry == nullptr ? std::nullopt : spill(*entry);
}

std::unique_lock<std::mutex> MapState::try_to_lock() noexcept {
    std::unique_lock lock(mutex_, std::try_to_lock);
    for (int attempt = 1; !lock && attempt < attempts_to_lock; ++attempt) {
        std::this_thread::yield();
        (void)lock.try_lock();
    }
    return lock;
}

}  // namespace tensorpool::stashing

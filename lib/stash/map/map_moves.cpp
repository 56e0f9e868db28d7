// How the content of entries moves between memory, compressed memory and files. The entry is busy
// meanwhile, and the lock is taken only to exchange what it has.

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include <tensorpool/errors.hpp>

#include "platform/platform.hpp"
#include "stash/map/map_state.hpp"
#include "stash/map/own_request.hpp"
#include "stash/restored_block.hpp"
#include "statistics/budget/budgets.hpp"

namespace tensorpool::stashing {
namespace {

constexpr int attempts_to_lock = 64;

EntrySizes sizes_of(const StashState& rest) noexcept {
    return {.compressed = rest.bytes_in_memory(),
            .spilled = rest.bytes_in_file(),
            .at_rest = rest.size()};
}

}  // namespace

std::shared_ptr<MapEntry> MapState::take_oldest(EntryList& list) noexcept {
    MapEntry* const entry = list.first();
    if (entry == nullptr) return nullptr;
    EntryList::remove(*entry);
    entry->is_busy = true;
    return entry->shared_from_this();
}

// What it writes may be all the memory that a budget still lacks, so the reserve is freed first.
// The tensor's block may become the next one.
std::optional<std::size_t> MapState::put_to_rest(MapEntry& entry) noexcept {
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
        finish(entry, shrinks ? sizes : entry.counted);
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
    std::unique_ptr<StashState> spilled;
    try {
        spilled = entry.rest->copy_in_file();
    } catch (const std::exception& error) {
        return fail(entry, error);
    }
    const EntrySizes sizes = sizes_of(*spilled);
    const std::size_t before = entry.rest->bytes_in_memory();
    const std::lock_guard guard(mutex_);
    totals_.stash_ns += platform::monotonic_clock_ns() - begin;
    ++totals_.spills;
    entry.rest.swap(spilled);
    finish(entry, sizes);
    return before - std::min(before, sizes.compressed);
}

// Goes to the end of its list, so that the next attempt takes another entry.
std::nullopt_t MapState::fail(MapEntry& entry, const std::exception& error) noexcept {
    const std::lock_guard guard(mutex_);
    ++totals_.failures;
    std::snprintf(last_failure_, sizeof last_failure_, "%s", error.what());
    finish(entry, entry.counted);
    return std::nullopt;
}

void MapState::restore(MapEntry& entry) {
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
    freed = std::move(entry.rest);
    finish(entry, {.in_memory = entry.bytes});
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
    const auto take = [this](std::size_t limit, auto used, EntryList& list) {
        const std::lock_guard guard(mutex_);
        return limit != 0 && used() > limit ? take_oldest(list) : nullptr;
    };
    const auto in_memory = [this] { return totals_.memory_bytes + incoming_bytes_; };
    while (const auto entry = take(options_.memory_bytes, in_memory, in_memory_))
        if (!put_to_rest(*entry)) break;
    const auto compressed = [this] { return totals_.compressed_bytes.load(); };
    while (const auto entry = take(options_.compressed_bytes, compressed, compressed_))
        if (!spill(*entry)) break;
}

std::size_t MapState::available() const noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return SIZE_MAX;
    const std::size_t compressed = totals_.compressed_bytes;
    return totals_.memory_bytes + (options_.folder.empty() ? 0 : compressed);
}

std::size_t MapState::give(std::size_t bytes) noexcept {
    const std::size_t given = give_entries(bytes);
    if (given != 0 && budget_.node() != nullptr && !OwnRequest::is_for(pool_))
        statistics::give_free_memory(*budget_.node(), given);
    return given;
}

std::size_t MapState::give_entries(std::size_t bytes) noexcept {
    std::size_t given = 0;
    while (given < bytes) {
        const std::shared_ptr<MapEntry> entry = try_to_take_oldest(in_memory_);
        const auto gained = entry == nullptr ? std::nullopt : put_to_rest(*entry);
        if (!gained) break;
        given += *gained;
    }
    while (given < bytes && !options_.folder.empty()) {
        const std::shared_ptr<MapEntry> entry = try_to_take_oldest(compressed_);
        const auto gained = entry == nullptr ? std::nullopt : spill(*entry);
        if (!gained) break;
        given += *gained;
    }
    return given;
}

// The lock is held only for some instructions, unless this thread holds it.
std::shared_ptr<MapEntry> MapState::try_to_take_oldest(EntryList& list) noexcept {
    for (int attempt = 0; attempt < attempts_to_lock; ++attempt) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock) return take_oldest(list);
        std::this_thread::yield();
    }
    return nullptr;
}

}  // namespace tensorpool::stashing

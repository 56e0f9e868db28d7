#pragma once

#include <map>

#include <tensorpool/device/capture_pool.hpp>

#include "device/caching/scalars.hpp"

namespace tensorpool::device {

/// Tracks which streams are captured into a graph, and holds memory reserved for such captures. A
/// capture, or a pool that captures share, keeps the memory that it uses until it is released.
///
/// A hit makes no call to the device while no capture is known: none was begun through the backend,
/// none announced, and none found. Slow paths find captures that the program began by other means.
class Captures {
public:
    explicit Captures(AllocatorState& state) : state_(state), reserved_(nullptr, 0) {}

    /// Returns the number of the private memory that serves the stream, that of a pool or of its
    /// capture; 0: none. Asks the device only if a capture is known. Any thread, without the lock.
    std::uint64_t of(StreamHandle stream) const noexcept {
        const bool known =
            (state_.gate.load(std::memory_order_relaxed) & AllocatorState::captures) != 0;
        return known || state_.is_capture_under_way() ? look(stream) : 0;
    }
    /// Like `of`, for a slow path whose caller names the stream: always asks.
    std::uint64_t look(StreamHandle stream) const noexcept {
        const std::uint64_t pool = pool_of(stream);
        if (pool != 0 || !state_.abilities.graph_capture) return pool;
        return state_.calls.is_captured(stream) ? state_.calls.capture_of(stream) : 0;
    }
    /// Remembers what `look` returned for a stream. Throws std::bad_alloc.
    void remember(StreamHandle stream, std::uint64_t capture) {
        forget(stream);
        if (capture == 0 || capture >= first_pool ||
            state_.backend.owns_stream(state_.device, stream)) {
            return;
        }
        found_.push_back({stream, capture});
        set_gate();
    }
    /// Forgets the captures found in a stream that ends.
    void forget(StreamHandle stream) noexcept {
        if (found_.empty()) return;
        std::erase_if(found_, [stream](const Found& one) { return one.stream == stream; });
        set_gate();
    }
    /// Forgets a capture whose graph was destroyed.
    void forget_capture(std::uint64_t id) noexcept {
        std::erase_if(found_, [id](const Found& one) { return one.capture == id; });
        set_gate();
    }
    /// Whether a capture is known, so that the device may not be waited for.
    bool is_any_active() const noexcept {
        return state_.is_capture_under_way() || announced_ != 0 || !found_.empty() ||
               !pools_in_use_.empty();
    }

    /// A capture begins or ends, as announced by the program.
    void begin() noexcept {
        ++announced_;
        set_gate();
    }
    void end() noexcept {
        if (announced_ != 0) --announced_;
        if (announced_ == 0) found_.clear();
        set_gate();
    }

    /// Work of the streams for which `takes_part` returns true uses the memory of the pool from now
    /// on. Throws std::bad_alloc, and then changes nothing.
    void begin_pool(CapturePool pool, std::function<bool(StreamHandle)> takes_part) {
        const auto known =
            pools_.try_emplace(pool, KnownPool{first_pool + last_pool_ + 1, 0}).first;
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
    /// Ends the latest `begin_pool` of this pool. Returns its number; 0 if there is none.
    std::uint64_t end_pool(CapturePool pool) noexcept {
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
    /// Whether the pool with this number is still used by a graph.
    bool knows(std::uint64_t pool) const noexcept {
        return std::ranges::any_of(pools_,
                                   [&](auto& known) { return known.second.number == pool; });
    }
    /// Whether the number is one of a pool, or of no capture.
    static bool is_pool(std::uint64_t number) noexcept { return number >= first_pool; }
    /// Gives up one use of the pool. Returns its number if that was the last, and otherwise 0.
    std::uint64_t give_up_pool(CapturePool pool) noexcept {
        const auto known = pools_.find(pool);
        if (known == pools_.end() || --known->second.uses != 0) return 0;
        const std::uint64_t number = known->second.number;
        pools_.erase(known);
        return number;
    }

    /// Opens the fast path, or closes it if something must see each call.
    void set_gate() noexcept {
        const bool asks = announced_ != 0 || !found_.empty() || !pools_in_use_.empty();
        const unsigned gate = (state_.watch.wants_all() ? unsigned{AllocatorState::watched} : 0U) |
                              (asks ? unsigned{AllocatorState::captures} : 0U) |
                              (state_.asleep ? unsigned{AllocatorState::sleeping} : 0U);
        state_.gate.store(gate, std::memory_order_relaxed);
    }

    /// Moves the smallest reserved slab that fits to the stream. Returns false if there is none.
    /// Throws std::bad_alloc.
    bool take_reserved(StreamCache& cache, const Request& request) {
        Slab* best = nullptr;
        for (Slab& slab : reserved_.memory.slabs) {
            const bool fits = slab.bytes >= request.rounded;
            if (fits && (best == nullptr || slab.bytes < best->bytes)) best = &slab;
        }
        if (best == nullptr) return false;
        state_.heap.move_slab(*best, cache, request.pool);
        return true;
    }
    StreamCache& reserved() noexcept { return reserved_; }
    bool has_slabs_of(const StreamCache& cache) const noexcept {
        return cache.capture() != 0 || &cache == &reserved_;
    }

private:
    // The numbers of pools differ from those of captures, which count up from 1.
    static constexpr std::uint64_t first_pool = std::uint64_t{1} << 63;

    struct Found {
        StreamHandle stream;
        std::uint64_t capture;
    };
    struct KnownPool {
        std::uint64_t number;  // of its private memory
        unsigned uses;
    };
    struct PoolInUse {
        CapturePool pool;
        std::uint64_t number;
        std::function<bool(StreamHandle)> takes_part;
    };

    std::uint64_t pool_of(StreamHandle stream) const noexcept {
        const std::lock_guard guard(pools_mutex_);
        const auto found = std::find_if(
            pools_in_use_.rbegin(), pools_in_use_.rend(),
            [stream](const auto& used) { return used.takes_part(StreamCalls::handle_of(stream)); });
        return found != pools_in_use_.rend() ? found->number : 0;
    }

    AllocatorState& state_;
    StreamCache reserved_;  // holds slabs for later captures
    unsigned announced_ = 0;
    std::vector<Found> found_;  // begun by other code, found while one was under way
    std::map<CapturePool, KnownPool> pools_;
    std::uint64_t last_pool_ = 0;
    // A leaf lock. Changes are also made under the allocator's lock.
    mutable std::mutex pools_mutex_;
    std::vector<PoolInUse> pools_in_use_;
};

inline std::size_t index(const Block& block) noexcept {
    return static_cast<std::size_t>(block.slab->pool);
}

/// The number of searches in which a free block could have been used but was not.
inline std::uint64_t age(const Block* block) noexcept {
    const StreamCache& cache = *block->home.load(std::memory_order_relaxed);
    return cache.memory.searches[index(*block)] - block->born;
}

inline bool has_granules(const Block& block) noexcept {
    const Slab& slab = *block.slab;
    const auto begin = static_cast<std::size_t>(block.address - slab.base);
    return base::align_up(begin, slab.granule) <
           base::align_down(begin + block.bytes, slab.granule);
}

/// Whether its slab stays when the block is released: an expandable range for many blocks.
inline bool keeps_addresses(const Block& block) noexcept {
    return block.slab->is_expandable() && block.slab->pool != Pool::shareable;
}

inline std::uint64_t mean_age(const std::vector<Block*>& blocks) noexcept {
    std::uint64_t sum = 0;
    for (const Block* block : blocks) sum += age(block);
    return blocks.empty() ? 0 : sum / blocks.size();
}

/// Releases memory without blocks in use to the device, once no work uses it. The memory that was
/// unused for longest is released first.
class Reclaim {
public:
    Reclaim(AllocatorState& state, FreeBlocks& free, Captures& captures) noexcept
        : state_(state), free_(free), captures_(captures) {}

    enum class Which : std::uint8_t { all, aged, whole_slabs, shareable };
    /// Releases about `bytes`, or with `aged` all that is older than the mean age. Returns how many
    /// bytes the device took back. Throws std::bad_alloc and then changes nothing.
    std::size_t give_back(Which which, std::size_t bytes) {
        if (state_.asleep) return 0;  // what is mapped belongs to Sleep
        give_lost_back();
        std::vector<Block*> found;
        for (const auto& cache : state_.caches) {
            if (cache->capture() != 0 || cache->memory.slabs.empty()) continue;
            look_at_marks(*cache);
            collect_idle(*cache, which, found);
        }
        if (which == Which::aged) {
            const std::uint64_t mean = mean_age(found);
            std::erase_if(found, [&](const Block* block) { return age(block) < mean; });
        }
        std::ranges::stable_sort(found, std::greater(), age);
        take_out(found, bytes);
        return give_back(found);
    }
    /// Releases shareable blocks that were freed, as soon as no work uses them. Cheap if there are
    /// none.
    void give_back_shareable() noexcept try {
        const auto waits = [](const auto& cache) {
            return !cache->memory.free[static_cast<std::size_t>(Pool::shareable)].empty();
        };
        if (std::ranges::any_of(state_.caches, waits)) {
            (void)give_back(Which::shareable, max_bytes);
        }
    } catch (...) {
        return;  // no memory for the list of blocks to release: a later call releases them
    }
    /// Releases aged memory if a growth would exceed the soft limit.
    void keep_soft_limit(std::size_t growth) {
        const std::size_t capacity = state_.capacity() + growth;
        if (state_.soft_limit == 0 || capacity <= state_.soft_limit) return;
        const std::size_t bytes = give_back(Which::aged, capacity - state_.soft_limit);
        if (bytes != 0) state_.watch.write(EntryKind::aged, bytes);
    }
    /// Waits for all work of the device. Returns false if the wait failed, or while a stream is
    /// being captured, because the wait would end the capture.
    bool wait_for_device() noexcept try {
        if (captures_.is_any_active()) return false;
        struct Awaited {
            std::uint64_t stamp;
            std::uint64_t uses;
        };
        std::vector<Awaited> awaited;
        awaited.reserve(state_.caches.size());
        free_.complete();  // records the events of uses that waited for the end of a capture
        for (const auto& cache : state_.caches) {
            awaited.push_back({cache->memory.marks.begin_wait(), cache->memory.queue.added});
        }
        DeviceStatus status = DeviceStatus::ok;
        {
            const Unlocked unlocked(state_.mutex);
            status = state_.backend.synchronize_device(state_.device);
            if (status == DeviceStatus::ok && state_.abilities.late_free_size) {
                (void)state_.backend.settle_memory(state_.device);
            }
        }
        detail::add(state_.totals.synchronizations, 1);
        if (status != DeviceStatus::ok) return false;
        // Caches added in the meantime are at the end of the list and have marks of their own.
        for (std::size_t i = 0; i < awaited.size(); ++i) {
            StreamCache& cache = *state_.caches[i];
            cache.memory.marks.pass(awaited[i].stamp);
            free_.complete_up_to(cache, awaited[i].uses);
        }
        return true;
    } catch (...) {
        return false;  // no memory for a list
    }
    /// Waits for all work of the device, releases what is free by then, and returns its bytes.
    std::size_t synchronize() noexcept try {
        if (!wait_for_device()) return 0;
        free_.complete();
        free_.flush_all();
        return give_back(Which::all, max_bytes);
    } catch (...) {
        return 0;  // no memory for a list
    }
    /// Leaves a mark in the stream of a caller that grows, if the stream cannot be asked later.
    void mark_caller(StreamCache& cache) noexcept {
        if (cache.capture() != 0 || state_.calls.may_ask(cache.stream())) return;
        look_at_marks(cache);
        if (!cache.memory.marks.is_waiting()) leave_mark(cache);
    }
    /// Waits until other threads have released their memory; until then it counts as held.
    void wait_for_returns() {
        if (AllocatorWatch::is_in_callback()) return;
        wait_unlocked(state_.grown, state_.mutex, [this] { return state_.returns == 0; });
    }
    /// Lets a device that counts freed memory late count it now.
    void settle_memory() noexcept {
        if (!state_.abilities.late_free_size) return;
        const Unlocked unlocked(state_.mutex);
        (void)state_.backend.settle_memory(state_.device);
    }

    /// Takes about `bytes` of free granules of this size with no pending work out of the sets:
    /// first those of `first`, then those of other streams. Throws std::bad_alloc and then changes
    /// nothing.
    std::vector<Block*> take_idle_granules(StreamCache& first, std::size_t granule,
                                           std::size_t bytes) {
        std::vector<Block*> found;
        if (bytes == 0) return found;
        const auto collect = [&](StreamCache& cache) {
            if (cache.capture() != 0 || cache.memory.slabs.empty()) return;
            look_at_marks(cache);
            collect_idle(cache, Which::all, found);
        };
        collect(first);
        for (const auto& cache : state_.caches) {
            if (cache.get() != &first) collect(*cache);
        }
        // Other processes may have opened the granules of shareable blocks.
        std::erase_if(found, [granule](const Block* block) {
            return block->slab->granule != granule || block->slab->pool == Pool::shareable;
        });
        take_out(found, bytes);
        return found;
    }
    /// Unmaps all granules of a taken block, whose handles stay in the table. Returns false, with
    /// the block marked kept, or lost if the device can neither unmap nor map all of it. Called
    /// without the lock.
    // One call for each granule, so that it is known what is mapped if the device refuses.
    bool unmap(Block& block) noexcept {
        const std::size_t granule = block.slab->granule;
        for (std::byte* at = block.address; at != block.end(); at += granule) {
            if (state_.backend.unmap_memory(state_.device, at, granule) == DeviceStatus::ok)
                continue;
            if (map_again(block, at)) {
                block.set(BlockState::kept);
            } else {
                block.set(BlockState::lost);
                if (at != block.address) {
                    state_.watch.losing(block.address,
                                        static_cast<std::size_t>(at - block.address));
                }
                destroy_granules(block, at);
            }
            return false;
        }
        state_.watch.losing(block.address, block.bytes);
        return true;
    }
    /// Unmaps and frees what is mapped of a run of granules. One that the device does not unmap
    /// stays mapped. Returns the bytes that the device took back. Needs no lock if the run is the
    /// caller's.
    std::size_t unmap_rest(Slab& slab, std::byte* begin, const std::byte* end) noexcept {
        std::size_t bytes = 0;
        for (std::byte* at = begin; at != end; at += slab.granule) {
            MemoryHandle& handle = slab.granule_at(at);
            if (handle == nullptr) continue;
            if (state_.backend.unmap_memory(state_.device, at, slab.granule) != DeviceStatus::ok) {
                continue;
            }
            state_.watch.losing(at, slab.granule);
            (void)state_.backend.destroy_memory(state_.device, std::exchange(handle, nullptr));
            bytes += slab.granule;
        }
        return bytes;
    }
    /// Ends what `unmap` or a release began: puts kept blocks back into the sets, and removes the
    /// others. Returns the bytes of those that were removed.
    std::size_t settle(const std::vector<Block*>& blocks) noexcept {
        std::size_t bytes = 0;
        for (Block* const block : blocks) {
            if (block->is(BlockState::kept)) {
                state_.heap.put_back(*block, block->stamp);
                continue;
            }
            if (block->is(BlockState::lost)) {
                keep_lost(*block);
                continue;
            }
            bytes += block->bytes;
            if (keeps_addresses(*block)) {
                state_.heap.unmapped(*block);
            } else {
                state_.heap.remove_slab(*block->slab);
            }
        }
        return bytes;
    }

private:
    /// Keeps a lost block until the device takes back the rest of it.
    void keep_lost(Block& block) noexcept { block.link = std::exchange(lost_, &block); }
    /// Queries how far the stream has progressed, and leaves a mark in it if work is pending.
    void look_at_marks(StreamCache& cache) noexcept {
        StreamMarks& marks = cache.memory.marks;
        const bool may_ask = state_.calls.may_ask(cache.stream());
        if (may_ask && state_.calls.is_captured(cache.stream())) return;
        if (may_ask && is_done(state_.calls.query(cache.stream()))) {
            if (marks.is_waiting()) state_.events.give(marks.reach());
            return marks.pass_all();
        }
        if (marks.is_waiting()) {
            if (!is_done(state_.backend.query_event(state_.device, marks.event()))) return;
            state_.events.give(marks.reach());
        }
        if (may_ask) leave_mark(cache);
    }
    void leave_mark(StreamCache& cache) noexcept try {
        const EventHandle event = state_.events.take();
        if (event == nullptr) return;
        if (state_.calls.record(event, cache.stream()) == DeviceStatus::ok) {
            detail::add(state_.totals.events, 1);
            cache.memory.marks.wait_for(event);
        } else {
            state_.events.give(event);
        }
    } catch (...) {
        return;  // no memory for a mark: one is left next time
    }
    /// Collects free blocks that can be released, or that contain releasable granules.
    void collect_idle(StreamCache& cache, Which which, std::vector<Block*>& found) const {
        for (FreeSet& set : cache.memory.free) {
            for (auto block = set.rbegin(); block != set.rend(); ++block) {
                const Slab& slab = *block->slab;
                if (which == Which::shareable && slab.pool != Pool::shareable) break;
                const bool whole = !slab.is_expandable() && block->bytes == slab.bytes;
                const bool part = slab.is_expandable() && which != Which::whole_slabs &&
                                  block->bytes >= slab.granule && has_granules(*block);
                if ((whole || part) && cache.memory.marks.has_passed(block->stamp))
                    found.push_back(&*block);
            }
        }
    }
    /// Takes free blocks, or their whole granules, out of the sets until there are `bytes`. Drops
    /// the rest of the list.
    void take_out(std::vector<Block*>& blocks, std::size_t bytes) noexcept {
        std::size_t sum = 0;
        std::size_t count = 0;
        try {
            for (; count < blocks.size() && sum < bytes; ++count) {
                Block*& block = blocks[count];
                if (keeps_addresses(*block)) {
                    block = state_.heap.take_granules(*block, bytes - sum);
                } else {
                    state_.heap.take_out(*block);
                }
                sum += block->bytes;
            }
        } catch (...) {
            // No memory for a record: release only what was taken so far.
        }
        blocks.resize(count);
    }
    /// REQUIRES: the blocks are taken, and are whole slabs or whole granules.
    std::size_t give_back(std::vector<Block*>& blocks) noexcept {
        if (blocks.empty()) return 0;
        ++state_.returns;
        {
            const Unlocked unlocked(state_.mutex);
            for (Block* const block : blocks) return_to_device(*block);
        }
        if (--state_.returns == 0) state_.grown.notify_all();
        const std::size_t bytes = settle(blocks);
        if (bytes == 0) return 0;
        state_.count_give_back(bytes);
        state_.end_give_back(bytes);
        return bytes;
    }
    /// Called without the lock. A block that the device did not take back is marked kept.
    void return_to_device(Block& block) noexcept {
        const StreamHandle stream = block.home.load(std::memory_order_relaxed)->stream();
        if (state_.is_watched()) state_.watch.released(block.address, block.bytes, stream);
        if (block.slab->is_expandable()) {
            if (!unmap(block)) return;
            destroy_granules(block, block.end());
            if (keeps_addresses(block)) return;
            (void)state_.backend.release_addresses(state_.device, block.address, block.bytes);
            return;
        }
        state_.watch.losing(block.address, block.bytes);
        const DeviceStatus status = state_.backend.deallocate(state_.device, block.address,
                                                              block.bytes, state_.options.storage);
        if (status == DeviceStatus::ok) return;
        state_.watch.gained(block.address, block.bytes);
        block.set(BlockState::kept);
    }
    /// Maps the granules of a block up to `end` again.
    bool map_again(Block& block, const std::byte* end) noexcept {
        const auto count = static_cast<std::size_t>(end - block.address) / block.slab->granule;
        if (count == 0) return true;
        const std::span<const MemoryHandle> handles(&block.slab->granule_at(block.address), count);
        return state_.backend.map_memories(state_.device, block.address, block.slab->granule,
                                           handles) == DeviceStatus::ok;
    }
    /// Destroys the granules of a block up to `end`, which are not mapped.
    void destroy_granules(Block& block, const std::byte* end) noexcept {
        for (std::byte* at = block.address; at != end; at += block.slab->granule) {
            (void)state_.backend.destroy_memory(state_.device,
                                                std::exchange(block.slab->granule_at(at), nullptr));
        }
    }
    /// Unmaps the rest of the lost blocks, as far as the device does it now.
    void give_lost_back() noexcept {
        Block* list = std::exchange(lost_, nullptr);
        while (list != nullptr) {
            Block& block = *std::exchange(list, list->link);
            {
                const Unlocked unlocked(state_.mutex);
                (void)unmap_rest(*block.slab, block.address, block.end());
            }
            const std::size_t granule = block.slab->granule;
            const MemoryHandle* const first = &block.slab->granule_at(block.address);
            const std::span handles(first, block.bytes / granule);
            if (std::ranges::any_of(handles, [](MemoryHandle one) { return one != nullptr; })) {
                keep_lost(block);
                continue;
            }
            state_.count_give_back(block.bytes);
            state_.record.note_capacity();
            state_.heap.unmapped(block);
        }
    }

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
    Block* lost_ = nullptr;  // list by `link`
};

}  // namespace tensorpool::device

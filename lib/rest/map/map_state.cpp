#include <exception>

#include <tensorpool/stashed_map.hpp>

#include "kinds/kinds.hpp"
#include "platform/process/fork_handlers.hpp"
#include "pool/pool.hpp"
#include "rest/map/entry_table.hpp"

namespace tensorpool::stashing {

class MapState;

namespace {

/// Those that a fork locks.
constinit base::NeverDestroyed<base::Registry<MapState>> maps;

/// What a pin is for.
enum class Access : bool { read, write };

constexpr int attempts_to_lock = 64;
/// Of a budget, one part in so many is for compressed tensors if others go to a file: in their
/// memory, tensors can stay that then need no encoding, which takes longest.
/// perf/results/stash.md
constexpr std::size_t part_to_compress = 16;

// A negative number that becomes a size is larger.
constexpr std::size_t max_limit = std::size_t{1} << 60;

[[noreturn]] void refuse(const std::string& map, const std::string& problem) {
    throw std::invalid_argument("tensorpool: stashed map '" + map + "': " + problem);
}

/// Throws if the tensors that the map gives up would not lower what is charged to its budget.
void check_pool(const StashedMapOptions& options) {
    const detail::BudgetNode* const budget = BudgetAccess::node_of(options.budget);
    if (options.pool == nullptr || budget == nullptr) return;
    const detail::BudgetNode* const charged =
        detail::PoolAccess::of(*options.pool).parts().heap.options().budget;
    if (charged != nullptr && charged->is_within(*budget)) return;
    refuse(options.name, "the pool '" + options.pool->name() + "' " +
                             (charged == nullptr ? "has no budget" : "has another budget") +
                             "; expected one that charges '" + options.budget->name() +
                             "' or a budget below it, or no pool");
}

StashedMapOptions checked(StashedMapOptions&& options) {
    const auto check = [&](const char* limit, std::size_t bytes) {
        if (bytes <= max_limit) return;
        refuse(options.name, std::string(limit) + " is " + std::to_string(bytes) +
                                 " B; expected at most " + std::to_string(max_limit) +
                                 " B, or 0 for none");
    };
    check("memory_bytes", options.memory_bytes);
    check("compressed_bytes", options.compressed_bytes);
    check_pool(options);
    if (options.compressed_bytes != 0 && options.folder.empty())
        refuse(options.name,
               "compressed_bytes is given without a folder; expected one to spill to");
    if (!options.folder.empty()) (void)SpillStore::of_folder(options.folder, options.name);
    return std::move(options);
}

std::unique_ptr<MemoryPool> own_pool(const StashedMapOptions& options) {
    if (options.pool != nullptr) return nullptr;
    return std::make_unique<MemoryPool>(
        PoolOptions{.name = options.name, .budget = options.budget});
}

}  // namespace

/// Returns whether all maps are locked around forks.
bool watches_forks() noexcept;

/// The implementation of a StashedMap: the entries by key and by age, and the moves between memory
/// and rest.
///
/// One lock guards the entries. It is never held while memory is allocated or freed, content is
/// encoded or decoded, or a file is used: a thread marks the entry as busy instead, and threads
/// that want the same entry wait. So the map can give memory to a request of its own.
class MapState final : public MemoryHolder {
public:
    /// Throws what the constructor of StashedMap does.
    MapState(StashedMapOptions&& options, EntryTable::Equal equal)
        : options_(checked(std::move(options))),
          own_pool_(own_pool(options_)),
          pool_(own_pool_ != nullptr ? *own_pool_ : *options_.pool),
          work_pool_(store_pool()),
          budget_(options_.budget),
          table_(equal, EntryTable::Buckets(16)),
          words_(StashStatistics::Kind::map, options_.name,
                 kinds::charged_budget(detail::PoolAccess::of(pool_).parts())),
          totals_(words_.totals()),
          entries_(totals_) {
        if (!watches_forks()) throw std::bad_alloc();
        maps->enter(*this);
        if (options_.budget == nullptr) return;
        try {
            registration_ = options_.budget->add_holder(*this, {.name = options_.name});
        } catch (...) {
            maps->leave(*this);
            throw;
        }
    }
    ~MapState() override { maps->leave(*this); }
    /// Ends the registration and drops all entries that are not pinned.
    void close() noexcept {
        registration_ = HolderRegistration();
        (void)reserve_.free();
        EntryTable::Buckets dropped;
        const std::lock_guard guard(mutex_);
        table_.for_each([this](MapEntry& entry) { entries_.detach(entry); });
        dropped = table_.take_all();
    }

    /// Makes room in the table for one more entry. Throws std::bad_alloc.
    void make_bucket() {
        EntryTable::Buckets larger;
        std::unique_lock lock(mutex_);
        while (const std::size_t wanted = table_.wanted_buckets()) {
            if (larger.size() == wanted) {
                table_.exchange(larger);
            } else {
                lock.unlock();
                larger = EntryTable::Buckets(wanted);
                lock.lock();
            }
        }
        lock.unlock();
    }
    void put(std::shared_ptr<MapEntry> entry) noexcept {
        if (options_.budget != nullptr && options_.folder.empty()) reserve_.grow_to(entry->bytes);
        std::shared_ptr<MapEntry> replaced;
        {
            const std::lock_guard guard(mutex_);
            replaced = table_.remove(entry->hash, entry->key.get());
            if (replaced != nullptr) entries_.detach(*replaced);
            entries_.attach(*entry);
            table_.insert(std::move(entry));
        }
        make_room();
    }
    /// Returns a pinned entry, or nullptr if there is none. Throws what StashedMap::get does.
    std::shared_ptr<MapEntry> get(std::size_t hash, const void* key, Access access) {
        std::shared_ptr<MapEntry> entry;
        std::unique_ptr<StashState> dropped;  // outside the lock
        std::unique_lock lock(mutex_);
        entry = table_.find(hash, key);
        if (entry == nullptr) return entry;
        // A tensor whose encoding is kept is only busy while that is spilled.
        const bool is_hit = entry->is_in_memory() && (!entry->is_busy || entry->rest != nullptr);
        ++(is_hit ? totals_.hits : totals_.misses);
        if (!is_hit || access == Access::write) entries_.wait_until_idle(*entry, lock);
        entry->by_use.unlink();
        ++entry->pins;
        if (access == Access::write) entry->does_not_shrink = false;
        if (entry->is_in_memory()) {
            if (access == Access::write) dropped = entries_.take_kept(*entry);
            return entry;
        }
        entry->is_busy = true;
        incoming_bytes_ += entry->bytes;
        lock.unlock();
        try {
            restore(*entry, access);
        } catch (...) {
            lock.lock();
            ++totals_.failures;
            incoming_bytes_ -= entry->bytes;
            --entry->pins;
            entries_.finish(*entry, entry->counted);
            throw;
        }
        return entry;
    }
    void unpin(MapEntry& entry) noexcept {
        const std::lock_guard guard(mutex_);
        --entry.pins;
        entries_.list(entry);
    }
    bool erase(std::size_t hash, const void* key) noexcept {
        std::shared_ptr<MapEntry> erased;
        const std::lock_guard guard(mutex_);
        erased = table_.remove(hash, key);
        if (erased != nullptr) entries_.detach(*erased);
        return erased != nullptr;
    }
    bool contains(std::size_t hash, const void* key) const noexcept {
        std::shared_ptr<MapEntry> found;
        const std::lock_guard guard(mutex_);
        found = table_.find(hash, key);
        return found != nullptr;
    }
    void prefetch(std::size_t hash, const void* key) noexcept {
        std::shared_ptr<MapEntry> entry;
        {
            const std::lock_guard guard(mutex_);
            entry = table_.find(hash, key);
            if (entry == nullptr || entry->is_busy || entry->is_in_memory() ||
                entry->counted.spilled == 0)
                return;
            entry->is_busy = true;
        }
        entry->rest->read_ahead();
        const std::lock_guard guard(mutex_);
        entries_.finish(*entry, entry->counted);
    }

    std::size_t available() const noexcept override {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return SIZE_MAX;
        const std::size_t compressed = totals_.compressed_bytes;
        return totals_.memory_bytes +
               (options_.folder.empty() ? entries_.kept_bytes() : compressed);
    }
    std::size_t give(std::size_t bytes) noexcept override {
        const std::size_t given = give_entries(bytes);
        if (given != 0 && budget_.node() != nullptr && !OwnRequest::is_for(pool_))
            detail::give_free_memory_of_pools(*budget_.node(), given);
        return given;
    }

    MemoryPool& pool() const noexcept { return pool_; }
    const std::string& name() const noexcept { return options_.name; }
    StashedMapStatistics statistics() const noexcept {
        const std::lock_guard guard(mutex_);
        return {.entries = totals_.tensors,
                .memory_bytes = totals_.memory_bytes,
                .stashed_bytes = totals_.stashed_bytes,
                .compressed_bytes = totals_.compressed_bytes,
                .spilled_bytes = totals_.spilled_bytes,
                .hits = totals_.hits,
                .misses = totals_.misses,
                .stashes = totals_.stashes,
                .spills = totals_.spills,
                .restores = totals_.restores,
                .failures = totals_.failures,
                .stash_ns = totals_.stash_ns,
                .restore_ns = totals_.restore_ns};
    }
    std::string last_failure() const {
        char text[sizeof last_failure_];
        {
            const std::lock_guard guard(mutex_);
            std::ranges::copy(last_failure_, text);
        }
        return text;
    }

    // Around forks.
    void lock() noexcept {
        mutex_.lock();
        reserve_.lock();
    }
    void unlock() noexcept {
        reserve_.unlock();
        mutex_.unlock();
    }
    /// Called in the child, with the lock held: the threads that moved content are gone.
    void forget_movers() noexcept {
        incoming_bytes_ = 0;
        table_.for_each([this](MapEntry& entry) {
            if (entry.is_busy) entries_.finish(entry, entry.counted);
        });
    }
    MapState* next_of_all = nullptr;

private:
    /// Takes the lock, which other threads hold only for some instructions. Returns no lock if they
    /// keep it, which includes this thread.
    std::unique_lock<std::mutex> try_to_lock() noexcept {
        std::unique_lock lock(mutex_, std::try_to_lock);
        for (int attempt = 1; !lock && attempt < attempts_to_lock; ++attempt) {
            std::this_thread::yield();
            (void)lock.try_lock();
        }
        return lock;
    }
    /// Puts a tensor to rest. Returns the memory that this gained; nothing if there is no tensor or
    /// it failed.
    // What it writes may be all the memory that a budget still lacks, so the reserve is freed
    // first. The tensor's block may become the next one.
    std::optional<std::size_t> put_to_rest(TakenTensor taken) noexcept {
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
            if (!saves_memory(*rest, entry) && may_spill(entry, options_.folder))
                rest = rest->copy_in_file();
        } catch (const std::exception& error) {
            reserve_.refill(pool_, {});
            return fail(entry, error);
        }
        const EntrySizes sizes = sizes_of(*rest);
        const bool shrinks = saves_memory(*rest, entry);
        const std::size_t before = usable_bytes(entry.tensor) + from_reserve;
        PooledAllocation freed;
        {
            const std::lock_guard guard(mutex_);
            totals_.stash_ns += platform::monotonic_clock_ns() - begin;
            entry.does_not_shrink = !shrinks;
            if (!shrinks) {
                char text[sizeof last_failure_];
                base::FixedText(text, sizeof text)
                    .add(
                        "tensorpool: stashed map '%s': a tensor of %zu B would take %zu B of "
                        "memory at rest; it stays in memory",
                        options_.name.c_str(), entry.bytes, sizes.compressed);
                note(text);
            } else {
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
    // Other threads may have taken the memory of the reserve. Then a file takes the encoding, or
    // the process's pool does, so that the tensor's memory can serve the request.
    std::unique_ptr<StashState> encode(const MapEntry& entry) const {
        const bool to_file = may_spill(entry, options_.folder);
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
            return encode_by(to_file ? StashMethod::by_cost : StashMethod::compress, pool_);
        } catch (const AllocationError&) {
            return encode_by(to_file ? StashMethod::spill : StashMethod::compress, work_pool_);
        }
    }
    /// Moves the encoding of a busy entry from memory to a file. Drops it instead if it is kept
    /// beside the tensor and cannot be spilled. Returns what `put_to_rest` does.
    std::optional<std::size_t> spill(MapEntry& entry) noexcept {
        const std::uint64_t begin = platform::monotonic_clock_ns();
        const bool is_kept = entry.is_in_memory();
        std::unique_ptr<StashState> spilled;
        try {
            if (!options_.folder.empty()) spilled = entry.rest->copy_in_file();
        } catch (const std::exception& error) {
            if (!is_kept) return fail(entry, error);
            const std::lock_guard guard(mutex_);
            note(error.what());
        }
        EntrySizes sizes = spilled == nullptr ? EntrySizes() : sizes_of(*spilled);
        if (is_kept) {
            sizes.in_memory = entry.bytes;
            sizes.at_rest = 0;
        }
        const std::size_t before = entry.rest->encoded().bytes_in_memory();
        const std::lock_guard guard(mutex_);
        totals_.stash_ns += platform::monotonic_clock_ns() - begin;
        if (spilled != nullptr) ++totals_.spills;
        entry.rest.swap(spilled);
        entries_.finish(entry, sizes);
        return before - std::min(before, sizes.compressed);
    }
    // These give memory and return what `put_to_rest` does.
    std::optional<std::size_t> give_oldest_in_memory() noexcept {
        std::unique_lock lock = try_to_lock();
        if (!lock) return std::nullopt;
        TakenTensor taken = entries_.take_oldest_in_memory();
        lock.unlock();
        return put_to_rest(std::move(taken));
    }
    // An encoding that is kept is worth an encoding, so it is not given before tensors are encoded:
    // a tensor would then be encoded for each that is only read.
    std::optional<std::size_t> give_oldest_compressed() noexcept {
        std::unique_lock lock = try_to_lock();
        if (!lock) return std::nullopt;
        std::shared_ptr<MapEntry> entry = entries_.take_oldest_kept();
        if (entry == nullptr && !options_.folder.empty()) entry = entries_.take_oldest_compressed();
        lock.unlock();
        return entry == nullptr ? std::nullopt : spill(*entry);
    }
    /// Counts a failure and keeps its message. REQUIRES: the lock is held.
    void note(const char* problem) noexcept {
        ++totals_.failures;
        std::snprintf(last_failure_, sizeof last_failure_, "%s", problem);
    }
    /// Ends a move that changed nothing.
    // Goes to the end of its list, so that the next attempt takes another entry.
    std::nullopt_t fail(MapEntry& entry, const std::exception& error) noexcept {
        const std::lock_guard guard(mutex_);
        note(error.what());
        entries_.finish(entry, entry.counted);
        return std::nullopt;
    }
    /// Keeps the encoding if `access` is to read.
    void restore(MapEntry& entry, Access access) {
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
    PooledAllocation allocate(const MapEntry& entry) {
        const OwnRequest own(pool_);
        for (;;) {
            try {
                return restored_block(pool_, entry.bytes, entry.alignment);
            } catch (const AllocationError&) {
                if (give_entries(entry.bytes) == 0) throw;
            }
        }
    }
    /// Puts entries to rest and spills others until the limits of the options are met.
    void make_room() noexcept {
        reserve_.refill(pool_, {});
        const auto exceeds = [](std::size_t bytes, std::size_t limit) {
            return limit != 0 && bytes > limit;
        };
        const auto put_one_to_rest = [&] {
            std::unique_lock lock(mutex_);
            if (!exceeds(totals_.memory_bytes + incoming_bytes_, options_.memory_bytes))
                return false;
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
    /// Returns the most bytes of compressed tensors; 0 is no limit. Takes the lock of the budgets.
    std::size_t compressed_limit() const noexcept {
        const bool has_default = !options_.folder.empty() && budget_.node() != nullptr;
        if (options_.compressed_bytes != 0 || !has_default) return options_.compressed_bytes;
        const BudgetStatistics budget = budget_.node()->statistics();
        return (budget.hard_bytes != 0 ? budget.hard_bytes : budget.soft_bytes) / part_to_compress;
    }
    std::size_t give_entries(std::size_t bytes) noexcept {
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

    const StashedMapOptions options_;
    const std::unique_ptr<MemoryPool> own_pool_;
    MemoryPool& pool_;
    MemoryPool& work_pool_;
    const limits::HeldBudget budget_;
    MapReserve reserve_;

    mutable std::mutex mutex_;
    EntryTable table_;
    StashWords words_;
    statistics::StashTotals& totals_;  // those of words_
    ListedEntries entries_;
    std::size_t incoming_bytes_ = 0;  // being restored
    char last_failure_[256] = {};

    HolderRegistration registration_;
};

bool watches_forks() noexcept {
    return platform::set_fork_handlers(
        platform::ForkStage::stashed_maps,
        [] {
            maps->lock();
            maps->for_each([](MapState& map) { map.lock(); });
        },
        [] {
            maps->for_each([](MapState& map) { map.unlock(); });
            maps->unlock();
        },
        [] {
            maps->for_each([](MapState& map) {
                map.forget_movers();
                map.unlock();
            });
            maps->unlock();
        });
}

}  // namespace tensorpool::stashing

namespace tensorpool {

using stashing::Access;
using stashing::MapEntry;
using stashing::MapState;

StashedTensor::~StashedTensor() {
    if (entry_ != nullptr) map_->unpin(*entry_);
}

// A pinned tensor stays where it is, so no lock is needed.
std::span<std::byte> StashedTensor::bytes() const noexcept {
    if (entry_ == nullptr) return {};
    return {static_cast<std::byte*>(entry_->tensor.get()), entry_->bytes};
}

StashedMapBase::StashedMapBase(StashedMapOptions&& options, KeyEqual equal)
    : state_(std::make_shared<MapState>(std::move(options), equal)) {}

StashedMapBase::~StashedMapBase() {
    state_->close();
}

MemoryPool& StashedMapBase::pool() const noexcept {
    return state_->pool();
}

StashedMapStatistics StashedMapBase::statistics() const noexcept {
    return state_->statistics();
}

std::string StashedMapBase::last_failure() const {
    return state_->last_failure();
}

void StashedMapBase::put(std::size_t hash, KeyPointer key, PooledAllocation&& tensor) {
    if (tensor && !tensor.held().owner.is_pool()) {
        throw std::invalid_argument("tensorpool: stashed map '" + state_->name() +
                                    "': found a block of a source of kind '" +
                                    tensor.held().owner.functions().name +
                                    "', expected one of a MemoryPool");
    }
    state_->make_bucket();
    state_->put(std::make_shared<MapEntry>(hash, std::move(key), std::move(tensor)));
}

StashedTensor StashedMapBase::get(std::size_t hash, const void* key) {
    std::shared_ptr<MapEntry> entry = state_->get(hash, key, Access::write);
    if (entry == nullptr) return {};
    return {state_, std::move(entry)};
}

StashedTensorView StashedMapBase::read(std::size_t hash, const void* key) {
    std::shared_ptr<MapEntry> entry = state_->get(hash, key, Access::read);
    if (entry == nullptr) return {};
    return StashedTensorView({state_, std::move(entry)});
}

bool StashedMapBase::erase(std::size_t hash, const void* key) noexcept {
    return state_->erase(hash, key);
}

bool StashedMapBase::contains(std::size_t hash, const void* key) const noexcept {
    return state_->contains(hash, key);
}

void StashedMapBase::prefetch(std::size_t hash, const void* key) noexcept {
    state_->prefetch(hash, key);
}

}  // namespace tensorpool

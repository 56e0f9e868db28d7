// The entries of a map: pins, ages and sums.

#include "rest/map/map_state.hpp"

#include "kinds/kinds.hpp"
#include "platform/process/fork_handlers.hpp"
#include "pool/pool.hpp"

namespace tensorpool::stashing {
namespace {

struct Maps {
    std::mutex mutex;
    MapState* first = nullptr;
};

constinit base::NeverDestroyed<Maps> maps;

template <class Function>
void for_each_map(Function function) noexcept {
    for (MapState* map = maps->first; map != nullptr; map = map->next_map) function(*map);
}

bool watches_forks() noexcept {
    return platform::set_fork_handlers(
        platform::ForkStage::stashed_maps,
        [] {
            maps->mutex.lock();
            for_each_map([](MapState& map) { map.lock(); });
        },
        [] {
            for_each_map([](MapState& map) { map.unlock(); });
            maps->mutex.unlock();
        },
        [] {
            for_each_map([](MapState& map) {
                map.forget_movers();
                map.unlock();
            });
            maps->mutex.unlock();
        });
}

/// Adds a map to the list of those that a fork locks. Throws std::bad_alloc if the system has no
/// memory for fork handlers.
void enter_map(MapState& map) {
    if (!watches_forks()) throw std::bad_alloc();
    const std::lock_guard guard(maps->mutex);
    map.next_map = maps->first;
    maps->first = &map;
}

void leave_map(MapState& map) noexcept {
    const std::lock_guard guard(maps->mutex);
    MapState** link = &maps->first;
    while (*link != &map) link = &(*link)->next_map;
    *link = map.next_map;
}

// A negative number that becomes a size is larger.
constexpr std::size_t max_limit = std::size_t{1} << 60;

[[noreturn]] void refuse(const std::string& map, const std::string& problem) {
    throw std::invalid_argument("tensorpool: stashed map '" + map + "': " + problem);
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

MapState::MapState(StashedMapOptions&& options, EntryTable::Equal equal)
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
    enter_map(*this);
    if (options_.budget == nullptr) return;
    try {
        registration_ = options_.budget->add_holder(*this, {.name = options_.name});
    } catch (...) {
        leave_map(*this);
        throw;
    }
}

MapState::~MapState() {
    leave_map(*this);
}

void MapState::close() noexcept {
    registration_ = HolderRegistration();
    (void)reserve_.free();
    EntryTable::Buckets dropped;
    const std::lock_guard guard(mutex_);
    table_.for_each([this](MapEntry& entry) { entries_.detach(entry); });
    dropped = table_.take_all();
}

void MapState::make_bucket() {
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

void MapState::put(std::shared_ptr<MapEntry> entry) noexcept {
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

std::shared_ptr<MapEntry> MapState::get(std::size_t hash, const void* key, Access access) {
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

void MapState::unpin(MapEntry& entry) noexcept {
    const std::lock_guard guard(mutex_);
    --entry.pins;
    entries_.list(entry);
}

bool MapState::erase(std::size_t hash, const void* key) noexcept {
    std::shared_ptr<MapEntry> erased;
    const std::lock_guard guard(mutex_);
    erased = table_.remove(hash, key);
    if (erased != nullptr) entries_.detach(*erased);
    return erased != nullptr;
}

bool MapState::contains(std::size_t hash, const void* key) const noexcept {
    std::shared_ptr<MapEntry> found;
    const std::lock_guard guard(mutex_);
    found = table_.find(hash, key);
    return found != nullptr;
}

void MapState::prefetch(std::size_t hash, const void* key) noexcept {
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

StashedMapStatistics MapState::statistics() const noexcept {
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

std::string MapState::last_failure() const {
    char text[sizeof last_failure_];
    {
        const std::lock_guard guard(mutex_);
        std::ranges::copy(last_failure_, text);
    }
    return text;
}

void MapState::lock() noexcept {
    mutex_.lock();
    reserve_.lock();
}

void MapState::unlock() noexcept {
    reserve_.unlock();
    mutex_.unlock();
}

void MapState::forget_movers() noexcept {
    incoming_bytes_ = 0;
    table_.for_each([this](MapEntry& entry) {
        if (entry.is_busy) entries_.finish(entry, entry.counted);
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

#include "rest/spill_store.hpp"

#include <tensorpool/stash.hpp>

#include "platform/process/fork_handlers.hpp"
#include "rest/stash_group.hpp"

namespace tensorpool::stashing {
namespace {

/// Common file systems hold files of 8 TiB or more.
constexpr std::uint64_t max_end = std::uint64_t{1} << 40;

/// Slabs begin at multiples of this.
constexpr std::uint64_t unit = platform::SpillFile::unit;

/// The number of forks. It changes before the fork, so a thread that frees a slab while its stash
/// is copied to a child has seen the fork.
constinit std::atomic<std::uint64_t> forks = 0;

/// The stores by folder. Entries are never removed.
struct Stores {
    struct Entry {
        std::string folder;
        std::weak_ptr<SpillStore> store;
        Entry* next;
    };

    std::mutex mutex;
    Entry* first = nullptr;
    Stores* of_parent = nullptr;  // kept only so that tools see no leak

    Entry* find(const std::string& folder) const noexcept {
        Entry* entry = first;
        while (entry != nullptr && entry->folder != folder) entry = entry->next;
        return entry;
    }
};

/// Never destroyed: threads may spill while the process ends. A child gets new stores, since
/// another thread may have held the lock.
constinit std::atomic<Stores*> stores = nullptr;
/// What the child of a fork left behind.
constinit Stores* stores_of_parents = nullptr;

void leave_stores_behind() noexcept {
    Stores* const of_parent = stores.exchange(nullptr, std::memory_order_relaxed);
    if (of_parent == nullptr) return;
    of_parent->of_parent = stores_of_parents;
    stores_of_parents = of_parent;
}

Stores& present_stores() {
    Stores* present = stores.load(std::memory_order_acquire);
    if (present != nullptr) return *present;
    auto made = std::make_unique<Stores>();
    if (stores.compare_exchange_strong(present, made.get(), std::memory_order_acq_rel))
        return *made.release();
    return *present;
}

std::shared_ptr<SpillStore> present_store(Stores& all, const std::string& folder) {
    std::shared_ptr<SpillStore> store;
    {
        const std::scoped_lock lock(all.mutex);
        const Stores::Entry* const entry = all.find(folder);
        if (entry != nullptr) store = entry->store.lock();
    }
    return store != nullptr && store->is_present() ? store : nullptr;
}

}  // namespace

bool watch_forks() noexcept {
    return platform::set_fork_handlers(
        platform::ForkStage::stashes,
        [] {
            forks.fetch_add(1, std::memory_order_seq_cst);
            lock_stash_groups();
        },
        unlock_stash_groups,
        [] {
            leave_stores_behind();
            unlock_stash_groups();
        });
}

std::shared_ptr<SpillStore> SpillStore::of_folder(const std::string& folder,
                                                  const std::string& tensor) {
    const auto refuse = [&](const char* problem) {
        throw StashError(tensor, StashError::no_piece, "folder '" + folder + "': " + problem);
    };
    if (!watch_forks()) refuse("the system has no memory for fork handlers");
    Stores& all = present_stores();
    if (std::shared_ptr<SpillStore> present = present_store(all, folder)) return present;

    // Nothing is allocated under the lock. Two threads may each make a store: both are valid.
    auto made = std::make_shared<SpillStore>(forks.load(std::memory_order_seq_cst));
    if (const auto problem = made->open(folder.c_str())) refuse(problem.text);
    auto entry = std::make_unique<Stores::Entry>(
        Stores::Entry{.folder = folder, .store = {}, .next = nullptr});
    const std::weak_ptr<SpillStore> weak = made;
    std::weak_ptr<SpillStore> replaced = weak;
    const std::scoped_lock lock(all.mutex);
    Stores::Entry* const found = all.find(folder);
    if (found != nullptr) {
        found->store.swap(replaced);
    } else {
        entry->store = weak;
        entry->next = std::exchange(all.first, entry.get());
        (void)entry.release();
    }
    return made;
}

bool SpillStore::is_present() const noexcept {
    return forks.load(std::memory_order_seq_cst) == forks_ &&
           !has_lost_bytes_.load(std::memory_order_relaxed) &&
           end_.load(std::memory_order_relaxed) < max_end;
}

platform::FileProblem SpillStore::write(std::span<const std::byte> bytes,
                                        std::uint64_t& position) noexcept {
    position = end_.fetch_add(base::align_up(bytes.size(), unit), std::memory_order_relaxed);
    platform::FileProblem problem = file_.write(position, bytes);
    if (problem) free(position, bytes.size());
    return problem;
}

// The system reports an error of the disk once, to whichever writer asks first: it may be that of
// another's bytes.
platform::FileProblem SpillStore::settle(std::uint64_t position, std::uint64_t bytes) noexcept {
    const std::lock_guard guard(settling_);
    if (has_lost_bytes_.load(std::memory_order_relaxed)) {
        platform::FileProblem problem;
        std::snprintf(problem.text, sizeof problem.text,
                      "the disk failed to store other tensors in the same file");
        return problem;
    }
    const platform::FileProblem problem = file_.settle(position, bytes);
    if (problem) has_lost_bytes_.store(true, std::memory_order_relaxed);
    return problem;
}

void SpillStore::free(std::span<const Slab> slabs) noexcept {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    for (const Slab& slab : slabs) {
        if (slab.memory) continue;
        if (slab.position != end) {
            free(begin, end - begin);
            begin = slab.position;
        }
        end = slab.position + base::align_up(slab.bytes, unit);
    }
    free(begin, end - begin);
}

void SpillStore::free(std::uint64_t position, std::uint64_t bytes) noexcept {
    if (bytes == 0) return;
    if (forks.load(std::memory_order_seq_cst) == forks_)
        (void)file_.free(position, base::align_up(bytes, unit));
}

MemoryPool& store_pool() {
    // Never destroyed: threads may restore while the process ends. No guard of a static object, for
    // which the child of a fork would wait if another thread was making the pool.
    static constinit std::atomic<MemoryPool*> pool = nullptr;
    MemoryPool* present = pool.load(std::memory_order_acquire);
    if (present != nullptr) return *present;
    auto made = std::make_unique<MemoryPool>(PoolOptions{.name = "stash"});
    if (pool.compare_exchange_strong(present, made.get(), std::memory_order_acq_rel))
        return *made.release();
    return *present;
}

}  // namespace tensorpool::stashing

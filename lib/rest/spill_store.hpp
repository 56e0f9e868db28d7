#pragma once

#include <cstring>
#include <map>

#include <tensorpool/stash.hpp>

#include "platform/files/spill_file.hpp"
#include "rest/stash_group.hpp"

namespace tensorpool::stashing {

/// Consecutive bytes of what rests: a block of a pool, or a part of a file.
struct Slab {
    std::byte* memory = nullptr;  // nullptr if the slab is in a file
    std::uint64_t position = 0;   // in the file
    std::size_t bytes = 0;
};

/// Returns the object at `place`, which the first call makes. It is never destroyed: threads may
/// use it while the process ends. No guard of a static object, for which the child of a fork would
/// wait if another thread was making it.
template <class Object>
Object& made_once(std::atomic<Object*>& place, const auto&... arguments) {
    Object* present = place.load(std::memory_order_acquire);
    if (present != nullptr) return *present;
    auto made = std::make_unique<Object>(arguments...);
    if (place.compare_exchange_strong(present, made.get(), std::memory_order_acq_rel))
        return *made.release();
    return *present;
}

class SpillStore;

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

/// Common file systems hold files of 8 TiB or more.
inline constexpr std::uint64_t max_end = std::uint64_t{1} << 40;

/// Slabs begin at multiples of this.
inline constexpr std::uint64_t unit = platform::SpillFile::unit;

/// The number of forks. It changes before the fork, so a thread that frees a slab while its stash
/// is copied to a child has seen the fork.
inline constinit std::atomic<std::uint64_t> forks = 0;

/// A child gets new stores, since another thread may have held the lock.
inline constinit std::atomic<Stores*> stores = nullptr;
/// What the child of a fork left behind.
inline constinit Stores* stores_of_parents = nullptr;

inline void leave_stores_behind() noexcept {
    Stores* const of_parent = stores.exchange(nullptr, std::memory_order_relaxed);
    if (of_parent == nullptr) return;
    of_parent->of_parent = stores_of_parents;
    stores_of_parents = of_parent;
}

/// The parts of a file that slabs no longer use, by position. Thread-safe. Nothing is allocated or
/// freed under its lock: a pool that serves malloc could ask a map of tensors for memory, which
/// would take the lock to spill one.
class FreeRanges {
public:
    /// Returns the position of `bytes` bytes, which are no longer free; none if no part is as long.
    std::optional<std::uint64_t> take(std::uint64_t bytes) noexcept {
        Ranges::node_type used;
        const std::lock_guard guard(mutex_);
        const auto found = std::ranges::find_if(
            ranges_, [bytes](const auto& range) { return range.second >= bytes; });
        if (found == ranges_.end()) return std::nullopt;
        const std::uint64_t position = found->first;
        used = ranges_.extract(found);
        if (used.mapped() == bytes) return position;
        used.key() += bytes;
        used.mapped() -= bytes;
        ranges_.insert(std::move(used));
        return position;
    }
    /// If there is no memory for a record, the positions are not used again.
    void add(std::uint64_t position, std::uint64_t bytes) noexcept {
        Ranges one;
        Ranges::node_type next;
        try {
            one.emplace(position, bytes);
        } catch (const std::bad_alloc&) {
            return;
        }
        const std::lock_guard guard(mutex_);
        const auto behind = ranges_.lower_bound(position);
        if (behind != ranges_.end() && behind->first == position + bytes) {
            one.begin()->second += behind->second;
            next = ranges_.extract(behind);
        }
        const auto after = ranges_.lower_bound(position);
        if (after != ranges_.begin()) {
            auto& [begin, length] = *std::prev(after);
            if (begin + length == position) {
                length += one.begin()->second;
                return;
            }
        }
        ranges_.merge(one);
    }

private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;
    std::mutex mutex_;  // not used in the child of a fork
    Ranges ranges_;
};

/// The file of a folder that slabs are spilled to. Positions that were freed are used again, but
/// never after a fork, so that processes that share the file read what they expect. Any thread may
/// call it.
class SpillStore {
public:
    /// Returns the present store of a folder, or makes one. It closes its file when the last stash
    /// in it ends. Throws StashError for `tensor` if the folder cannot be used.
    static std::shared_ptr<SpillStore> of_folder(const std::string& folder,
                                                 const std::string& tensor) {
        if (!watch_forks()) {
            throw StashError(tensor, StashError::no_piece,
                             "the system has no memory for fork handlers");
        }
        Stores& all = made_once(stores);
        if (std::shared_ptr<SpillStore> present = present_in(all, folder)) return present;

        // Nothing is allocated under the lock. Two threads may each make a store: both are valid.
        auto made = std::make_shared<SpillStore>(folder, forks.load(std::memory_order_seq_cst));
        made->check(made->open(), tensor);
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

    SpillStore(std::string folder, std::uint64_t forks_before)
        : forks_(forks_before), folder_(std::move(folder)) {}

    [[nodiscard]] platform::FileProblem open() noexcept { return file_.open(folder_.c_str()); }
    /// Throws StashError for `tensor` if there is a problem.
    void check(const platform::FileProblem& problem, const std::string& tensor) const {
        if (!problem) return;
        throw StashError(tensor, StashError::no_piece, "folder '" + folder_ + "': " + problem.text);
    }
    /// Whether new slabs may be written to it: not after a fork, nor after an error of the disk,
    /// nor when it has used up its positions.
    bool is_present() const noexcept {
        return forks.load(std::memory_order_seq_cst) == forks_ &&
               !has_lost_bytes_.load(std::memory_order_relaxed) &&
               end_.load(std::memory_order_relaxed) < max_end;
    }

    [[nodiscard]] platform::FileProblem write(std::span<const std::byte> bytes,
                                              std::uint64_t& position) noexcept {
        const std::uint64_t whole = base::align_up(bytes.size(), unit);
        const std::optional<std::uint64_t> freed = free_.take(whole);
        position = freed ? *freed : end_.fetch_add(whole, std::memory_order_relaxed);
        platform::FileProblem problem = file_.write(position, bytes);
        if (problem) free(position, bytes.size());
        return problem;
    }
    /// Waits until a slab is on the disk. Also fails after another writer's failed.
    // The system reports an error of the disk once, to whichever writer asks first: it may be that
    // of another's bytes.
    [[nodiscard]] platform::FileProblem settle(std::uint64_t position,
                                               std::uint64_t bytes) noexcept {
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
    [[nodiscard]] platform::FileProblem read(std::uint64_t position, std::span<std::byte> bytes,
                                             platform::ReadFrom from) const noexcept {
        return file_.read(position, bytes, from);
    }
    void read_ahead(std::uint64_t position, std::uint64_t bytes) const noexcept {
        file_.read_ahead(position, bytes);
    }
    /// Gives the disk space of slabs in the file back; slabs in memory are skipped. Neighbors are
    /// freed by one call of the system, which takes about a millisecond. Does nothing after a fork:
    /// another process may still read them.
    void free(std::span<const Slab> slabs) noexcept {
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

private:
    static std::shared_ptr<SpillStore> present_in(Stores& all, const std::string& folder) {
        std::shared_ptr<SpillStore> store;
        {
            const std::scoped_lock lock(all.mutex);
            const Stores::Entry* const entry = all.find(folder);
            if (entry != nullptr) store = entry->store.lock();
        }
        return store != nullptr && store->is_present() ? store : nullptr;
    }
    void free(std::uint64_t position, std::uint64_t bytes) noexcept {
        if (bytes == 0) return;
        if (forks.load(std::memory_order_seq_cst) != forks_) return;
        const std::uint64_t whole = base::align_up(bytes, unit);
        (void)file_.free(position, whole);
        free_.add(position, whole);
    }

    platform::SpillFile file_;
    const std::uint64_t forks_;  // forks before the store was made
    std::mutex settling_;        // not used in the child of a fork
    std::atomic<bool> has_lost_bytes_ = false;
    // Relaxed: positions need only be distinct.
    std::atomic<std::uint64_t> end_ = 0;
    FreeRanges free_;
    const std::string folder_;
};

}  // namespace tensorpool::stashing

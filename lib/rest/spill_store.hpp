#pragma once

#include <tensorpool/pooled_allocation.hpp>

#include "platform/files/spill_file.hpp"

namespace tensorpool::stashing {

/// Consecutive encoded pieces that are stored together: in a block, or in a file.
struct Slab {
    PooledAllocation memory;     // owns nothing if the slab is in a file
    std::uint64_t position = 0;  // in the file
    std::size_t bytes = 0;
    std::size_t pieces = 0;
};

/// Returns the process's pool "stash", from which compressed content is allocated unless the
/// options name another one. Made on first use and never destroyed. Throws AllocationError.
MemoryPool& store_pool();

/// Sets the handlers that keep stores, and the counters of stashes, usable in the child of a fork.
/// Returns false if the system has no memory for them. Later calls do nothing.
bool watch_forks() noexcept;

/// The file of a folder that slabs are spilled to. Positions are given out once: what is freed goes
/// back to the disk, not to other slabs. So no lock is needed, and processes that share the file
/// after a fork read what they expect. Any thread may call it.
class SpillStore {
public:
    /// Returns the present store of a folder, or makes one. It closes its file when the last stash
    /// in it ends. Throws StashError for `tensor` if the folder cannot be used.
    static std::shared_ptr<SpillStore> of_folder(const std::string& folder,
                                                 const std::string& tensor);

    explicit SpillStore(std::uint64_t forks) noexcept : forks_(forks) {}

    [[nodiscard]] platform::FileProblem open(const char* folder) noexcept {
        return file_.open(folder);
    }
    /// Whether new slabs may be written to it: not after a fork, nor after an error of the disk,
    /// nor when it has used up its positions.
    bool is_present() const noexcept;

    /// Writes a slab and sets its position.
    [[nodiscard]] platform::FileProblem write(std::span<const std::byte> bytes,
                                              std::uint64_t& position) noexcept;
    /// Waits until a slab is on the disk. Also fails after another writer's failed.
    [[nodiscard]] platform::FileProblem settle(std::uint64_t position,
                                               std::uint64_t bytes) noexcept;
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
    void free(std::span<const Slab> slabs) noexcept;

private:
    void free(std::uint64_t position, std::uint64_t bytes) noexcept;

    platform::SpillFile file_;
    const std::uint64_t forks_;  // forks before the store was made
    std::mutex settling_;        // not used in the child of a fork
    std::atomic<bool> has_lost_bytes_ = false;
    // Relaxed: positions need only be distinct.
    std::atomic<std::uint64_t> end_ = 0;
};

}  // namespace tensorpool::stashing

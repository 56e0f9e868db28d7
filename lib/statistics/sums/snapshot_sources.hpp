#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <tensorpool/snapshot.hpp>
#include <tensorpool/trace_format.hpp>

namespace tensorpool::statistics {

/// Something whose figures stand in a snapshot: a pool, an arena, a scratch, a device
/// allocator, a planned arena.
class SnapshotSource {
public:
    SnapshotSource(const SnapshotSource&) = delete;
    SnapshotSource& operator=(const SnapshotSource&) = delete;

    /// Adds its figures to one of the vectors: one element, for which there is room. Called on any
    /// thread, under the lock of the sources, so it takes no lock and allocates nothing.
    virtual void add_to(Snapshot& snapshot) const = 0;

    /// What a trace calls it. The number is unlike that of anything else in the process.
    struct Identity {
        TraceSource kind;
        std::uint64_t number;
        std::string_view name;
    };
    /// As `add_to`.
    virtual Identity identify() const noexcept = 0;

    /// Bytes held, used or not. As `add_to`.
    virtual std::size_t capacity() const noexcept = 0;
    /// Tells it to a recorder, if there is one: after each change, and once to one that begins.
    void record_capacity() const noexcept;

protected:
    SnapshotSource() noexcept = default;
    /// It has left, or never entered.
    ~SnapshotSource() = default;

private:
    friend class SnapshotSources;
    SnapshotSource* previous_ = nullptr;
    SnapshotSource* next_ = nullptr;
};

/// What a snapshot is taken of. Its lock is a leaf: nothing else is locked under it, nor is malloc
/// called, which may itself be served by a pool. Thread-safe; the only one but in tests is the
/// process's.
class SnapshotSources {
public:
    constexpr SnapshotSources() noexcept = default;
    SnapshotSources(const SnapshotSources&) = delete;
    SnapshotSources& operator=(const SnapshotSources&) = delete;

    /// REQUIRES: the source is whole, and not in.
    void enter(SnapshotSource& source) noexcept;
    /// REQUIRES: the source is in, and still whole. Waits until no snapshot looks at it.
    void leave(SnapshotSource& source) noexcept;

    /// The figures of all sources, in the order in which they entered.
    Snapshot take() const;
    /// Calls `function` with each, in that order, under the lock.
    template <class Function>
    void for_each(Function function) const {
        const std::lock_guard guard(mutex_);
        for (const SnapshotSource* source = first_; source != nullptr; source = source->next_) {
            function(*source);
        }
    }

    /// Around a fork: the child finds the list whole and the lock free.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    bool fill(Snapshot& snapshot, std::size_t& room) const;

    mutable std::mutex mutex_;
    // Below: under mutex_.
    SnapshotSource* first_ = nullptr;
    SnapshotSource* last_ = nullptr;
    std::size_t count_ = 0;
};

/// The process's. Never destroyed: pools and arenas that are static objects use it.
SnapshotSources& snapshot_sources() noexcept;

}  // namespace tensorpool::statistics

#pragma once

#include <mutex>
#include <string_view>

#include <tensorpool/snapshot.hpp>
#include <tensorpool/trace_format.hpp>

namespace tensorpool::events {

/// An object whose statistics are part of a snapshot: a pool, an arena, a scratch, a device
/// allocator or a planned arena.
class SnapshotSource {
public:
    SnapshotSource(const SnapshotSource&) = delete;
    SnapshotSource& operator=(const SnapshotSource&) = delete;

    /// Adds its statistics to one of the vectors: one element, for which there is room. Called on
    /// any thread under the lock of the sources. It must therefore take no lock and allocate
    /// nothing.
    virtual void add_to(Snapshot& snapshot) const = 0;

    /// How a trace identifies the object. No other object in the process has this number.
    struct Identity {
        TraceSource kind;
        std::uint64_t number;
        std::string_view name;
    };
    /// Returns the identity. Same requirements as for `add_to`.
    virtual Identity identify() const noexcept = 0;

    /// Returns the bytes held, used or not. Same requirements as for `add_to`.
    virtual std::size_t capacity() const noexcept = 0;
    /// Reports the capacity to a recorder, if there is one. Called after each change, and once when
    /// a recorder starts.
    void record_capacity() const noexcept;

protected:
    SnapshotSource() noexcept = default;
    /// REQUIRES: the source has left, or never entered.
    ~SnapshotSource() = default;

private:
    friend class SnapshotSources;
    SnapshotSource* previous_ = nullptr;
    SnapshotSource* next_ = nullptr;
};

/// The sources of a snapshot. Its lock is a leaf: no other lock is acquired under it, and malloc is
/// not called because a pool may serve it. Thread-safe. The process has one SnapshotSources; tests
/// create others.
class SnapshotSources {
public:
    constexpr SnapshotSources() noexcept = default;
    SnapshotSources(const SnapshotSources&) = delete;
    SnapshotSources& operator=(const SnapshotSources&) = delete;

    /// Adds a source. REQUIRES: the source is fully constructed and not in the list.
    void enter(SnapshotSource& source) noexcept;
    /// Removes a source. REQUIRES: the source is in the list and still fully constructed. Waits
    /// until no snapshot uses it.
    void leave(SnapshotSource& source) noexcept;

    /// Returns the statistics of all sources, in the order in which they entered.
    Snapshot take() const;
    /// Calls `function` with each source, in that order, under the lock.
    template <class Function>
    void for_each(Function function) const {
        const std::lock_guard guard(mutex_);
        for (const SnapshotSource* source = first_; source != nullptr; source = source->next_) {
            function(*source);
        }
    }

    /// Called around a fork: the child finds the list consistent and the lock free.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    bool fill(Snapshot& snapshot, std::size_t& room) const;

    mutable std::mutex mutex_;
    // Guarded by mutex_:
    SnapshotSource* first_ = nullptr;
    SnapshotSource* last_ = nullptr;
    std::size_t count_ = 0;
};

/// Returns the sources of the process. Never destroyed: static pools and arenas use it.
SnapshotSources& snapshot_sources() noexcept;

}  // namespace tensorpool::events

#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include <tensorpool/arena_objects.hpp>

namespace tensorpool::arena {

/// The objects of one arena, in the order of their recording. Thread-safe.
class ObjectRegister {
public:
    /// Adds an object at `offset`. REQUIRES: its bytes are in use.
    ObjectId add(std::size_t offset, ObjectDescription object);
    /// Adds a view that begins `offset` bytes into the object `of`. Throws std::invalid_argument,
    /// naming `arena`, if there is no such object or the view reaches beyond it.
    ObjectId add_view(ObjectId of, std::size_t offset, ObjectDescription view,
                      const std::string& arena);
    /// Removes the objects that end above `offset`, and the views of them.
    void forget_above(std::size_t offset) noexcept;
    /// Removes the objects that begin within [begin, end), and the views of them.
    void forget_within(std::size_t begin, std::size_t end) noexcept;

    std::vector<ArenaObject> objects() const;

    /// Locks and unlocks the register around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    template <class Predicate>
    void forget(Predicate is_gone) noexcept;
    const ArenaObject* find(ObjectId id) const noexcept;

    mutable std::mutex mutex_;
    std::vector<ArenaObject> objects_;
    ObjectId last_ = 0;
};

/// Sums up objects by kind and by element type.
ArenaAnalysis analyze(const std::string& arena, std::size_t used,
                      const std::vector<ArenaObject>& objects);

}  // namespace tensorpool::arena

#pragma once

#include <utility>

#include "base/linked_list.hpp"
#include "blocks/thread_caches.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// The tables of all threads that have caches, and what ended threads left for others: tables and
/// leaves without caches. They are never unmapped. Guarded by the registry's lock.
class ThreadTables {
public:
    constexpr ThreadTables() noexcept = default;

    /// Returns a table for a thread. Returns nullptr if memory is short.
    ThreadCaches* add() noexcept;
    /// Makes the leaf of this number, unless the table has it. Returns false if memory is short.
    bool add_leaf(ThreadCaches& table, unsigned number) noexcept;
    /// Ends the use of a table that contains no caches.
    void remove(ThreadCaches& table) noexcept;
    /// For the child of a fork: abandons all tables except `own`, which may be nullptr. They are
    /// changed when they are used again.
    void abandon_others(ThreadCaches* own) noexcept;

    template <class Function>
    void for_each(Function function) noexcept {
        for (ThreadCaches* table = running_; table != nullptr; table = table->next) {
            function(*table);
        }
    }

    /// The lock of their memory, which a fork takes.
    pages::RecordArena& records() noexcept { return records_; }

private:
    void free(ThreadCaches& table) noexcept;

    pages::RecordArena records_;
    ThreadCaches* running_ = nullptr;
    ThreadCaches* free_ = nullptr;
    // In the child of a fork: of threads that do not exist there, as they left them.
    ThreadCaches* abandoned_ = nullptr;
    OwnLeaf* free_leaves_ = nullptr;
};

}  // namespace tensorpool::blocks

#include "blocks/thread_tables.hpp"

#include <new>

namespace tensorpool::blocks {

ThreadCaches* ThreadTables::add() noexcept {
    if (free_ == nullptr && abandoned_ != nullptr) {
        ThreadCaches& table = *std::exchange(abandoned_, abandoned_->next);
        table.for_each_number([&](unsigned number) {
            table.own(number) = nullptr;
            table.clear_views(number);
        });
        free(table);
    }
    if (free_ == nullptr) {
        void* const memory = records_.allocate(sizeof(ThreadCaches), alignof(ThreadCaches));
        if (memory == nullptr) return nullptr;
        free_ = new (memory) ThreadCaches();
        free_->add_first_leaf();
    }
    ThreadCaches& table = *std::exchange(free_, free_->next);
    base::link_in_front(running_, table);
    table.pace = {};
    return &table;
}

bool ThreadTables::add_leaf(ThreadCaches& table, unsigned number) noexcept {
    if (table.has_leaf_of(number)) return true;
    if (free_leaves_ == nullptr) {
        void* const memory = records_.allocate(sizeof(OwnLeaf), alignof(OwnLeaf));
        if (memory == nullptr) return false;
        free_leaves_ = new (memory) OwnLeaf();
    }
    table.add_leaf_of(number, *std::exchange(free_leaves_, free_leaves_->next_free));
    return true;
}

void ThreadTables::remove(ThreadCaches& table) noexcept {
    base::unlink(running_, table);
    free(table);
}

void ThreadTables::free(ThreadCaches& table) noexcept {
    table.forget_exposing();
    for (unsigned index = 0; index < detail::ThreadTable::leaf_count; ++index) {
        OwnLeaf* const leaf = table.remove_leaf(index);
        if (leaf != nullptr) leaf->next_free = std::exchange(free_leaves_, leaf);
    }
    table.next = std::exchange(free_, &table);
}

void ThreadTables::abandon_others(ThreadCaches* own) noexcept {
    if (own != nullptr) base::unlink(running_, *own);
    ThreadCaches** end = &abandoned_;
    while (*end != nullptr) end = &(*end)->next;
    *end = std::exchange(running_, nullptr);
    if (own != nullptr) base::link_in_front(running_, *own);
}

}  // namespace tensorpool::blocks

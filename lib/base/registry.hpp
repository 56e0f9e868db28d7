#pragma once

#include <utility>

#include "base/lockable.hpp"

/// Lists whose elements point to both neighbors, `next` and `previous`. An element is removed
/// without a search, and the head needs no constructor.
namespace tensorpool::base {

/// Puts an element in front of the list that begins at `first`.
template <class T>
void link_in_front(T*& first, T& element) noexcept {
    if (first != nullptr) first->previous = &element;
    element.previous = nullptr;
    element.next = std::exchange(first, &element);
}

/// Removes an element from the list that begins at `first`.
template <class T>
void unlink(T*& first, T& element) noexcept {
    (element.previous != nullptr ? element.previous->next : first) = element.next;
    if (element.next != nullptr) element.next->previous = element.previous;
}

/// A list of all objects of one type, linked by `Object::next_of_all`. Fork handlers lock it, so
/// that a fork never happens while an object is being changed. Its lock is acquired before the
/// locks of the objects. Thread-safe.
template <class Object>
class Registry : public Lockable {
public:
    void enter(Object& object) noexcept {
        const std::lock_guard guard(mutex_);
        object.next_of_all = first_;
        first_ = &object;
    }
    /// Removes `object`. Does nothing if the object is not in the list, as can happen in the child
    /// of a fork.
    void leave(Object& object) noexcept {
        const std::lock_guard guard(mutex_);
        Object** link = &first_;
        while (*link != nullptr && *link != &object) link = &(*link)->next_of_all;
        if (*link != nullptr) *link = object.next_of_all;
    }

    bool try_lock() noexcept { return mutex_.try_lock(); }
    /// REQUIRES: the lock is held.
    template <class Function>
    void for_each(Function function) noexcept {
        for (Object* object = first_; object != nullptr; object = object->next_of_all) {
            function(*object);
        }
    }

protected:
    Object* first_ = nullptr;
};

}  // namespace tensorpool::base

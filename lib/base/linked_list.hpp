#pragma once

#include <utility>

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

}  // namespace tensorpool::base

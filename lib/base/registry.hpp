#pragma once

#include <mutex>

namespace tensorpool::base {

/// Objects of one type in a list of their own (`Object::next_of_all`), so that a fork finds none of
/// them amid a change. Its lock comes before theirs. Thread-safe.
template <class Object>
class Registry {
public:
    void enter(Object& object) noexcept {
        const std::lock_guard guard(mutex_);
        object.next_of_all = first_;
        first_ = &object;
    }
    /// One that is not in the list, as the child of a fork may find it, is no error.
    void leave(Object& object) noexcept {
        const std::lock_guard guard(mutex_);
        Object** link = &first_;
        while (*link != nullptr && *link != &object) link = &(*link)->next_of_all;
        if (*link != nullptr) *link = object.next_of_all;
    }

    // REQUIRES, for what follows: the lock is held.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }
    template <class Function>
    void for_each(Function function) noexcept {
        for (Object* object = first_; object != nullptr; object = object->next_of_all) {
            function(*object);
        }
    }

protected:
    std::mutex mutex_;
    Object* first_ = nullptr;
};

}  // namespace tensorpool::base

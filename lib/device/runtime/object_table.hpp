#pragma once

#include <mutex>

#include <tensorpool/device/runtime.hpp>

namespace tensorpool::device {

/// A program's objects for one device, one of each type. Lookups take no lock. Objects are made one
/// at a time, so that two threads whose objects request each other's types cannot deadlock.
class ObjectTable {
public:
    using Recipe = Runtime::ObjectRecipe;

    ~ObjectTable() { end(); }

    /// Returns the object of this type, or nullptr if none was made yet.
    void* find(const std::type_info& type) const noexcept {
        // Acquire: pairs with the release in `make`, so that the entry and its object are visible.
        for (const Entry* entry = last_.load(std::memory_order_acquire); entry != nullptr;
             entry = entry->next) {
            if (*entry->type == type) return entry->object;
        }
        return nullptr;
    }
    /// Returns the object of this type and makes it if needed. Throws what the factory throws,
    /// std::logic_error if the calling thread is already making this type, and std::bad_alloc.
    void* make(Runtime& runtime, const Recipe& recipe) {
        const std::lock_guard guard(making_);
        if (void* const made = find(*recipe.type)) return made;
        check_not_under_way(*recipe.type);
        auto entry = std::make_unique<Entry>(Entry{recipe.type, nullptr, recipe.destroy, nullptr});
        const UnderWay here = {recipe.type, under_way_};
        struct Restore {
            const UnderWay*& current;
            const UnderWay* before;
            ~Restore() { current = before; }
        } const restore = {under_way_, std::exchange(under_way_, &here)};
        entry->object = recipe.make(runtime, recipe.factory);
        if (entry->object == nullptr) {
            throw std::logic_error(
                std::string("tensorpool: Runtime::object: the factory returned nullptr for type ") +
                recipe.type->name() + ", expected an object");
        }
        // Objects that the factory requested are already in the list, so they are destroyed later.
        entry->next = last_.load(std::memory_order_relaxed);
        last_.store(entry.get(), std::memory_order_release);
        return entry.release()->object;
    }
    /// Destroys all objects, the last one made first. An object that requests another during its
    /// destruction gets it; it is made again if needed, because the table still exists.
    void end() noexcept {
        while (Entry* const entry = last_.load(std::memory_order_relaxed)) {
            last_.store(entry->next, std::memory_order_relaxed);
            entry->destroy(entry->object);
            delete entry;
        }
    }

private:
    struct Entry {
        const std::type_info* type;
        void* object;
        void (*destroy)(void* object) noexcept;
        Entry* next;  // the entry made before this one
    };
    struct UnderWay {
        const std::type_info* type;
        const UnderWay* outer;
    };

    void check_not_under_way(const std::type_info& type) const {
        for (const UnderWay* now = under_way_; now != nullptr; now = now->outer) {
            if (*now->type != type) continue;
            throw std::logic_error(
                std::string("tensorpool: Runtime::object: an object of type ") + type.name() +
                " requests itself during its construction; expected requests for other types only");
        }
    }

    std::atomic<Entry*> last_{nullptr};
    // Held while an object is made; recursively if the factory requests other objects.
    std::recursive_mutex making_;
    const UnderWay* under_way_ = nullptr;  // guarded by making_
};

}  // namespace tensorpool::device

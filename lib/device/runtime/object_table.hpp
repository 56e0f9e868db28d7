#pragma once

#include <mutex>

#include <tensorpool/device/runtime.hpp>

namespace tensorpool::device {

/// A program's objects for one device, one of each type. Lookups take no lock. Objects are made one
/// at a time, so that two threads whose objects request each other's types cannot deadlock.
class ObjectTable {
public:
    using Recipe = Runtime::ObjectRecipe;

    ObjectTable() = default;
    ~ObjectTable() { end(); }
    ObjectTable(const ObjectTable&) = delete;
    ObjectTable& operator=(const ObjectTable&) = delete;

    /// Returns the object of this type, or nullptr if none was made yet.
    void* find(const std::type_info& type) const noexcept;
    /// Returns the object of this type and makes it if needed. Throws what the factory throws,
    /// std::logic_error if the calling thread is already making this type, and std::bad_alloc.
    void* make(Runtime& runtime, const Recipe& recipe);
    /// Destroys all objects, the last one made first. An object that requests another during its
    /// destruction gets it; it is made again if needed, because the table still exists.
    void end() noexcept;

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

    void check_not_under_way(const std::type_info& type) const;

    std::atomic<Entry*> last_{nullptr};
    // Held while an object is made; recursively if the factory requests other objects.
    std::recursive_mutex making_;
    const UnderWay* under_way_ = nullptr;  // guarded by making_
};

}  // namespace tensorpool::device

#pragma once

#include <atomic>
#include <mutex>
#include <typeinfo>

#include <tensorpool/device/runtime.hpp>

namespace tensorpool::device {

/// A program's objects of one device, one of each type. Found without a lock; made one at a time,
/// so that two that ask for each other's kind from two threads cannot wait for one another.
class ObjectTable {
public:
    using Recipe = Runtime::ObjectRecipe;

    ObjectTable() = default;
    ~ObjectTable() { end(); }
    ObjectTable(const ObjectTable&) = delete;
    ObjectTable& operator=(const ObjectTable&) = delete;

    /// nullptr where none of this type was made yet.
    void* find(const std::type_info& type) const noexcept;
    /// The one there is, or a new one. Throws what making it throws, std::logic_error where a type
    /// is being made already by the calling thread, and std::bad_alloc.
    void* make(Runtime& runtime, const Recipe& recipe);
    /// Destroys all, those made last first. One that asks for another meanwhile gets it, made anew
    /// if need be: the runtime still has its table then.
    void end() noexcept;

private:
    struct Entry {
        const std::type_info* type;
        void* object;
        void (*destroy)(void* object) noexcept;
        Entry* next;  // made before it
    };
    struct UnderWay {
        const std::type_info* type;
        const UnderWay* outer;
    };

    void check_not_under_way(const std::type_info& type) const;

    std::atomic<Entry*> last_{nullptr};
    // Held while an object is made; by one thread more than once, for objects that ask for others.
    std::recursive_mutex making_;
    const UnderWay* under_way_ = nullptr;  // under making_
};

}  // namespace tensorpool::device

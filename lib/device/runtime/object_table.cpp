#include "device/runtime/object_table.hpp"

namespace tensorpool::device {

void ObjectTable::end() noexcept {
    while (Entry* const entry = last_.load(std::memory_order_relaxed)) {
        last_.store(entry->next, std::memory_order_relaxed);
        entry->destroy(entry->object);
        delete entry;
    }
}

void* ObjectTable::find(const std::type_info& type) const noexcept {
    // Acquire: pairs with the release in `make`, so that the entry and its object are visible.
    for (const Entry* entry = last_.load(std::memory_order_acquire); entry != nullptr;
         entry = entry->next) {
        if (*entry->type == type) return entry->object;
    }
    return nullptr;
}

void* ObjectTable::make(Runtime& runtime, const Recipe& recipe) {
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

void ObjectTable::check_not_under_way(const std::type_info& type) const {
    for (const UnderWay* now = under_way_; now != nullptr; now = now->outer) {
        if (*now->type != type) continue;
        throw std::logic_error(
            std::string("tensorpool: Runtime::object: an object of type ") + type.name() +
            " requests itself during its construction; expected requests for other types only");
    }
}

}  // namespace tensorpool::device

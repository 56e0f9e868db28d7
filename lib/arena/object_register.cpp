#include "arena/object_register.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace tensorpool::arena {

ObjectId ObjectRegister::add(std::size_t offset, ObjectDescription object) {
    const std::lock_guard guard(mutex_);
    objects_.push_back({.id = last_ + 1, .description = std::move(object), .offset = offset});
    return ++last_;
}

ObjectId ObjectRegister::add_view(ObjectId of, std::size_t offset, ObjectDescription view,
                                  const std::string& arena) {
    const auto refuse = [&](const std::string& what) {
        throw std::invalid_argument("tensorpool: arena '" + arena + "': record_view: view '" +
                                    view.name + "': " + what);
    };
    const std::lock_guard guard(mutex_);
    const ArenaObject* const whole = find(of);
    if (whole == nullptr) refuse("there is no object " + std::to_string(of));
    const std::size_t room = whole->description.bytes;
    if (offset > room || view.bytes > room - offset) {
        refuse(std::to_string(view.bytes) + " B at offset " + std::to_string(offset) +
               " reach beyond '" + whole->description.name + "', which has " +
               std::to_string(room) + " B");
    }
    const std::size_t begin = whole->offset + offset;
    objects_.push_back(
        {.id = last_ + 1, .description = std::move(view), .offset = begin, .view_of = of});
    return ++last_;
}

const ArenaObject* ObjectRegister::find(ObjectId id) const noexcept {
    const auto at = std::lower_bound(
        objects_.begin(), objects_.end(), id,
        [](const ArenaObject& object, ObjectId wanted) { return object.id < wanted; });
    return at != objects_.end() && at->id == id ? &*at : nullptr;
}

void ObjectRegister::forget_above(std::size_t offset) noexcept {
    forget([offset](const ArenaObject& object) {
        return object.offset + object.description.bytes > offset || object.offset >= offset;
    });
}

void ObjectRegister::forget_within(std::size_t begin, std::size_t end) noexcept {
    forget([begin, end](const ArenaObject& object) {
        return object.offset >= begin && object.offset < end;
    });
}

// A view ends with the object that it shows, even if the part that it shows stays.
template <class Predicate>
void ObjectRegister::forget(Predicate is_gone) noexcept {
    const std::lock_guard guard(mutex_);
    auto kept = objects_.begin();
    for (auto object = objects_.begin(); object != objects_.end(); ++object) {
        const bool gone = is_gone(*object);
        const auto of = std::lower_bound(
            objects_.begin(), kept, object->view_of,
            [](const ArenaObject& one, ObjectId wanted) { return one.id < wanted; });
        const bool stays = object->view_of == 0 ? !gone : of != kept && of->id == object->view_of;
        if (!stays) continue;
        if (kept != object) *kept = std::move(*object);
        ++kept;
    }
    objects_.erase(kept, objects_.end());
}

std::vector<ArenaObject> ObjectRegister::objects() const {
    const std::lock_guard guard(mutex_);
    return objects_;
}

}  // namespace tensorpool::arena

#include "arena/object_register.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace tensorpool::arena {

namespace {

constexpr std::align_val_t header_alignment{64};

constexpr auto id_of = [](const auto& entry) { return entry.object.id; };

}  // namespace

void HeaderDeleter::operator()(std::byte* header) const noexcept {
    ::operator delete(header, header_alignment);
}

Header make_header(std::size_t bytes) {
    if (bytes == 0) return {};
    void* const header = ::operator new(bytes, header_alignment);
    std::memset(header, 0, bytes);
    return Header(static_cast<std::byte*>(header));
}

ObjectId ObjectRegister::add(std::size_t offset, ObjectDescription object) {
    const std::lock_guard guard(mutex_);
    reserve(1);
    return append({.description = std::move(object), .offset = offset}, {});
}

// The room still counts until it is destroyed, which only makes the register larger than needed.
ObjectId ObjectRegister::add(const Room&, std::size_t offset, ObjectDescription object,
                             Header header) noexcept {
    const std::lock_guard guard(mutex_);
    return append({.description = std::move(object), .offset = offset}, std::move(header));
}

ObjectRegister::AddedView ObjectRegister::add_view(ObjectId of, std::size_t offset,
                                                   ObjectDescription view, const std::string& arena,
                                                   Header header) {
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
    reserve(1);
    const ObjectId id =
        append({.description = std::move(view), .offset = begin, .view_of = of}, std::move(header));
    return {id, begin};
}

void ObjectRegister::make_room() {
    const std::lock_guard guard(mutex_);
    reserve(1);
    ++rooms_;
}

void ObjectRegister::give_up_room() noexcept {
    const std::lock_guard guard(mutex_);
    --rooms_;
}

void ObjectRegister::reserve(std::size_t more) {
    const std::size_t needed = entries_.size() + rooms_ + more;
    if (needed > entries_.capacity()) entries_.reserve(std::max(needed, 2 * entries_.capacity()));
}

ObjectId ObjectRegister::append(ArenaObject object, Header header) noexcept {
    object.id = ++last_;
    object.header = header.get();
    entries_.push_back({std::move(object), std::move(header)});
    return last_;
}

const ArenaObject* ObjectRegister::find(ObjectId id) const noexcept {
    const auto at = std::ranges::lower_bound(entries_, id, {}, id_of);
    return at != entries_.end() && at->object.id == id ? &at->object : nullptr;
}

void ObjectRegister::forget_above(std::size_t offset) noexcept {
    forget([offset](const ArenaObject& object) {
        return offset == 0 || object.offset + object.description.bytes > offset;
    });
}

void ObjectRegister::forget_within(std::size_t begin, std::size_t end) noexcept {
    forget([begin, end](const ArenaObject& object) {
        const bool may_precede = object.offset == begin && object.description.bytes == 0;
        return object.offset >= begin && object.offset < end && !may_precede;
    });
}

// A view ends with the object that it shows, even if the part that it shows stays.
template <class Predicate>
void ObjectRegister::forget(Predicate is_gone) noexcept {
    const std::lock_guard guard(mutex_);
    auto kept = entries_.begin();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        const ArenaObject& object = entry->object;
        const bool gone = is_gone(object);
        const auto of = std::ranges::lower_bound(entries_.begin(), kept, object.view_of, {}, id_of);
        const bool stays =
            object.view_of == 0 ? !gone : of != kept && of->object.id == object.view_of;
        if (!stays) continue;
        if (kept != entry) *kept = std::move(*entry);
        ++kept;
    }
    entries_.erase(kept, entries_.end());
}

std::vector<ArenaObject> ObjectRegister::objects() const {
    const std::lock_guard guard(mutex_);
    std::vector<ArenaObject> copies;
    copies.reserve(entries_.size());
    for (const Entry& entry : entries_) copies.push_back(entry.object);
    return copies;
}

}  // namespace tensorpool::arena

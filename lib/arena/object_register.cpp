#include "arena/object_register.hpp"

#include "arena/arena_state.hpp"

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

namespace tensorpool {
namespace {

arena::ObjectRegister& register_of(const Arena& arena, detail::ArenaState& state,
                                   const char* call) {
    if (state.objects != nullptr) return *state.objects;
    throw std::logic_error("tensorpool: arena '" + arena.name() + "': " + call +
                           ": the arena keeps no register of objects, expected one made with "
                           "ArenaOptions::objects");
}

}  // namespace

ObjectId Arena::record(const void* data, ObjectDescription object) {
    arena::ObjectRegister& objects = register_of(*this, *state_, "record");
    const auto begin = reinterpret_cast<std::uintptr_t>(base_);
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(data) - begin;
    const std::size_t in_use = used();
    if (offset > in_use || object.bytes > in_use - offset) {
        throw std::invalid_argument("tensorpool: arena '" + name() + "': record: object '" +
                                    object.name + "' of " + std::to_string(object.bytes) +
                                    " B does not lie within the " + std::to_string(in_use) +
                                    " B in use");
    }
    return objects.add(offset, std::move(object));
}

ObjectId Arena::record_view(ObjectId of, std::size_t offset, ObjectDescription view) {
    return register_of(*this, *state_, "record_view")
        .add_view(of, offset, std::move(view), name())
        .id;
}

AllocatedObject Arena::allocate_object(ObjectDescription object, std::size_t header_bytes) {
    arena::ObjectRegister& objects = register_of(*this, *state_, "allocate_object");
    arena::Header header = arena::make_header(header_bytes);
    const arena::ObjectRegister::Room room(objects);
    AllocatedObject made = {.header = header.get(), .data = allocate(object.bytes, alignment())};
    const std::size_t offset =
        made.data == nullptr ? used()
                             : static_cast<std::size_t>(static_cast<std::byte*>(made.data) - base_);
    made.id = objects.add(room, offset, std::move(object), std::move(header));
    return made;
}

AllocatedObject Arena::allocate_view(ObjectId of, std::size_t offset, ObjectDescription view,
                                     std::size_t header_bytes) {
    arena::ObjectRegister& objects = register_of(*this, *state_, "allocate_view");
    arena::Header header = arena::make_header(header_bytes);
    void* const of_view = header.get();
    // A handle that ends on another thread may remove the view, so only the register's answer
    // counts.
    const auto [id, begin] =
        objects.add_view(of, offset, std::move(view), name(), std::move(header));
    return {.id = id, .header = of_view, .data = base_ + begin};
}

std::vector<ArenaObject> Arena::objects() const {
    if (state_->objects == nullptr) return {};
    return state_->objects->objects();
}

ArenaAnalysis Arena::analyze() const {
    return arena::analyze(name(), used(), objects());
}

}  // namespace tensorpool

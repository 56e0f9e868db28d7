#include "arena/object_register.hpp"

#include "arena/arena_state.hpp"

namespace tensorpool::arena {

void HeaderDeleter::operator()(std::byte* header) const noexcept {
    ::operator delete(header, header_alignment);
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

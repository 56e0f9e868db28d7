// The register of the objects in an arena. If it is off, each call costs a comparison with null.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <tensorpool/arena.hpp>

#include "arena/arena_state.hpp"

namespace tensorpool {

ObjectId Arena::record(const void* data, ObjectDescription object) {
    if (state_->objects == nullptr) return 0;
    const auto begin = reinterpret_cast<std::uintptr_t>(base_);
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(data) - begin;
    const std::size_t in_use = used();
    if (offset > in_use || object.bytes > in_use - offset) {
        throw std::invalid_argument("tensorpool: arena '" + name() + "': record: object '" +
                                    object.name + "' of " + std::to_string(object.bytes) +
                                    " B does not lie within the " + std::to_string(in_use) +
                                    " B in use");
    }
    return state_->objects->add(offset, std::move(object));
}

ObjectId Arena::record_view(ObjectId of, std::size_t offset, ObjectDescription view) {
    if (state_->objects == nullptr) return 0;
    return state_->objects->add_view(of, offset, std::move(view), name());
}

std::vector<ArenaObject> Arena::objects() const {
    if (state_->objects == nullptr) return {};
    return state_->objects->objects();
}

ArenaAnalysis Arena::analyze() const {
    return arena::analyze(name(), used(), objects());
}

}  // namespace tensorpool

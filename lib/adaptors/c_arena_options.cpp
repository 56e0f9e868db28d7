#include "adaptors/c_arena_options.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>

#include "adaptors/c_calls.hpp"
#include "adaptors/sized_struct.hpp"

namespace tensorpool::adaptors {
namespace {

constexpr const char* struct_name = "tensorpool_arena_options";
constexpr std::size_t first_version_bytes = offsetof(tensorpool_arena_options, on_event_user) +
                                            sizeof(tensorpool_arena_options::on_event_user);

static_assert(static_cast<int>(Sharing::any_thread) == tensorpool_sharing_any_thread);
static_assert(static_cast<int>(Sharing::one_thread) == tensorpool_sharing_one_thread);
static_assert(static_cast<int>(ArenaEvent::Kind::growth) == tensorpool_arena_event_growth);
static_assert(static_cast<int>(ArenaEvent::Kind::give_back) == tensorpool_arena_event_give_back);
static_assert(static_cast<int>(ArenaEvent::Kind::refusal) == tensorpool_arena_event_refusal);

tensorpool_arena_options defaults() {
    const ArenaOptions from;
    tensorpool_arena_options to = {};
    to.struct_bytes = sizeof to;
    to.name = "arena";
    to.initial_capacity = from.initial_capacity;
    to.max_capacity = from.max_capacity;
    to.max_allocation = from.max_allocation;
    to.alignment = from.alignment;
    to.growth_step = from.growth.step;
    to.growth_factor = from.growth.factor;
    to.growth_fraction = from.growth.fraction;
    to.retain = from.retain;
    to.sharing = static_cast<std::int32_t>(from.sharing);
    to.objects = from.objects ? 1 : 0;
    to.checks = static_cast<std::int32_t>(from.checks);
    return to;
}

using EventFunction = void (*)(const tensorpool_arena_event*, void*);

std::function<void(const ArenaEvent&)> to_callback(EventFunction function, void* user) {
    if (function == nullptr) return {};
    return [function, user](const ArenaEvent& event) {
        const tensorpool_arena_event reported = {.kind = static_cast<std::int32_t>(event.kind),
                                                 .arena = event.arena,
                                                 .bytes = event.bytes,
                                                 .used = event.used,
                                                 .capacity = event.capacity,
                                                 .limit = event.limit};
        function(&reported, user);
    };
}

}  // namespace

ArenaOptions to_arena_options(const tensorpool_arena_options* options) {
    if (options == nullptr) return {};
    const tensorpool_arena_options from =
        known_part(*options, defaults(), struct_name, first_version_bytes);
    if (from.name == nullptr) throw std::invalid_argument("name is NULL, expected a text");
    ArenaOptions to;
    to.name = from.name;
    to.initial_capacity = from.initial_capacity;
    to.max_capacity = from.max_capacity;
    to.max_allocation = from.max_allocation;
    to.alignment = from.alignment;
    to.growth = {
        .step = from.growth_step, .factor = from.growth_factor, .fraction = from.growth_fraction};
    to.retain = from.retain;
    to.sharing = to_enumeration("sharing", from.sharing, Sharing::one_thread);
    to.objects = to_enumeration("objects", from.objects, 1) != 0;
    to.checks = to_enumeration("checks", from.checks, Checks::hardened);
    to.on_event = to_callback(from.on_event, from.on_event_user);
    return to;
}

std::span<std::byte> to_buffer(void* buffer, std::size_t bytes) {
    if (buffer == nullptr && bytes != 0) {
        throw std::invalid_argument("buffer is NULL, expected " + std::to_string(bytes) + " B");
    }
    return {static_cast<std::byte*>(buffer), bytes};
}

}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;

tensorpool_status tensorpool_arena_options_init(tensorpool_arena_options* options,
                                                size_t struct_bytes) {
    return guarded("arena_options_init", [&] {
        set_options(options, struct_bytes, struct_name, first_version_bytes, defaults());
    });
}

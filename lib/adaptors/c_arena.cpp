// Arenas for C. A tensorpool_arena is an Arena.

#include <tensorpool/tensorpool_arena.h>

#include "adaptors/c_calls.hpp"

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

/// Calls `copy` for the fields of both structs that are the same.
void for_each_option(auto copy, auto& c, auto& ours) {
    copy(c.initial_capacity, ours.initial_capacity);
    copy(c.max_capacity, ours.max_capacity);
    copy(c.max_allocation, ours.max_allocation);
    copy(c.alignment, ours.alignment);
    copy(c.growth_step, ours.growth.step);
    copy(c.growth_factor, ours.growth.factor);
    copy(c.growth_fraction, ours.growth.fraction);
    copy(c.retain, ours.retain);
    copy(c.sharing, ours.sharing, "sharing", Sharing::one_thread);
    copy(c.objects, ours.objects, "objects", 1);
    copy(c.checks, ours.checks, "checks", Checks::hardened);
}

tensorpool_arena_options defaults() {
    const ArenaOptions from;
    tensorpool_arena_options to = {};
    to.struct_bytes = sizeof to;
    to.name = "arena";
    for_each_option(ToC(), to, from);
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

auto& to_arena(auto* arena) {
    return object_of<Arena>(arena, "arena",
                            "one from tensorpool_arena_create or tensorpool_context_arena");
}

const tensorpool_arena_mark* a_mark(const tensorpool_arena_mark* mark) {
    return &required(mark, "mark", "one that tensorpool_arena_set_mark stored");
}

const char* or_empty(const char* text) noexcept {
    return text == nullptr ? "" : text;
}

ObjectDescription to_description(const tensorpool_object* object) {
    constexpr std::size_t first_object_bytes =
        offsetof(tensorpool_object, bytes) + sizeof(tensorpool_object::bytes);
    required(object, "object", "a struct");
    const tensorpool_object from = known_part(*object, {}, "tensorpool_object", first_object_bytes);
    if (from.shape == nullptr && from.dimensions != 0) {
        refuse_null("shape", "the extent of each dimension");
    }
    return {.name = or_empty(from.name),
            .kind = or_empty(from.kind),
            .element_type = or_empty(from.element_type),
            .shape = {from.shape, from.shape + from.dimensions},
            .bytes = from.bytes};
}

tensorpool_allocated_object to_c(const AllocatedObject& from) noexcept {
    return {.id = from.id, .header = from.header, .data = from.data};
}

}  // namespace

ArenaOptions to_arena_options(const tensorpool_arena_options* options) {
    if (options == nullptr) return {};
    const tensorpool_arena_options from =
        known_part(*options, defaults(), struct_name, first_version_bytes);
    if (from.name == nullptr) throw std::invalid_argument("name is NULL, expected a text");
    ArenaOptions to;
    to.name = from.name;
    for_each_option(FromC(), from, to);
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
using tensorpool::Arena;

tensorpool_arena* tensorpool_arena_create(const tensorpool_arena_options* options) {
    return to_handle(or_zero([&] { return new Arena(to_arena_options(options)); }));
}

tensorpool_arena* tensorpool_arena_create_over(void* buffer, size_t bytes,
                                               const tensorpool_arena_options* options) {
    return to_handle(or_zero([&] {
        return new Arena(Arena::over(to_buffer(buffer, bytes), to_arena_options(options)));
    }));
}

tensorpool_arena* tensorpool_arena_create_measuring(const tensorpool_arena_options* options) {
    return to_handle(
        or_zero([&] { return new Arena(Arena::measuring(to_arena_options(options))); }));
}

void tensorpool_arena_destroy(tensorpool_arena* arena) {
    delete reinterpret_cast<Arena*>(arena);
}

void* tensorpool_arena_allocate(tensorpool_arena* arena, size_t bytes) {
    return or_zero([&] {
        Arena& from = to_arena(arena);
        return from.allocate(bytes, from.alignment());
    });
}

void* tensorpool_arena_allocate_aligned(tensorpool_arena* arena, size_t bytes, size_t alignment) {
    return or_zero([&] { return to_arena(arena).allocate(bytes, alignment); });
}

tensorpool_status tensorpool_arena_set_mark(const tensorpool_arena* arena,
                                            tensorpool_arena_mark* mark) {
    return guarded([&] {
        required(mark, "mark", "a struct") =
            std::bit_cast<tensorpool_arena_mark>(to_arena(arena).mark());
    });
}

tensorpool_status tensorpool_arena_release_to(tensorpool_arena* arena,
                                              const tensorpool_arena_mark* mark) {
    return guarded([&] { to_arena(arena).release_to(std::bit_cast<Arena::Mark>(*a_mark(mark))); });
}

tensorpool_status tensorpool_arena_reset(tensorpool_arena* arena) {
    return guarded([&] { to_arena(arena).reset(); });
}

tensorpool_status tensorpool_arena_reserve(tensorpool_arena* arena, size_t bytes) {
    return guarded([&] { to_arena(arena).reserve(bytes); });
}

size_t tensorpool_arena_trim(tensorpool_arena* arena) {
    return or_zero([&] { return to_arena(arena).trim(); });
}

size_t tensorpool_arena_used(const tensorpool_arena* arena) {
    return or_zero([&] { return to_arena(arena).used(); });
}

size_t tensorpool_arena_peak(const tensorpool_arena* arena) {
    return or_zero([&] { return to_arena(arena).peak(); });
}

size_t tensorpool_arena_capacity(const tensorpool_arena* arena) {
    return or_zero([&] { return to_arena(arena).capacity(); });
}

size_t tensorpool_arena_available(const tensorpool_arena* arena) {
    return or_zero([&] { return to_arena(arena).available(); });
}

uint64_t tensorpool_arena_record(tensorpool_arena* arena, const void* data,
                                 const tensorpool_object* object) {
    return or_zero([&] { return to_arena(arena).record(data, to_description(object)); });
}

uint64_t tensorpool_arena_record_view(tensorpool_arena* arena, uint64_t of, size_t offset,
                                      const tensorpool_object* view) {
    return or_zero([&] { return to_arena(arena).record_view(of, offset, to_description(view)); });
}

tensorpool_allocated_object tensorpool_arena_allocate_object(tensorpool_arena* arena,
                                                             const tensorpool_object* object,
                                                             size_t header_bytes) {
    return or_zero([&] {
        return to_c(to_arena(arena).allocate_object(to_description(object), header_bytes));
    });
}

tensorpool_allocated_object tensorpool_arena_allocate_view(tensorpool_arena* arena, uint64_t of,
                                                           size_t offset,
                                                           const tensorpool_object* view,
                                                           size_t header_bytes) {
    return or_zero([&] {
        return to_c(to_arena(arena).allocate_view(of, offset, to_description(view), header_bytes));
    });
}

int tensorpool_arena_analyze_json(const tensorpool_arena* arena, char* buffer,
                                  size_t buffer_bytes) {
    return report(buffer, buffer_bytes, [&] { return to_json(to_arena(arena).analyze()); });
}

tensorpool_status tensorpool_arena_read_statistics(const tensorpool_arena* arena,
                                                   tensorpool_arena_statistics* statistics) {
    return guarded([&] { fill_in(statistics, [&] { return to_arena(arena).statistics(); }); });
}

int tensorpool_arena_report_json(const tensorpool_arena* arena, char* buffer, size_t buffer_bytes) {
    return report(buffer, buffer_bytes, [&] { return to_json(to_arena(arena).statistics()); });
}

tensorpool_status tensorpool_arena_options_init(tensorpool_arena_options* options,
                                                size_t struct_bytes) {
    return guarded(
        [&] { set_options(options, struct_bytes, struct_name, first_version_bytes, defaults()); });
}

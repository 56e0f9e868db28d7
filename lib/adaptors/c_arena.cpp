// Arenas, contexts and scratches for C. A tensorpool_arena is an Arena, a tensorpool_context a
// Context.

#include <tensorpool/tensorpool_arena.h>

#include <utility>

#include <tensorpool/context.hpp>

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

/// Converts the options of the C interface; nullptr means all defaults. Throws
/// std::invalid_argument for a size that is not that of any version of the struct, for a value
/// outside its enumeration, and for a set field that this version does not know.
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

tensorpool_arena* to_handle(Arena* arena) noexcept {
    return reinterpret_cast<tensorpool_arena*>(arena);
}
tensorpool_scratch* to_handle(Scratch* scratch) noexcept {
    return reinterpret_cast<tensorpool_scratch*>(scratch);
}

auto& to_context(auto* context) {
    return object_of<Context>(context, "context", "one from tensorpool_context_create");
}

template <class Make>
tensorpool_context* created(Make make, const char* function = __builtin_FUNCTION()) noexcept {
    return reinterpret_cast<tensorpool_context*>(or_zero(make, function));
}

auto& to_scratch(auto* scratch) {
    return object_of<Scratch>(scratch, "scratch",
                              "one from tensorpool_scratch_local or tensorpool_context_scratch");
}

static_assert(sizeof(ScratchScope) <= sizeof(tensorpool_scratch_scope));
static_assert(alignof(ScratchScope) <= alignof(tensorpool_scratch_scope));

/// Fills in a caller's struct with what `read` returns. Throws std::invalid_argument if the pointer
/// is NULL or the size is not that of any version of the struct.
template <class Read>
void fill_in_statistics(tensorpool_arena_statistics* statistics, Read read) {
    constexpr std::size_t first_statistics_bytes = offsetof(tensorpool_arena_statistics, refusals) +
                                                   sizeof(tensorpool_arena_statistics::refusals);
    fill_in(statistics, "statistics", "tensorpool_arena_statistics", first_statistics_bytes, [&] {
        const ArenaStatistics from = read();
        return tensorpool_arena_statistics{.struct_bytes = sizeof(tensorpool_arena_statistics),
                                           .used_bytes = from.used_bytes,
                                           .peak_used_bytes = from.peak_used_bytes,
                                           .capacity_bytes = from.capacity_bytes,
                                           .peak_capacity_bytes = from.peak_capacity_bytes,
                                           .reserved_bytes = from.reserved_bytes,
                                           .limit_bytes = from.limit_bytes,
                                           .growths = from.growths,
                                           .grown_bytes = from.grown_bytes,
                                           .give_backs = from.give_backs,
                                           .given_back_bytes = from.given_back_bytes,
                                           .refusals = from.refusals,
                                           .allocations = from.allocations,
                                           .releases = from.releases};
    });
}

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::Arena;
using tensorpool::Context;
using tensorpool::Scratch;
using tensorpool::ScratchScope;

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
    return guarded(
        [&] { fill_in_statistics(statistics, [&] { return to_arena(arena).statistics(); }); });
}

int tensorpool_arena_report_json(const tensorpool_arena* arena, char* buffer, size_t buffer_bytes) {
    return report(buffer, buffer_bytes, [&] { return to_json(to_arena(arena).statistics()); });
}

tensorpool_status tensorpool_arena_options_init(tensorpool_arena_options* options,
                                                size_t struct_bytes) {
    return guarded(
        [&] { set_options(options, struct_bytes, struct_name, first_version_bytes, defaults()); });
}

// Contexts and scratches -------------------------------------------------------------------------

tensorpool_context* tensorpool_context_create(const tensorpool_arena_options* options) {
    return created([&] {
        return options == nullptr ? new Context() : new Context(to_arena_options(options));
    });
}

tensorpool_context* tensorpool_context_create_with_pool(const tensorpool_arena_options* options,
                                                        tensorpool_pool* pool, size_t small_bytes) {
    return created([&] {
        tensorpool::ContextOptions to;
        if (options != nullptr) to.arena = to_arena_options(options);
        to.pool = reinterpret_cast<tensorpool::MemoryPool*>(pool);
        to.small_bytes = small_bytes;
        return new Context(std::move(to));
    });
}

tensorpool_context* tensorpool_context_create_over(void* buffer, size_t bytes, size_t alignment) {
    return created([&] { return new Context(to_buffer(buffer, bytes), alignment); });
}

tensorpool_context* tensorpool_context_create_measuring(const tensorpool_arena_options* options) {
    return created([&] {
        return options == nullptr ? new Context(Context::measuring())
                                  : new Context(Context::measuring(to_arena_options(options)));
    });
}

void tensorpool_context_destroy(tensorpool_context* context) {
    delete reinterpret_cast<Context*>(context);
}

void* tensorpool_context_allocate(tensorpool_context* context, size_t bytes) {
    return or_zero([&] { return to_context(context).allocate(bytes); });
}

void tensorpool_context_deallocate(tensorpool_context* context, void* block, size_t bytes) {
    if (block == nullptr) return;
    guarded([&] { to_context(context).deallocate(block, bytes); });
}

int tensorpool_context_report_json(const tensorpool_context* context, char* buffer,
                                   size_t buffer_bytes) {
    return report(buffer, buffer_bytes, [&] { return to_json(to_context(context).statistics()); });
}

void* tensorpool_context_alloc(tensorpool_context* context, size_t bytes) {
    return or_zero([&] { return to_context(context).alloc(bytes); });
}

void* tensorpool_context_scratch_alloc(tensorpool_context* context, size_t bytes) {
    return or_zero([&] { return to_context(context).scratch_alloc(bytes); });
}

void* tensorpool_context_scratch_alloc_matrix_pack(tensorpool_context* context, size_t rows,
                                                   size_t columns, size_t element_bytes) {
    return or_zero([&] {
        return to_context(context).scratch_alloc_matrix_pack(rows, columns, element_bytes);
    });
}

tensorpool_status tensorpool_context_scratch_reset(tensorpool_context* context) {
    return guarded([&] { to_context(context).scratch_reset(); });
}

size_t tensorpool_context_mark(const tensorpool_context* context) {
    return or_zero([&] { return to_context(context).mark(); });
}

tensorpool_status tensorpool_context_release_to(tensorpool_context* context, size_t mark) {
    return guarded([&] { to_context(context).release_to(mark); });
}

tensorpool_status tensorpool_context_reset(tensorpool_context* context) {
    return guarded([&] { to_context(context).reset(); });
}

tensorpool_status tensorpool_context_save_scratch(tensorpool_context* context) {
    return guarded([&] { to_context(context).save_scratch(); });
}

tensorpool_status tensorpool_context_restore_scratch(tensorpool_context* context) {
    return guarded([&] { to_context(context).restore_scratch(); });
}

tensorpool_status tensorpool_context_use_scratch(tensorpool_context* context, void* buffer,
                                                 size_t bytes) {
    return guarded([&] { to_context(context).use_scratch(to_buffer(buffer, bytes)); });
}

tensorpool_arena* tensorpool_context_arena(tensorpool_context* context) {
    return to_handle(or_zero([&] { return &to_context(context).arena(); }));
}

tensorpool_scratch* tensorpool_context_scratch(tensorpool_context* context) {
    return to_handle(or_zero([&] { return &to_context(context).scratch(); }));
}

tensorpool_scratch* tensorpool_scratch_local() {
    return to_handle(or_zero([] { return &Scratch::local(); }));
}

tensorpool_scratch* tensorpool_scratch_create_over(void* buffer, size_t bytes) {
    return to_handle(or_zero([&] { return new Scratch(Scratch::over(to_buffer(buffer, bytes))); }));
}

void tensorpool_scratch_destroy(tensorpool_scratch* scratch) {
    delete reinterpret_cast<Scratch*>(scratch);
}

void* tensorpool_scratch_allocate(tensorpool_scratch* scratch, size_t bytes) {
    return or_zero([&] { return to_scratch(scratch).allocate(bytes); });
}

void* tensorpool_scratch_allocate_aligned(tensorpool_scratch* scratch, size_t bytes,
                                          size_t alignment) {
    return or_zero([&] { return to_scratch(scratch).allocate(bytes, alignment); });
}

void* tensorpool_scratch_allocate_matrix_pack(tensorpool_scratch* scratch, size_t rows,
                                              size_t columns, size_t element_bytes) {
    return or_zero(
        [&] { return to_scratch(scratch).allocate_matrix_pack(rows, columns, element_bytes); });
}

void* tensorpool_scratch_allocate_padded_matrix(tensorpool_scratch* scratch, size_t rows,
                                                size_t columns, size_t element_bytes,
                                                size_t* row_bytes) {
    return or_zero([&] {
        std::size_t& distance = required(row_bytes, "row_bytes", "a size_t");
        const tensorpool::PaddedMatrix matrix =
            to_scratch(scratch).allocate_padded_matrix(rows, columns, element_bytes);
        distance = matrix.row_bytes;
        return matrix.data;
    });
}

tensorpool_status tensorpool_scratch_begin(tensorpool_scratch* scratch,
                                           tensorpool_scratch_scope* scope, const char* name) {
    return guarded([&] {
        required(scope, "scope", "a struct");
        Scratch& of = to_scratch(scratch);
        if (name == nullptr) {
            ::new (static_cast<void*>(scope)) ScratchScope(of);
        } else {
            ::new (static_cast<void*>(scope)) ScratchScope(of, name);
        }
    });
}

void tensorpool_scratch_end(tensorpool_scratch_scope* scope) {
    if (scope == nullptr) return;
    std::destroy_at(std::launder(reinterpret_cast<ScratchScope*>(scope)));
}

tensorpool_status tensorpool_scratch_reset(tensorpool_scratch* scratch) {
    return guarded([&] { to_scratch(scratch).reset(); });
}

tensorpool_status tensorpool_scratch_reserve(tensorpool_scratch* scratch, size_t bytes) {
    return guarded([&] { to_scratch(scratch).reserve(bytes); });
}

size_t tensorpool_scratch_trim(tensorpool_scratch* scratch) {
    return or_zero([&] { return to_scratch(scratch).trim(); });
}

size_t tensorpool_scratch_used(const tensorpool_scratch* scratch) {
    return or_zero([&] { return to_scratch(scratch).used(); });
}

size_t tensorpool_scratch_peak(const tensorpool_scratch* scratch) {
    return or_zero([&] { return to_scratch(scratch).peak(); });
}

tensorpool_status tensorpool_scratch_read_statistics(const tensorpool_scratch* scratch,
                                                     tensorpool_arena_statistics* statistics) {
    return guarded(
        [&] { fill_in_statistics(statistics, [&] { return to_scratch(scratch).statistics(); }); });
}

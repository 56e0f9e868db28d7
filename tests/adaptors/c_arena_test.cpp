#include <tensorpool/tensorpool_arena.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tensorpool/arena.hpp>

namespace {

struct Destroyer {
    void operator()(tensorpool_arena* arena) const { tensorpool_arena_destroy(arena); }
};
using OwnedArena = std::unique_ptr<tensorpool_arena, Destroyer>;

tensorpool_arena_options defaults() {
    tensorpool_arena_options options;
    EXPECT_EQ(tensorpool_arena_options_init(&options, sizeof options), tensorpool_ok);
    return options;
}

/// Returns the error of `tensorpool_arena_create`; "" if it succeeds.
std::string error_of(const tensorpool_arena_options& options) {
    const OwnedArena arena(tensorpool_arena_create(&options));
    return arena == nullptr ? tensorpool_last_error() : "";
}

bool last_error_has(const char* text) {
    return std::string(tensorpool_last_error()).find(text) != std::string::npos;
}

TEST(CArena, DefaultsAreThoseOfArenaOptions) {
    const tensorpool_arena_options options = defaults();
    const tensorpool::ArenaOptions expected;
    EXPECT_EQ(options.struct_bytes, sizeof options);
    EXPECT_EQ(options.name, expected.name);
    EXPECT_EQ(options.initial_capacity, expected.initial_capacity);
    EXPECT_EQ(options.max_capacity, expected.max_capacity);
    EXPECT_EQ(options.max_allocation, expected.max_allocation);
    EXPECT_EQ(options.alignment, expected.alignment);
    EXPECT_EQ(options.growth_step, expected.growth.step);
    EXPECT_EQ(options.growth_factor, expected.growth.factor);
    EXPECT_EQ(options.growth_fraction, expected.growth.fraction);
    EXPECT_EQ(options.retain, expected.retain);
    EXPECT_EQ(options.sharing, tensorpool_sharing_any_thread);
    EXPECT_EQ(options.objects, 0);
    EXPECT_EQ(options.checks, static_cast<int>(expected.checks));
    EXPECT_EQ(options.on_event, nullptr);
}

TEST(CArena, InvalidOptionsNameTheField) {
    tensorpool_arena_options options = defaults();
    options.sharing = 2;
    EXPECT_NE(error_of(options).find("sharing is 2, expected 0 to 1"), std::string::npos);
    options = defaults();
    options.objects = -1;
    EXPECT_NE(error_of(options).find("objects is -1, expected 0 to 1"), std::string::npos);
    options = defaults();
    options.alignment = 48;
    EXPECT_NE(error_of(options).find("alignment"), std::string::npos);
    options = defaults();
    options.name = nullptr;
    EXPECT_NE(error_of(options).find("name is NULL"), std::string::npos);
    options = defaults();
    options.struct_bytes = 3;
    EXPECT_NE(error_of(options).find("struct_bytes is 3"), std::string::npos);
    EXPECT_EQ(tensorpool_arena_options_init(nullptr, sizeof options), tensorpool_invalid_argument);
}

TEST(CArena, SetFieldBehindTheKnownOnesIsRefused) {
    struct Newer {
        tensorpool_arena_options known;
        std::uint64_t added = 0;
    };
    Newer newer = {.known = defaults()};
    newer.known.struct_bytes = sizeof newer;
    EXPECT_EQ(error_of(newer.known), "");
    newer.added = 1;
    EXPECT_NE(error_of(newer.known).find("this older library does not know"), std::string::npos);
}

TEST(CArena, NullArenaIsAFailure) {
    tensorpool_arena_mark mark;
    EXPECT_EQ(tensorpool_arena_allocate(nullptr, 1), nullptr);
    EXPECT_TRUE(last_error_has("arena is NULL")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_arena_set_mark(nullptr, &mark), tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_arena_reset(nullptr), tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_arena_used(nullptr), 0U);
    EXPECT_LT(tensorpool_arena_report_json(nullptr, nullptr, 0), 0);
    tensorpool_arena_destroy(nullptr);
}

TEST(CArena, OverABufferNeverGrows) {
    alignas(64) std::byte buffer[4096];
    const OwnedArena arena(tensorpool_arena_create_over(buffer, sizeof buffer, nullptr));
    ASSERT_NE(arena, nullptr);
    EXPECT_EQ(tensorpool_arena_allocate(arena.get(), 4096), buffer);
    EXPECT_EQ(tensorpool_arena_allocate(arena.get(), 1), nullptr);
    EXPECT_TRUE(last_error_has("buffer")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_arena_create_over(nullptr, 1, nullptr), nullptr);
}

TEST(CArena, MeasuresWhatARealOneNeeds) {
    const OwnedArena measuring(tensorpool_arena_create_measuring(nullptr));
    ASSERT_NE(measuring, nullptr);
    EXPECT_NE(tensorpool_arena_allocate(measuring.get(), std::size_t{3} << 30), nullptr);
    EXPECT_EQ(tensorpool_arena_peak(measuring.get()), std::size_t{3} << 30);
    EXPECT_EQ(tensorpool_arena_capacity(measuring.get()), 0U);
}

TEST(CArena, MarkOfAnotherArenaIsRefused) {
    const OwnedArena one(tensorpool_arena_create_measuring(nullptr));
    const OwnedArena other(tensorpool_arena_create_measuring(nullptr));
    tensorpool_arena_mark mark;
    ASSERT_EQ(tensorpool_arena_set_mark(one.get(), &mark), tensorpool_ok);
    EXPECT_EQ(tensorpool_arena_release_to(other.get(), &mark), tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_arena_release_to(one.get(), nullptr), tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_arena_release_to(one.get(), &mark), tensorpool_ok);
}

TEST(CArena, RefusedRequestNamesTheLimit) {
    tensorpool_arena_options options = defaults();
    options.name = "small";
    options.max_allocation = 1000;
    const OwnedArena arena(tensorpool_arena_create(&options));
    EXPECT_EQ(tensorpool_arena_allocate(arena.get(), 1001), nullptr);
    EXPECT_TRUE(last_error_has("small") && last_error_has("max_allocation"))
        << tensorpool_last_error();
    EXPECT_EQ(tensorpool_arena_allocate_aligned(arena.get(), 10, 3), nullptr);
    EXPECT_EQ(tensorpool_arena_used(arena.get()), 0U);
    tensorpool_arena_statistics statistics;
    statistics.struct_bytes = sizeof statistics;
    ASSERT_EQ(tensorpool_arena_read_statistics(arena.get(), &statistics), tensorpool_ok);
    EXPECT_EQ(statistics.refusals, 1U);
    EXPECT_EQ(statistics.allocations, 0U);
    EXPECT_NE(tensorpool_arena_allocate(arena.get(), 10), nullptr);
    ASSERT_EQ(tensorpool_arena_read_statistics(arena.get(), &statistics), tensorpool_ok);
    EXPECT_EQ(statistics.allocations, 1U);
    EXPECT_EQ(tensorpool_arena_read_statistics(arena.get(), nullptr), tensorpool_invalid_argument);
}

TEST(CArena, InvalidObjectIsRefused) {
    tensorpool_arena_options options = defaults();
    options.objects = 1;
    const OwnedArena arena(tensorpool_arena_create(&options));
    const void* const block = tensorpool_arena_allocate(arena.get(), 64);
    tensorpool_object object = {};
    object.struct_bytes = sizeof object;
    object.bytes = 65;
    EXPECT_EQ(tensorpool_arena_record(arena.get(), block, &object), 0U);
    EXPECT_TRUE(last_error_has("65 B")) << tensorpool_last_error();
    object.bytes = 64;
    object.dimensions = 1;
    EXPECT_EQ(tensorpool_arena_record(arena.get(), block, &object), 0U);
    EXPECT_TRUE(last_error_has("shape is NULL")) << tensorpool_last_error();
    object.dimensions = 0;
    EXPECT_NE(tensorpool_arena_record(arena.get(), block, &object), 0U);
    EXPECT_EQ(tensorpool_arena_record(arena.get(), block, nullptr), 0U);
}

TEST(CArena, ObjectsOfAMeasuringArenaHaveRealHeaders) {
    tensorpool_arena_options options = defaults();
    options.objects = 1;
    const OwnedArena arena(tensorpool_arena_create_measuring(&options));
    tensorpool_object object = {};
    object.struct_bytes = sizeof object;
    object.bytes = std::size_t{3} << 30;
    const tensorpool_allocated_object made =
        tensorpool_arena_allocate_object(arena.get(), &object, 100);
    ASSERT_NE(made.id, 0U) << tensorpool_last_error();
    static_cast<char*>(made.header)[99] = 1;
    object.bytes = 8;
    const tensorpool_allocated_object view =
        tensorpool_arena_allocate_view(arena.get(), made.id, 64, &object, 8);
    EXPECT_NE(view.header, nullptr);
    EXPECT_EQ(view.data, static_cast<char*>(made.data) + 64);
    EXPECT_EQ(tensorpool_arena_used(arena.get()), std::size_t{3} << 30);
    const OwnedArena without(tensorpool_arena_create_measuring(nullptr));
    EXPECT_EQ(tensorpool_arena_allocate_object(without.get(), &object, 8).id, 0U);
    EXPECT_TRUE(last_error_has("keeps no register")) << tensorpool_last_error();
}

}  // namespace

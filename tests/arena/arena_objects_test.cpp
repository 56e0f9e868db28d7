#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/pooled_allocation.hpp>

#include "arena/arena_test.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::gib;
using testing::kib;
using testing::message_of;

ArenaOptions with_objects() {
    ArenaOptions options = bare_options();
    options.objects = true;
    return options;
}

std::string names_in(const Arena& arena) {
    std::string names;
    for (const ArenaObject& object : arena.objects()) names += object.description.name + " ";
    return names;
}

TEST(ArenaObjects, RecordingWithoutARegisterIsALogicError) {
    Arena arena(bare_options());
    void* const block = arena.allocate(100);
    EXPECT_EQ(message_of<std::logic_error>(
                  [&] { arena.record(block, {.name = "a", .kind = "tensor", .bytes = 100}); }),
              "tensorpool: arena 'mine': record: the arena keeps no register of objects, expected "
              "one made with ArenaOptions::objects");
    EXPECT_THROW(arena.record_view(7, 0, {.name = "v", .kind = ""}), std::logic_error);
    EXPECT_THROW(arena.allocate_object({.name = "o", .kind = "", .bytes = 8}, 8), std::logic_error);
    EXPECT_THROW(arena.allocate_view(7, 0, {.name = "v", .kind = ""}, 8), std::logic_error);
    EXPECT_TRUE(arena.objects().empty());
    const ArenaAnalysis analysis = arena.analyze();
    EXPECT_EQ(analysis.arena, "mine");
    EXPECT_EQ(analysis.used, 128U) << "the refused object took no bytes";
    EXPECT_EQ(analysis.count + analysis.views + analysis.bytes, 0U);
    EXPECT_TRUE(analysis.by_kind.empty() && analysis.by_element_type.empty());
}

TEST(ArenaObjects, HaveOffsets) {
    Arena arena(with_objects());
    arena.allocate(100);
    auto* const block = static_cast<std::byte*>(arena.allocate(1000));
    const ObjectId whole = arena.record(block, {.name = "w", .kind = "tensor", .bytes = 1000});
    arena.record(block + 500, {.name = "part", .kind = "tensor", .bytes = 500});
    arena.record_view(whole, 8, {.name = "view", .kind = "tensor", .bytes = 8});
    const std::vector<ArenaObject> objects = arena.objects();
    ASSERT_EQ(objects.size(), 3U);
    EXPECT_EQ(objects[0].offset, 128U);
    EXPECT_EQ(objects[1].offset, 628U);
    EXPECT_EQ(objects[2].offset, 136U);
    EXPECT_EQ(objects[2].view_of, whole);
}

TEST(ArenaObjects, OutsideTheUsedBytesAreRefused) {
    Arena arena(with_objects());
    auto* const block = static_cast<std::byte*>(arena.allocate(256));
    const auto refusal_of = [&](const void* data, std::size_t bytes) {
        return message_of<std::invalid_argument>(
            [&] { arena.record(data, {.name = "o", .kind = "tensor", .bytes = bytes}); });
    };
    EXPECT_EQ(refusal_of(block, 257),
              "tensorpool: arena 'mine': record: object 'o' of 257 B does not lie within the 256 B "
              "in use");
    int elsewhere = 0;
    EXPECT_NE(refusal_of(&elsewhere, 1), "");
    EXPECT_NE(refusal_of(nullptr, 0), "");
    EXPECT_NE(refusal_of(block - 1, 1), "");
    EXPECT_NE(refusal_of(block + 257, 0), "");
    EXPECT_NE(refusal_of(block + 10, SIZE_MAX), "");
    EXPECT_NE(refusal_of(block + 255, 2), "");
    EXPECT_TRUE(arena.objects().empty());
    EXPECT_EQ(refusal_of(block, 256), "");
    EXPECT_EQ(refusal_of(block + 255, 1), "");
}

TEST(ArenaObjects, ViewRefusalsNameTheArena) {
    Arena arena(with_objects());
    EXPECT_EQ(message_of<std::invalid_argument>(
                  [&] { arena.record_view(1, 0, {.name = "v", .kind = ""}); }),
              "tensorpool: arena 'mine': record_view: view 'v': there is no object 1");
}

TEST(ArenaObjects, AreRemovedByTheReleaseThatEndsThem) {
    Arena arena(with_objects());
    const auto put = [&](const char* name) {
        return arena.record(arena.allocate(kib), {.name = name, .kind = "tensor", .bytes = kib});
    };
    const ObjectId a = put("a");
    const Arena::Mark mark = arena.mark();
    {
        const ArenaScope scope(arena);
        const ObjectId b = put("b");
        arena.record_view(b, 0, {.name = "b_view", .kind = "tensor", .bytes = 10});
        arena.record_view(a, 0, {.name = "a_view", .kind = "tensor", .bytes = 10});
        EXPECT_EQ(names_in(arena), "a b b_view a_view ");
    }
    EXPECT_EQ(names_in(arena), "a a_view ");
    put("c");
    arena.release_to(mark);
    EXPECT_EQ(names_in(arena), "a a_view ");
    EXPECT_THROW(arena.release_to(std::size_t{5000}), std::invalid_argument);
    EXPECT_EQ(names_in(arena), "a a_view ") << "a refused release removes nothing";
    put("d");
    arena.release_to(std::size_t{kib});
    EXPECT_EQ(names_in(arena), "a a_view ");
    arena.reset();
    EXPECT_EQ(names_in(arena), "");
}

TEST(ArenaObjects, AreRecordedByEveryKindOfArena) {
    alignas(64) std::byte buffer[4096];
    Arena over = Arena::over(buffer, with_objects());
    Arena measuring = Arena::measuring(with_objects());
    for (Arena* const arena : {&over, &measuring}) {
        arena->record(arena->allocate(100), {.name = "a", .kind = "tensor", .bytes = 100});
        EXPECT_EQ(arena->analyze().bytes, 100U);
        arena->reset();
        EXPECT_EQ(arena->analyze().count, 0U);
    }
}

TEST(ArenaObjects, HeadersAreRealWhileDataIsMeasured) {
    struct Header {
        Header* source;
        std::size_t rows;
    };
    Arena arena = Arena::measuring(with_objects());
    const AllocatedObject weight = arena.allocate_object(
        {.name = "w", .kind = "tensor", .bytes = 3 * gib / 4}, sizeof(Header));
    const AllocatedObject view = arena.allocate_view(
        weight.id, kib, {.name = "v", .kind = "view", .bytes = kib}, sizeof(Header));
    auto* const header = static_cast<Header*>(view.header);
    EXPECT_EQ(header->source, nullptr) << "headers begin with zeros";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(header) % 64, 0U);
    *header = {static_cast<Header*>(weight.header), 3};
    EXPECT_EQ(static_cast<std::byte*>(view.data) - static_cast<std::byte*>(weight.data),
              static_cast<std::ptrdiff_t>(kib));
    EXPECT_EQ(arena.used(), 3 * gib / 4) << "headers are not part of it";
    const std::vector<ArenaObject> objects = arena.objects();
    ASSERT_EQ(objects.size(), 2U);
    EXPECT_EQ(objects[0].header, weight.header);
    EXPECT_EQ(objects[1].header, view.header);
    EXPECT_EQ(objects[1].offset, kib);
}

TEST(ArenaObjects, DataOfARealArenaLiesAtTheMeasuredOffset) {
    Arena measuring = Arena::measuring(with_objects());
    Arena arena(with_objects());
    for (Arena* const one : {&measuring, &arena}) {
        one->allocate_object({.name = "a", .kind = "tensor", .bytes = 100}, 0);
        one->allocate_object({.name = "b", .kind = "tensor", .bytes = 1000}, 8);
    }
    EXPECT_EQ(measuring.objects()[1].offset, arena.objects()[1].offset);
    EXPECT_EQ(measuring.peak(), arena.peak());
    EXPECT_EQ(arena.objects()[0].header, nullptr);
}

TEST(ArenaObjects, ReleaseFreesHeadersOfTheObjectsThatItEnds) {
    Arena arena(with_objects());
    arena.allocate_object({.name = "kept", .kind = "tensor", .bytes = 64}, 8);
    const Arena::Mark mark = arena.mark();
    const AllocatedObject ended =
        arena.allocate_object({.name = "ended", .kind = "tensor", .bytes = 64}, 1000);
    arena.allocate_view(ended.id, 0, {.name = "view", .kind = "view", .bytes = 8}, 8);
    arena.release_to(mark);
    EXPECT_EQ(names_in(arena), "kept ");
    EXPECT_NE(arena.objects()[0].header, nullptr);
}

TEST(ArenaObjects, HeadersThatNoMemoryHoldsAreRefused) {
    Arena arena(with_objects());
    const AllocatedObject kept =
        arena.allocate_object({.name = "kept", .kind = "tensor", .bytes = 64}, 8);
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 20, std::size_t{1} << 63}) {
        EXPECT_THROW(arena.allocate_object({.bytes = 1}, bytes), std::bad_alloc) << bytes;
        EXPECT_THROW(arena.allocate_view(kept.id, 0, {.bytes = 1}, bytes), std::bad_alloc) << bytes;
    }
    EXPECT_EQ(names_in(arena), "kept ");
    EXPECT_EQ(arena.used(), 64U);
}

TEST(ArenaObjects, ObjectWithoutBytesHasAHeaderAndNoData) {
    Arena arena(with_objects());
    arena.allocate(64);
    const AllocatedObject empty = arena.allocate_object({.name = "e", .kind = "graph"}, 16);
    EXPECT_EQ(empty.data, nullptr);
    EXPECT_NE(empty.header, nullptr);
    EXPECT_EQ(arena.objects()[0].offset, 64U);
    EXPECT_EQ(arena.used(), 64U);
}

TEST(ArenaObjects, ObjectWithoutBytesStaysAtAReleaseToItsPosition) {
    Arena arena(with_objects());
    arena.allocate_object({.name = "first", .kind = "graph"}, 16);
    arena.allocate(64);
    arena.allocate_object({.name = "e", .kind = "graph"}, 16);
    const Arena::Mark mark = arena.mark();
    {
        const ArenaScope scope(arena);
        arena.allocate(64);
    }
    arena.allocate(64);
    arena.release_to(mark);
    EXPECT_EQ(names_in(arena), "first e ");
    EXPECT_NE(arena.objects()[1].header, nullptr);
    { const PooledAllocation handle(arena, 64); }
    EXPECT_EQ(names_in(arena), "first e ") << "the end of a handle behind it";
    arena.reset();
    EXPECT_EQ(names_in(arena), "");
}

TEST(ArenaObjects, RefusedDataLeavesNoObject) {
    ArenaOptions options = with_objects();
    options.max_allocation = 1000;
    Arena arena(options);
    EXPECT_THROW(arena.allocate_object({.name = "o", .kind = "", .bytes = 1001}, 8),
                 std::bad_alloc);
    EXPECT_THROW(arena.allocate_view(1, 0, {.name = "v", .kind = ""}, 8), std::invalid_argument);
    EXPECT_TRUE(arena.objects().empty());
    EXPECT_EQ(arena.allocate_object({.name = "o", .kind = "", .bytes = 1000}, 8).id, 1U);
}

TEST(ArenaObjects, ThreadsMayAllocateObjectsAtOnce) {
    Arena arena(with_objects());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (std::size_t j = 0; j < 200; ++j) {
                const AllocatedObject made =
                    arena.allocate_object({.name = "o", .kind = "tensor", .bytes = 64}, 8);
                *static_cast<std::size_t*>(made.header) = made.id;
                *static_cast<std::size_t*>(made.data) = made.id;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const std::vector<ArenaObject> objects = arena.objects();
    ASSERT_EQ(objects.size(), 800U);
    for (const ArenaObject& object : objects) {
        EXPECT_EQ(*static_cast<std::size_t*>(object.header), object.id);
    }
}

TEST(ArenaObjects, AnalysisSumsByKindAndByElementType) {
    Arena arena(with_objects());
    const auto put = [&](const char* kind, const char* type, std::size_t bytes) {
        return arena.record(
            arena.allocate(bytes),
            {.name = "o", .kind = kind, .element_type = type, .shape = {bytes}, .bytes = bytes});
    };
    const ObjectId tensor = put("tensor", "f32", 300);
    put("tensor", "q4_0", 500);
    put("graph", "", 200);
    arena.record_view(tensor, 0,
                      {.name = "v", .kind = "tensor", .element_type = "f32", .bytes = 9});
    arena.record_view(tensor, 0, {.name = "v", .kind = "slice", .element_type = "i8", .bytes = 9});
    const ArenaAnalysis analysis = arena.analyze();
    EXPECT_EQ(analysis.used, 320U + 512 + 256);
    EXPECT_EQ(analysis.count, 3U);
    EXPECT_EQ(analysis.views, 2U);
    EXPECT_EQ(analysis.bytes, 1000U);
    ASSERT_EQ(analysis.by_kind.size(), 3U);
    EXPECT_EQ(analysis.by_kind[0].name, "tensor");
    EXPECT_EQ(analysis.by_kind[0].count, 2U);
    EXPECT_EQ(analysis.by_kind[0].views, 1U);
    EXPECT_EQ(analysis.by_kind[0].bytes, 800U);
    EXPECT_EQ(analysis.by_kind[0].percent, 80.0);
    EXPECT_EQ(analysis.by_kind[1].name, "graph");
    EXPECT_EQ(analysis.by_kind[1].percent, 20.0);
    EXPECT_EQ(analysis.by_kind[2].name, "slice");
    EXPECT_EQ(analysis.by_kind[2].count, 0U);
    EXPECT_EQ(analysis.by_kind[2].views, 1U);
    EXPECT_EQ(analysis.by_kind[2].percent, 0.0);
    ASSERT_EQ(analysis.by_element_type.size(), 4U);
    EXPECT_EQ(analysis.by_element_type[0].name, "q4_0");
    EXPECT_EQ(analysis.by_element_type[0].percent, 50.0);
    EXPECT_EQ(analysis.by_element_type[1].name, "f32");
    EXPECT_EQ(analysis.by_element_type[1].percent, 30.0);
    EXPECT_EQ(analysis.by_element_type[2].name, "");
    EXPECT_EQ(analysis.by_element_type[3].name, "i8");
}

}  // namespace
}  // namespace tensorpool

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "arena/arena_test.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
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

TEST(ArenaObjects, AreNotRecordedByDefault) {
    Arena arena(bare_options());
    void* const block = arena.allocate(100);
    EXPECT_EQ(arena.record(block, {.name = "a", .kind = "tensor", .bytes = 100}), 0U);
    EXPECT_EQ(arena.record(nullptr, {.name = "wrong", .kind = "", .bytes = SIZE_MAX}), 0U)
        << "the arguments are not checked";
    EXPECT_EQ(arena.record_view(7, 0, {.name = "v", .kind = ""}), 0U);
    EXPECT_TRUE(arena.objects().empty());
    const ArenaAnalysis analysis = arena.analyze();
    EXPECT_EQ(analysis.arena, "mine");
    EXPECT_EQ(analysis.used, 128U);
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

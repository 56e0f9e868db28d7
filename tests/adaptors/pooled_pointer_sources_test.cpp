// Smart pointers to objects in other sources than pools.

#include <tensorpool/pooled_pointer.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <tensorpool/arena.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/memory_resource.hpp>
#include <tensorpool/scratch.hpp>

namespace tensorpool {
namespace {

static_assert(std::is_same_v<PooledUnique<int>, PooledUnique<int, MemoryPool>>);
static_assert(sizeof(PooledUnique<int>) == 2 * sizeof(void*));
static_assert(sizeof(PooledUnique<int, Arena>) == 5 * sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<PooledUnique<int, Arena>>);

struct Point {
    int x = 1;
    int y = 2;
};

struct Counted {
    explicit Counted(int& count) : count_(count) { ++count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count_; }
    int& count_;
};

struct Throwing {
    Throwing() { throw std::runtime_error("thrown"); }
};

struct Graph {
    explicit Graph(Context& context, int nodes = 0) : context_(&context), nodes_(nodes) {}
    Context* context_;
    int nodes_;
};

/// Can be made from an arena and without one.
struct Either {
    Either() = default;
    explicit Either(Arena& arena) : arena_(&arena) {}
    Arena* arena_ = nullptr;
};

struct alignas(512) Wide {
    float lanes[128];
};

TEST(PooledUniqueOfASource, ObjectIsReturnedToItsArena) {
    Arena arena;
    {
        PooledUnique<Point, Arena> point = make_pooled_unique<Point>(arena, Point{3, 4});
        EXPECT_EQ(point->x, 3);
        EXPECT_EQ(arena.used(), 64U);
        PooledUnique<Point, Arena> moved = std::move(point);
        EXPECT_EQ(moved->y, 4);
        const auto wide = make_pooled_unique<const Wide>(arena);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.get()) % alignof(Wide), 0U);
    }
    arena.reset();
    const auto numbers = make_pooled_unique<int[]>(arena, 100);
    EXPECT_EQ(numbers[99], 0);
    EXPECT_EQ(arena.used(), 448U);
    EXPECT_EQ(make_pooled_unique<int[]>(arena, 0), nullptr);
    EXPECT_THROW(make_pooled_unique<double[]>(arena, SIZE_MAX / 2), std::bad_array_new_length);
}

TEST(PooledUniqueOfASource, OutdatedByAReleaseGivesBackNothing) {
    ArenaOptions options;
    options.checks = Checks::off;
    Arena arena(options);
    auto point = make_pooled_unique<Point>(arena);
    arena.reset();
    arena.allocate(64);
    point.reset();
    EXPECT_EQ(arena.used(), 64U);
}

TEST(PooledUniqueOfASource, ObjectOfAScratchEndsInItsScope) {
    Scratch& scratch = Scratch::local();
    const ScratchScope scope;
    { const auto point = make_pooled_unique<Point>(scratch); }
    EXPECT_EQ(scratch.used(), 0U);
}

TEST(PooledUniqueOfASource, DestroysItsObject) {
    MemoryPool pool;
    PoolResource resource(pool);
    int alive = 0;
    {
        const auto object = make_pooled_unique<Counted>(resource, alive);
        EXPECT_EQ(alive, 1);
        EXPECT_TRUE(pool.owns(object.get()));
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledUniqueOfASource, ThrowingConstructorLeavesNothingBehind) {
    Arena arena;
    EXPECT_THROW(make_pooled_unique<Throwing>(arena), std::runtime_error);
    EXPECT_EQ(arena.used(), 0U);
}

TEST(PooledUniqueOfASource, MemoryThatTheHostCannotAccessIsRefused) {
    Arena arena = Arena::measuring();
    EXPECT_THROW(make_pooled_unique<Point>(arena), std::invalid_argument);
    EXPECT_EQ(arena.used(), 0U);
}

TEST(PooledUniqueOfASource, ArgumentThatTheConstructorNeedsIsNoSource) {
    Context context;
    const auto graph = make_pooled_unique<Graph>(context);
    static_assert(std::is_same_v<decltype(graph), const PooledUnique<Graph>>);
    EXPECT_EQ(graph->context_, &context);
    EXPECT_TRUE(get_global_memory_pool().owns(graph.get()));
    EXPECT_EQ(make_pooled_unique<Graph>(context, 3)->nodes_, 3);
    Arena arena;
    const auto in_arena = make_pooled_unique<Graph>(arena, context, 4);
    static_assert(std::is_same_v<decltype(in_arena), const PooledUnique<Graph, Arena>>);
    EXPECT_EQ(in_arena->nodes_, 4);
    EXPECT_EQ(arena.used(), 64U);
}

TEST(PooledUniqueOfASource, ArgumentThatTheConstructorDoesNotNeedIsASource) {
    Arena arena;
    const auto either = make_pooled_unique<Either>(arena);
    static_assert(std::is_same_v<decltype(either), const PooledUnique<Either, Arena>>);
    EXPECT_EQ(either->arena_, nullptr);
    EXPECT_EQ(make_pooled_unique<Either>(arena, arena)->arena_, &arena);
}

TEST(PooledSharedOfASource, ArgumentThatTheConstructorNeedsIsNoSource) {
    Context context;
    const std::shared_ptr<Graph> graph = allocate_pooled_shared<Graph>(context, 5);
    EXPECT_EQ(graph->context_, &context);
    EXPECT_EQ(graph->nodes_, 5);
    EXPECT_TRUE(get_global_memory_pool().owns(graph.get()));
}

TEST(PooledSharedOfASource, LastOwnerReturnsTheObject) {
    Arena arena;
    std::shared_ptr<Point> point = allocate_pooled_shared<Point>(arena);
    const std::shared_ptr<Point> other = point;
    EXPECT_EQ(arena.used(), 64U) << "the reference counts lie elsewhere";
    point.reset();
    EXPECT_EQ(other->y, 2);
    EXPECT_EQ(arena.used(), 64U);
}

TEST(PooledSharedOfASource, CountsStayValidAfterARelease) {
    ArenaOptions options;
    options.checks = Checks::off;
    Arena arena(options);
    std::shared_ptr<int[]> numbers = allocate_pooled_shared<int[]>(arena, 16);
    std::weak_ptr<int[]> weak = numbers;
    arena.reset();
    arena.allocate(64);
    numbers.reset();
    EXPECT_TRUE(weak.expired());
    EXPECT_EQ(arena.used(), 64U);
}

}  // namespace
}  // namespace tensorpool

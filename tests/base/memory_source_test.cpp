#include <tensorpool/memory_source.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory_resource>
#include <stdexcept>
#include <string>

namespace tensorpool {
namespace {

struct Plain {
    void* allocate(std::size_t, std::size_t) { return &byte; }
    void deallocate(void*, std::size_t, std::size_t) {}
    char byte;
};
struct OnAStream {
    HeldBlock hold(std::size_t, const char*) { return {}; }
};
struct Releasing : Plain {
    static constexpr bool releases_blocks = true;
};

static_assert(MemorySource<Plain> && PlainSource<Plain> && !HoldingSource<Plain, std::size_t>);
static_assert(MemorySource<std::pmr::memory_resource>);
static_assert(!MemorySource<OnAStream> && HoldingSource<OnAStream, const char*>);
static_assert(ReleasingSource<Releasing> && !ReleasingSource<Plain>);
static_assert(sizeof(BlockOwner) == 16 && sizeof(HeldBlock) == 32);

constexpr SourceFunctions functions = {.name = "test", .give_back = nullptr};

TEST(BlockOwner, OfAPoolHasNoFunctions) {
    int pool = 0;
    for (unsigned i = 0; i < 48; ++i) {
        const BlockOwner owner = BlockOwner::of_pool(&pool, std::size_t{1} << i);
        EXPECT_TRUE(owner.is_pool());
        EXPECT_EQ(owner.is_pool_with_default_alignment(), i <= 6);
        EXPECT_EQ(owner.pool(), &pool);
        EXPECT_EQ(owner.alignment(), std::size_t{1} << i);
        EXPECT_EQ(owner.releases(), 0U);
    }
    EXPECT_TRUE(BlockOwner().is_pool());
}

TEST(BlockOwner, KeepsTheTableOfItsSource) {
    int source = 0;
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 47}) {
        const BlockOwner owner(&source, functions, alignment);
        EXPECT_FALSE(owner.is_pool());
        EXPECT_EQ(owner.source(), &source);
        EXPECT_EQ(&owner.functions(), &functions);
        EXPECT_EQ(owner.alignment(), alignment);
        EXPECT_EQ(owner.releases(), 0U);
    }
}

TEST(BlockOwner, KeepsTheNumberOfReleases) {
    int source = 0;
    SourceLink link{&functions, &source};
    constexpr std::uint64_t most = (std::uint64_t{1} << 57) - 1;
    for (const std::uint64_t releases : {std::uint64_t{0}, std::uint64_t{1}, most}) {
        const BlockOwner owner(link, releases, 256);
        EXPECT_FALSE(owner.is_pool());
        EXPECT_EQ(owner.source(), &source);
        EXPECT_EQ(&owner.functions(), &functions);
        EXPECT_EQ(owner.alignment(), 256U);
        EXPECT_EQ(owner.releases(), releases);
    }
}

TEST(MemorySource, HoldRefusesABadAlignmentAndCallsNothingForZeroBytes) {
    Plain plain;
    try {
        (void)detail::hold(plain, 100, 48);
        FAIL() << "expected an exception";
    } catch (const std::invalid_argument& error) {
        EXPECT_EQ(std::string(error.what()),
                  "tensorpool: handle: alignment is 48; expected a power of two");
    }
    EXPECT_EQ(detail::hold(plain, 0, 64).address, nullptr);
    EXPECT_EQ(detail::hold(plain, 1, 64).address, &plain.byte);
}

}  // namespace
}  // namespace tensorpool
